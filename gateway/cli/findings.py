"""The single checks behind `gateway check`: each asks one part and answers with findings.

Responsible for what is looked at and for the words; a finding says what is so and, when something
is wrong, what to do. Must not: print, or change a record, a key of the gateway or the
configuration. Two things are done as a start would do them: an embedded Redis that does not run is
started for the check, and an ACME account is registered where there is none yet (by
`authority_findings`, which has the checks of the authorities).

Called by `cli.check`, which runs all of them at once and bounds their time.
"""

from __future__ import annotations

import asyncio
import contextlib
import stat
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gateway.access.clients import ClientStore
from gateway.certificates.keyring_proof import proven_keys
from gateway.certificates.sealing import KeyringInvalid, load_keyring
from gateway.cli.authority_findings import check_accounts, check_directories
from gateway.cli.finding import Finding, State
from gateway.cli.listener_finding import listener_findings
from gateway.cli.state_finding import state_finding
from gateway.clocks import now_ms
from gateway.configured import build_zones
from gateway.dns.errors import DnsFault
from gateway.dns.exchange import Exchange
from gateway.dns.health import (
    CLOCKS_AGREE_SECONDS,
    Trouble,
    check_zone,
    refused_types,
    silent_servers,
    trouble_of,
    unused_name,
)
from gateway.store.connection import Store, StoreRefused, StoreUnavailable
from gateway.store.embedded import EmbeddedRedis, EmbeddedRedisFault
from gateway.store.persistence import Loss, losses, read_persistence
from gateway.store.places import read_place
from gateway.store.sending import REPLICA_WAIT_MS
from gateway.views import emptiness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from gateway.config import RedisSettings, Settings
    from gateway.dns.health import Silence, ZoneHealth
    from gateway.dns.zones import Zone
    from gateway.store.persistence import Persistence

ZONE_LIMIT_SECONDS: Final = 8.0

_ADDRESS_TYPES: Final = ("A", "AAAA")

# RFC 8945 section 10: servers refuse what is signed more than 300 s off.
_SKEW_REFUSED_SECONDS: Final = 300.0
_REDIS_SKEW_NOTED_SECONDS: Final = 5.0
_SET_CLOCK = "Let both machines take their time from NTP."

_REMEDIES: Final = {
    Trouble.SILENT: "Is the server running, and reachable at this address and port?",
    Trouble.SIGNATURE: "Copy the secret between the quotes again.",
    Trouble.KEY: "Compare the key's name and algorithm with the server's.",
    Trouble.CLOCK: _SET_CLOCK,
    Trouble.REFUSES: (
        "Does the server have this zone, in the key's view, and may the key query it (BIND:"
        " allow-query)?"
    ),
    Trouble.TAKES_NO_UPDATES: (
        "Is it the zone's primary, and does it let the key update the zone (BIND: update-policy or"
        " allow-update)?"
    ),
    Trouble.FAILS: "See the server's log for why it can't answer.",
    Trouble.OTHER: "See the server's log.",
}


_LOSSES: Final = {
    Loss.NOTHING: (State.OK, "every write is on the disk before it is acknowledged", ""),
    Loss.UNKNOWN: (
        State.WARNING,
        "it does not tell how it keeps its data (CONFIG is forbidden)",
        "Make sure that it runs with appendonly yes and appendfsync always.",
    ),
    Loss.LAST_SECONDS: (
        State.WARNING,
        "a crash loses the writes of the last second or more",
        "Set appendfsync always.",
    ),
    Loss.SINCE_SNAPSHOT: (
        State.WARNING,
        "a crash loses everything since its last snapshot",
        "Set appendonly yes and appendfsync always.",
    ),
    Loss.EVERYTHING: (
        State.FAILED,
        "it keeps nothing: a restart loses every client, certificate and account",
        "Set appendonly yes and appendfsync always.",
    ),
    Loss.EVICTED: (
        State.FAILED,
        "it throws keys away when its memory is full",
        "Set maxmemory-policy noeviction.",
    ),
    Loss.NOT_WRITTEN: (
        State.FAILED,
        "its last write to the disk failed",
        "See its log; its disk may be full.",
    ),
}


