"""The single checks behind `gateway check`: each asks one part and answers with findings.

Responsible for what is looked at and for the words; a finding says what is so and, when something
is wrong, what to do. Must not: print, or change a record, a key of the gateway or the
configuration. Two things are done as a start would do them: an embedded Redis that does not run is
started for the check, and the ACME account is registered when there is none yet.

Called by `cli.check`, which runs all of them at once and bounds their time.
"""

from __future__ import annotations

import asyncio
import contextlib
import stat
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gateway.certificates.accounts import RedisAccountStore
from gateway.certificates.orders import AuthorityFault, FaultKind
from gateway.certificates.sealing import Keyring, KeyringInvalid, SealBroken, load_keyring
from gateway.config import is_loopback
from gateway.dns.errors import DnsFault
from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, refused_types, silent_servers
from gateway.store.connection import Store, StoreRefused, StoreUnavailable
from gateway.store.embedded import EmbeddedRedis, EmbeddedRedisFault
from gateway.store.persistence import Loss, losses, read_persistence
from gateway.wiring import build_authority, build_zones

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.certificates.authority import Authority
    from gateway.config import AcmeSettings, RedisSettings, Settings
    from gateway.dns.zones import Zone

ZONE_LIMIT_SECONDS: Final = 8.0

# RFC 8945 section 10: servers refuse what is signed more than 300 s off.
_SKEW_REFUSED_SECONDS: Final = 300.0
_SKEW_NOTED_SECONDS: Final = 30.0
_SET_CLOCK = "Let both machines take their time from NTP."