def all_checks(settings: Settings) -> dict[str, AsyncIterator[Finding]]:
    """Every check by what it is about, none of them begun; a check yields as it learns."""
    checks = {"files": check_files(settings), "redis": check_redis(settings)}
    if settings.acme:
        checks["acme"] = check_directories(settings)
    return checks | {
        f"zone {zone.name}": check_one_zone(zone) for zone in build_zones(settings).all
    }


async def check_files(settings: Settings) -> AsyncIterator[Finding]:
    """The keyring, what others may read, and what the settings leave out or open up."""
    yield _keyring_finding(settings)
    for path in settings.secret_files:
        if path != settings.keyring_file and _may_everybody_read(path):
            yield Finding("files", State.WARNING, f"Everybody may read {path}.", f"chmod o= {path}")
    for finding in listener_findings(settings):
        yield finding
    if not settings.zones:
        yield Finding("zones", State.WARNING, "There is none.", "Add a [[zones]] table.")
    if not settings.acme:
        yield Finding("acme", State.OK, "No authority is configured: certificates are off.")


def _may_everybody_read(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IRWXO)
    except OSError:
        return False  # that it is missing, whoever reads it tells


def _keyring_finding(settings: Settings) -> Finding:
    try:
        keyring = load_keyring(settings.keyring_file)
    except KeyringInvalid as invalid:
        remedy = "Restore it from a backup; for a new gateway, `gateway init DIR` writes one."
        return Finding("keyring", State.FAILED, f"{'; '.join(invalid.faults)}.", remedy)
    if keyring.permission_fault:
        remedy = f"chmod 600 {settings.keyring_file}"
        return Finding("keyring", State.WARNING, f"{keyring.permission_fault}.", remedy)
    sealing, *others = keyring.key_ids
    more = f", {len(others)} more open" if others else ""
    return Finding("keyring", State.OK, f"The key {sealing} seals{more}.")


async def check_one_zone(zone: Zone) -> AsyncIterator[Finding]:
    """For each primary a signed query, an update that writes nothing, and its clock beside ours."""
    deadline = asyncio.get_running_loop().time() + ZONE_LIMIT_SECONDS
    at_each = zone.at_each_primary()
    healths = await asyncio.gather(*(check_zone(Exchange(), at, deadline) for at in at_each))
    good = [at for at, health in zip(at_each, healths, strict=True) if health.ok]
    for at, health in zip(at_each, healths, strict=True):
        substitute = ""
        if good and not health.ok:
            is_preferred = at_each.index(at) < at_each.index(good[0])
            substitute = f"{good[0].primary} answers" + (" in its place" if is_preferred else "")
        for finding in primary_findings(zone.name, health):
            yield finding if not substitute else done_without(finding, substitute)
    if good:
        async for finding in _check_reach(good[0], deadline):
            yield finding


def primary_findings(zone_name: str, health: ZoneHealth) -> Iterator[Finding]:
    """Judge one primary as if there were no other, and its clock."""
    skew_seconds = health.clock_skew_seconds
    if health.ok:
        yield Finding(f"zone {zone_name}", State.OK, health.detail)
    else:
        remedy = _REMEDIES[health.trouble or Trouble.OTHER]
        if health.trouble is Trouble.CLOCK and skew_seconds is not None:
            remedy = ""  # the clock's own finding has it
        yield Finding(f"zone {zone_name}", State.FAILED, health.detail, remedy)
    if skew_seconds is not None:
        yield clock_finding(zone_name, skew_seconds)
    elif health.is_clock_off:
        yield _unknown_clock_finding(zone_name)


def done_without(finding: Finding, substitute: str) -> Finding:
    """A finding of a primary, since another one answers: calls go on."""
    if finding.state is not State.FAILED:
        return finding
    return replace(finding, state=State.WARNING, finding=f"{finding.finding} {substitute}.")