class State(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer. `remedy` is empty when there is nothing to do."""

    part: str
    state: State
    finding: str
    remedy: str = ""


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
    if settings.acme is not None:
        checks["acme"] = check_directory(settings.acme)
    return checks | {
        f"zone {zone.name}": check_one_zone(zone) for zone in build_zones(settings).all
    }


async def check_files(settings: Settings) -> AsyncIterator[Finding]:
    """The keyring, what others may read, and what the settings leave out or open up."""
    yield _keyring_finding(settings)
    for path in settings.secret_files:
        if path != settings.keyring_file and path.stat().st_mode & stat.S_IRWXO:
            yield Finding("files", State.WARNING, f"Everybody may read {path}.", f"chmod o= {path}")
    if not is_loopback(settings.http.host):
        yield Finding(
            "http",
            State.WARNING,
            f"Other machines can reach {settings.http.listen}, and it is plain HTTP.",
            "Put a proxy with TLS in front: tokens and private keys pass here.",
        )
    if not settings.zones:
        yield Finding("zones", State.WARNING, "There is none.", "Add a [[zones]] table.")
    if settings.acme is None:
        yield Finding("acme", State.OK, "No authority is configured: certificates are off.")


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
    """A signed query, an update that writes nothing, and the server's clock beside ours."""
    part = f"zone {zone.name}"
    deadline = asyncio.get_running_loop().time() + ZONE_LIMIT_SECONDS
    health = await check_zone(Exchange(), zone, deadline)
    if health.ok:
        yield Finding(part, State.OK, health.detail)
        async for finding in _check_reach(zone, deadline):
            yield finding
    else:
        remedy = "Check the zone's primary and tsig here, and the key's permissions at the server."
        yield Finding(part, State.FAILED, health.detail, remedy)
    if health.clock_skew_seconds is not None:
        yield clock_finding(zone.name, health.clock_skew_seconds)


async def _check_reach(zone: Zone, deadline: float) -> AsyncIterator[Finding]:
    """What the key may change, and whether every name server that issuances wait for answers."""
    try:
        refused = await refused_types(Exchange(), zone, deadline)
        silent = await silent_servers(Exchange(), zone, deadline)
    except DnsFault as fault:
        yield Finding(f"zone {zone.name}", State.FAILED, fault.detail)
        return
    if refused:
        yield Finding(
            f"zone {zone.name}",
            State.WARNING,
            f"The key may not change {', '.join(refused)} records at every name of the zone.",
            "Grant A, AAAA and TXT (BIND: update-policy), unless a narrower rule is meant.",
        )
    if silent:
        yield Finding(
            f"name servers {zone.name}",
            State.FAILED,
            f"No answer for the zone from {', '.join(silent)}, which every issuance waits for.",
            "Name the servers to wait for in the zone's servers, or set nameserver_port.",
        )
    else:
        yield Finding(f"name servers {zone.name}", State.OK, "All of them answer for the zone.")


def clock_finding(zone_name: str, skew_seconds: float) -> Finding:
    """Judge how much later the server's clock is than ours."""
    part = f"clock {zone_name}"
    if abs(skew_seconds) < _SKEW_NOTED_SECONDS:
        return Finding(part, State.OK, "The server's clock and this one agree.")
    relation = "ahead of" if skew_seconds > 0 else "behind"
    text = f"The server's clock is {abs(skew_seconds):.0f} s {relation} this one"
    if abs(skew_seconds) >= _SKEW_REFUSED_SECONDS:
        return Finding(part, State.FAILED, f"{text}: it refuses what is signed here.", _SET_CLOCK)
    return Finding(part, State.WARNING, f"{text}.", _SET_CLOCK)


async def check_directory(acme: AcmeSettings) -> AsyncIterator[Finding]:
    """Whether the authority can be reached, and is one."""
    # Reading the directory takes no account: neither the store nor the keyring is used.
    async with _authority(acme, Store("unix:///"), Keyring(())) as authority:
        try:
            await authority.probe()
        except AuthorityFault as fault:
            remedy = "Check acme.directory and acme.ca_bundle, and the way to the authority."
            yield Finding("acme", State.FAILED, f"{acme.directory}: {fault.detail}", remedy)
        else:
            yield Finding("acme", State.OK, f"{acme.directory} answers.")


async def check_redis(settings: Settings) -> AsyncIterator[Finding]:
    """Redis and what it keeps; then the ACME account, whose key lies in it."""
    try:
        async with _redis(settings) as (url, where):
            persistence = await read_persistence(url)
            for loss in losses(persistence):
                yield _persistence_finding(loss, f"Redis {persistence.version} answers {where}")
            if settings.acme is not None:
                async for finding in _check_account(settings.acme, settings.keyring_file, url):
                    yield finding
    except EmbeddedRedisFault as fault:
        yield Finding("redis", State.FAILED, f"{fault}.")
    except StoreUnavailable as fault:
        text = f"{_place(settings.redis)} cannot be used: {fault}"
        yield Finding("redis", State.FAILED, text, "Start it, or correct redis.url.")


def _persistence_finding(loss: Loss, opening: str) -> Finding:
    state, text, remedy = _LOSSES[loss]
    return Finding("redis", state, f"{opening}; {text}.", remedy)


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
    url = urlsplit(redis.url)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


async def _check_account(
    acme: AcmeSettings, keyring_file: Path, redis_url: str
) -> AsyncIterator[Finding]:
    part = "acme account"
    try:
        keyring = load_keyring(keyring_file)
    except KeyringInvalid:
        return  # told already
    store = Store(redis_url)
    accounts = RedisAccountStore(store, keyring, acme.directory)
    try:
        async with _authority(acme, store, keyring) as authority:
            known = await accounts.load()
            # With its URL forgotten the account is asked for again, which a CA answers with the
            # one it has for the key (RFC 8555 section 7.3.1); else the memory would be believed.
            await accounts.set_url(None)
            await authority.ensure_account()
            account = await accounts.load()
    except AuthorityFault as fault:
        if fault.kind not in (FaultKind.UNREACHABLE, FaultKind.SERVER_ERROR):  # the directory tells
            yield Finding(part, State.FAILED, fault.detail, "Check acme.contact and acme.eab.")
    except SealBroken:
        text = "The stored account key does not open: it was sealed under another keyring."
        yield Finding(part, State.FAILED, text, "Put the former key back into the keyring.")
    except StoreRefused as fault:
        yield Finding(part, State.FAILED, f"{fault}.")
    else:
        url = account.url if account is not None else None
        new = "" if known is not None and known.url == url else "now "
        yield Finding(part, State.OK, f"The authority {new}has the account {url}.")


@contextlib.asynccontextmanager
async def _authority(
    acme: AcmeSettings, store: Store, keyring: Keyring
) -> AsyncIterator[Authority]:
    authority = build_authority(acme, store, keyring)
    try:
        yield authority
    finally:
        await authority.close()
        await store.close()