async def _check_reach(zone: Zone, deadline: float) -> AsyncIterator[Finding]:
    """What the key may change, and whether every name server that issuances wait for answers."""
    name = unused_name(zone)
    try:
        refused = await refused_types(Exchange(), zone, deadline, name=name)
        silence = await silent_servers(Exchange(), zone, deadline)
    except DnsFault as fault:
        remedy = _REMEDIES[trouble_of(fault)]
        yield Finding(f"zone {zone.name}", State.FAILED, fault.detail, remedy)
        return
    if refused:
        yield rights_finding(zone.name, refused, name)
    yield silence_finding(zone, silence)


def rights_finding(zone_name: str, refused: Sequence[str], name: str) -> Finding:
    """Judge which of A, AAAA and TXT the key may not change at a name that nobody uses."""
    part = f"zone {zone_name}"
    if tuple(refused) == _ADDRESS_TYPES:
        text = "The key may change TXT records alone: the zone takes challenges only."
        return Finding(part, State.OK, text)
    *others, last = refused
    types = f"{', '.join(others)} and {last}" if others else last
    return Finding(
        part,
        State.WARNING,
        f"The key was refused {types} at {name}; if it has a narrower rule, this is expected.",
        "Grant it A, AAAA and TXT (BIND: update-policy) where hostnames of clients lie.",
    )


def silence_finding(zone: Zone, silence: Silence) -> Finding:
    """Judge which name servers do not answer: issuances may go on without some of them."""
    part, bound_seconds = f"name servers {zone.name}", zone.silent_server_seconds
    if not silence.at:
        return Finding(part, State.OK, "All of them answer for the zone.")
    text = f"No answer for the zone from {', '.join(silence.at)}"
    remedy = "Start what should answer, or name the servers to wait for in the zone's servers"
    remedy += " (nameserver_port, if they are at another port than 53)."
    if zone.servers:
        remedy = "Start it, or take it out of the zone's servers."
    if silence.is_everywhere:
        text += ", and no other answers: no certificate is issued."
        return Finding(part, State.FAILED, text, remedy)
    if bound_seconds is None:
        text += ", which every issuance waits for."
        return Finding(part, State.FAILED, text, remedy)
    text += f"; issuances go on without it after {bound_seconds:g} s."
    return Finding(part, State.WARNING, text, remedy)


def clock_finding(zone_name: str, skew_seconds: float) -> Finding:
    """Judge how much later the server's clock is than ours."""
    part = f"clock {zone_name}"
    if abs(skew_seconds) < CLOCKS_AGREE_SECONDS:
        return Finding(part, State.OK, "The server's clock and this one agree.")
    relation = "ahead of" if skew_seconds > 0 else "behind"
    text = f"The server's clock is {abs(skew_seconds):.0f} s {relation} this one"
    if abs(skew_seconds) >= _SKEW_REFUSED_SECONDS:
        return Finding(part, State.FAILED, f"{text}: it refuses what is signed here.", _SET_CLOCK)
    return Finding(part, State.WARNING, f"{text}.", _SET_CLOCK)


def _unknown_clock_finding(zone_name: str) -> Finding:
    text = f"The server's clock is {CLOCKS_AGREE_SECONDS} s or more off this one"
    return Finding(
        f"clock {zone_name}",
        State.WARNING,
        f"{text}; it does not tell by how much, and refuses what is signed here from 300 s on.",
        _SET_CLOCK,
    )


async def check_redis(settings: Settings) -> AsyncIterator[Finding]:
    """Redis and what it keeps; then the ACME accounts, whose keys lie in it."""
    try:
        async with _redis(settings) as (url, where):
            for persistence in await read_persistence(url):
                for finding in _redis_findings(persistence, where, settings.redis):
                    yield finding
            unfit = await state_finding(url)
            if unfit is not None:
                yield unfit
                return  # no account is to be made in it either
            async for finding in _check_keyring(settings.keyring_file, url):
                yield finding
            async for finding in _check_clock(url):
                yield finding
            async for finding in _check_clients(url):
                yield finding
            async for finding in check_accounts(settings, url):
                yield finding
    except EmbeddedRedisFault as fault:
        yield Finding("redis", State.FAILED, f"{fault}.")
    except (StoreUnavailable, StoreRefused) as fault:
        text = f"{_place(settings.redis)} cannot be used: {fault}"
        yield Finding("redis", State.FAILED, text, "Start it, or correct redis.url.")


async def _check_keyring(keyring_file: Path, url: str) -> AsyncIterator[Finding]:
    """Whether the file holds the keys that Redis's data is sealed with: else no start."""
    try:
        keyring = load_keyring(keyring_file)
    except KeyringInvalid:
        return  # told already
    store = Store(url)
    try:
        missing = sorted(await proven_keys(store) - set(keyring.key_ids))
    finally:
        await store.close()
    if missing:
        text = f"Redis's data is sealed with {', '.join(missing)}, which the file lacks."
        yield Finding("keyring", State.FAILED, text, "Put the former keyring file back.")


async def _check_clients(url: str) -> AsyncIterator[Finding]:
    """Whether there is anybody to serve: an emptied Redis is well in every other regard."""
    store = Store(url)
    try:
        if await ClientStore(store).count() == 0:
            yield Finding(
                "clients",
                State.WARNING,
                emptiness.NO_CLIENT,
                f"Make them with `gateway clients ensure`; {emptiness.LOST}",
            )
    finally:
        await store.close()


async def _check_clock(url: str) -> AsyncIterator[Finding]:
    store = Store(url)
    try:
        began_ms = now_ms()
        told_ms = await store.time_ms()
        # It was read somewhere on the way there and back.
        yield redis_clock_finding((told_ms - (began_ms + now_ms()) / 2) / 1000)
    except StoreRefused:
        text = "Redis does not tell its time: the clocks of all gateways must agree."
        yield Finding("clock redis", State.WARNING, text, "Allow its user the command TIME.")
    finally:
        await store.close()


def redis_clock_finding(ahead_seconds: float) -> Finding:
    """Judge how much later Redis's clock, by which all gateways go, is than ours."""
    if abs(ahead_seconds) < _REDIS_SKEW_NOTED_SECONDS:
        return Finding("clock redis", State.OK, "Redis's clock and this one agree.")
    relation = "ahead of" if ahead_seconds > 0 else "behind"
    skew = f"{abs(ahead_seconds):.0f} s {relation} this one"
    text = f"Redis's clock, which all gateways go by, is {skew}."
    return Finding("clock redis", State.WARNING, text, _SET_CLOCK)


def _redis_findings(
    persistence: Persistence, where: str, redis: RedisSettings
) -> Iterator[Finding]:
    """What one of perhaps several Redis would lose."""
    opening = f"Redis {persistence.version} answers {where}"
    if redis.has_several:
        kind = "primary" if persistence.is_primary else "replica"
        opening = f"The {kind} {persistence.node}, Redis {persistence.version}, answers"
    for loss in losses(persistence):
        state, text, remedy = _LOSSES[loss]
        yield Finding("redis", state, f"{opening}; {text}.", remedy)
    awaited = redis.awaited_replicas
    if persistence.is_primary and persistence.replicas < awaited:
        yield Finding(
            "redis",
            State.WARNING,
            f"{persistence.node} has {persistence.replicas} replicas and each write waits for"
            f" {awaited}: it takes {REPLICA_WAIT_MS} ms longer, and a failover may lose it.",
            "Start the replicas, or set redis.replicas to how many there are.",
        )


@contextlib.asynccontextmanager
async def _redis(settings: Settings) -> AsyncIterator[tuple[str, str]]:
    if not settings.redis.is_embedded:
        yield settings.redis.url, f"at {_place(settings.redis)}"
        return
    embedded = EmbeddedRedis(settings.state_dir)
    try:
        await embedded.connect_or_start()
        yield (
            embedded.url,
            "(embedded, started for this check)" if embedded.is_owner else "(embedded)",
        )
    finally:
        await embedded.stop()


def _place(redis: RedisSettings) -> str:
    """The URL without user and password."""
    return read_place(redis.url).shown
