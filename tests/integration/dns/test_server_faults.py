"""What a DNS server says or does wrong: what the caller is told, and what the zone holds then.

Said by a fake where BIND can't be made to say it (signed as BIND would, or not at all); a killed
server, a wrong key and a foreign zone are real.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from dns.rcode import Rcode

from gateway.dns.challenges import Challenges, ChallengeTarget
from gateway.dns.errors import ChallengeUnavailable, DnsFault, OutcomeUnknown, ServerRefused
from gateway.dns.exchange import Exchange, Limits
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.zones import TsigKey, Zone, Zones
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    Caller,
    caller_at,
    owner_of,
    set_clock,
    soon,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lines import answering, line, swallowing
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.integration.dns.servers import Meddling, lossy_line
from tests.lab.bind import BindPair

IMPATIENT = Limits(udp_seconds=0.2)
CREATED, UNKNOWN = OutcomeKind.CREATED, True
FAILED, UNAVAILABLE = OutcomeKind.FAILED, OutcomeKind.UNAVAILABLE
VALUE = "challenge-value"
ERRORS = (Rcode.FORMERR, Rcode.NOTIMP, Rcode.REFUSED, Rcode.NOTAUTH, Rcode.NOTZONE)
NEVER_SAID = (Rcode.YXDOMAIN, Rcode.NXRRSET)
"""Nothing that an update without prerequisites can be answered with, nor a query."""


def challenge_at(zone: Zone, hostname: str) -> ChallengeTarget:
    return ChallengeTarget(zone, f"_acme-challenge.{hostname}")


def patience(*, signed: bool) -> Limits:
    """An answer without a signature is waited out; one that has it may be late, as BIND's are."""
    return Limits() if signed else IMPATIENT


async def fault_of(call: Awaitable[object]) -> DnsFault:
    with pytest.raises(DnsFault) as caught:
        await call
    return caught.value


def assert_words(detail: str, zone: Zone, *words: str) -> None:
    """Whom it is about is always told, and never the secret."""
    for word in (str(zone.primary), f"zone {zone.name}", f"key {zone.key.name}", *words):
        assert word in detail


# rcode, signed → the kind of outcome of a change, whether it is unknown, and the words.
SAID_TO_UPDATES = [
    *((rcode, True, False, f"answered {rcode.name} to the update") for rcode in ERRORS),
    (Rcode.SERVFAIL, True, True, "answered SERVFAIL to the update"),
    *(
        (rcode, False, True, f"answered {rcode.name} without a signature")
        for rcode in (*ERRORS, *NEVER_SAID, Rcode.SERVFAIL, Rcode.NOERROR)
    ),
]


@pytest.mark.parametrize(("rcode", "signed", "unknown", "words"), SAID_TO_UPDATES)
async def test_error_in_answer_to_updates_fails_and_changes_nothing(
    bind: BindPair,
    caller: Caller,
    hand: Hand,
    rcode: Rcode,
    signed: bool,
    unknown: bool,
    words: str,
) -> None:
    """A signed one is the server's word; an unsigned one may be anybody's, so nothing is known."""
    way = answering(rcode, bind.tsig if signed else None)
    async with line(bind.primary, udp=way, tcp=way) as endpoint:
        zone = zone_at(endpoint, bind.tsig)
        exchange = Exchange(patience(signed=signed))
        outcome = await caller.through(zone, exchange).publish(V4)
        target = challenge_at(zone, caller.hostname)
        challenges = Challenges(Zones([zone]), exchange)
        fault = await fault_of(challenges.publish(target, VALUE, soon()))
    assert (outcome.kind, outcome.unknown) == (FAILED, unknown)
    assert outcome.retry_after_seconds is not None
    assert_words(outcome.detail, zone, words)
    assert isinstance(fault, OutcomeUnknown if unknown else ServerRefused)
    assert_words(fault.detail, zone, words)
    assert hand.records(caller.hostname) == hand.records(target.name) == set()


@pytest.mark.parametrize("rcode", [*ERRORS, *NEVER_SAID, Rcode.SERVFAIL])
async def test_challenge_that_was_not_removed_is_not_called_removed(
    bind: BindPair, hostname: str, hand: Hand, rcode: Rcode
) -> None:
    target = challenge_at(zone_at(bind.primary, bind.tsig), hostname)
    hand.add(f'{target.name} 60 TXT "{VALUE}"')
    way = answering(rcode, bind.tsig)
    async with line(bind.primary, udp=way, tcp=way) as endpoint:
        zone = zone_at(endpoint, bind.tsig)
        challenges = Challenges(Zones([zone]), Exchange(patience(signed=True)))
        fault = await fault_of(challenges.remove(replace(target, zone=zone), VALUE, soon()))
    assert_words(fault.detail, zone, rcode.name)
    assert hand.records(target.name) == {f'60 TXT "{VALUE}"'}


SAID_TO_ALL = [
    *((rcode, True, FAILED) for rcode in (*ERRORS, *NEVER_SAID)),
    (Rcode.SERVFAIL, True, UNAVAILABLE),
    *((rcode, False, FAILED) for rcode in (*ERRORS, Rcode.SERVFAIL)),
]


@pytest.mark.parametrize(("rcode", "signed", "kind"), SAID_TO_ALL)
async def test_error_in_answer_to_everything_is_told_and_nothing_is_written(
    bind: BindPair, caller: Caller, hand: Hand, rcode: Rcode, signed: bool, kind: OutcomeKind
) -> None:
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")
    way = answering(rcode, bind.tsig if signed else None, all_kinds=True)
    async with line(bind.primary, udp=way, tcp=way) as endpoint:
        zone = zone_at(endpoint, bind.tsig)
        exchange = Exchange(patience(signed=signed))
        far = caller.through(zone, exchange)
        outcomes = [await far.publish(V4), await far.withdraw(), await far.inspect()]
        challenges = Challenges(Zones([zone]), exchange)
        fault = await fault_of(challenges.locate(caller.hostname, soon()))
    assert {(each.kind, each.unknown) for each in outcomes} == {(kind, False)}
    assert isinstance(fault, ChallengeUnavailable)
    for detail in (*(each.detail for each in outcomes), fault.detail):
        assert_words(detail, zone, rcode.name)
    assert fault.retry_after_seconds is not None
    assert hand.records(caller.hostname) == {"300 A 203.0.113.7"}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (TsigKey("nobody", "hmac-sha256", b"x" * 32), "does not know the key"),
        (TsigKey("gateway", "hmac-sha256", b"x" * 32), "the secret differs"),
        (
            TsigKey("gateway", "hmac-sha384", b"x" * 48),
            "does not know the key gateway with hmac-sha384",
        ),
    ],
    ids=["BADKEY", "BADSIG", "another algorithm"],
)
async def test_wrong_key_is_told_of_challenges_as_well(
    hostname: str, hand: Hand, zone: Zone, key: TsigKey, words: str
) -> None:
    wrong = replace(zone, key=key)
    challenges = Challenges(Zones([wrong]), Exchange(IMPATIENT))
    target = challenge_at(wrong, hostname)
    faults = [
        await fault_of(challenges.locate(hostname, soon())),
        await fault_of(challenges.publish(target, VALUE, soon())),
        await fault_of(challenges.remove(target, VALUE, soon())),
    ]
    for fault in faults:
        assert_words(fault.detail, wrong, words)
        assert fault.retry_after_seconds is not None
    assert hand.records(target.name) == set()


@pytest.mark.parametrize(("ours", "words"), [(3600, "s behind"), (-3600, "s ahead of")])
async def test_clock_that_is_off_is_told_of_challenges_as_well(
    monkeypatch: pytest.MonkeyPatch, hostname: str, zone: Zone, ours: int, words: str
) -> None:
    """The real BIND's BADTIME; it is our clock that is moved, as dnspython signs by it."""
    set_clock(monkeypatch, lambda: time.time() + ours)
    challenges = Challenges(Zones([zone]), Exchange(IMPATIENT))
    target = challenge_at(zone, hostname)
    for call in (
        challenges.locate(hostname, soon()),
        challenges.publish(target, VALUE, soon()),
        challenges.remove(target, VALUE, soon()),
    ):
        fault = await fault_of(call)
        assert_words(fault.detail, zone, "BADTIME", words)
        assert any(f"its clock is {seconds} " in fault.detail for seconds in (3599, 3600, 3601))


async def test_zone_that_the_server_does_not_have_is_told(bind: BindPair) -> None:
    """The real BIND: REFUSED to a query, NOTAUTH to an update, both signed."""
    zone = zone_at(bind.primary, bind.tsig, "no-zone.test")
    caller = caller_at("x.no-zone.test", zone)
    outcome = await caller.publish(V4)
    assert outcome.kind is FAILED
    assert_words(outcome.detail, zone, "REFUSED")
    challenges = Challenges(Zones([zone]), Exchange())
    target = challenge_at(zone, "x.no-zone.test")
    fault = await fault_of(challenges.remove(target, VALUE, soon()))
    assert isinstance(fault, ServerRefused)
    assert_words(fault.detail, zone, "NOTAUTH", "not as its primary")


async def test_server_killed_before_the_update_is_unavailable_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    with lone_bind(tmp_path, {"parent.test": ""}) as server:
        zone = zone_at(server.primary, server.tsig, "parent.test")
        exchange = Meddling(lambda _: server.process.kill())
        caller = Caller(Publisher(Zones([zone]), MARKERS, exchange), owner_of("x.parent.test"))
        outcome = await caller.publish(V4)
        assert (outcome.kind, outcome.unknown) == (UNAVAILABLE, False)
        assert_words(outcome.detail, zone, "refused")
        restart(server)
        assert Hand(server.primary, server.tsig).records("x.parent.test") == set()


async def test_server_restarted_before_the_update_is_not_noticed(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"parent.test": ""}) as server:
        zone = zone_at(server.primary, server.tsig, "parent.test")

        def meddle(_: int) -> None:
            server.process.kill()
            restart(server)

        caller = Caller(
            Publisher(Zones([zone]), MARKERS, Meddling(meddle)), owner_of("x.parent.test")
        )
        assert (await caller.publish(V4)).kind is CREATED


@pytest.mark.parametrize("takes_it", [True, False], ids=["applied", "not applied"])
async def test_server_restarted_between_update_and_reply_is_answered_truly(
    tmp_path: Path, takes_it: bool
) -> None:
    """Killed with the update in its journal, or with the update in flight."""
    killed = asyncio.Event()
    with lone_bind(tmp_path, {"parent.test": ""}) as server:

        def kill(_: int = 0, __: bytes = b"") -> None:
            server.process.kill()
            killed.set()

        async def kill_instead(request: bytes, ask: Callable[[bytes], Awaitable[bytes]]) -> None:
            kill()
            await swallowing(request, ask)

        dying = (
            lossy_line(server.primary, kill, with_tcp=True)
            if takes_it
            else line(server.primary, udp=kill_instead)
        )
        async with dying as endpoint:
            zone = zone_at(endpoint, server.tsig, "parent.test")
            publisher = Publisher(Zones([zone]), MARKERS, Exchange(IMPATIENT))
            call = asyncio.ensure_future(Caller(publisher, owner_of("x.parent.test")).publish(V4))
            await killed.wait()
            restart(server)
            outcome = await call
        assert (outcome.kind, outcome.record) == (CREATED, V4)
        assert f"300 A {V4.value}" in Hand(server.primary, server.tsig).records("x.parent.test")


def restart(server: LoneBind) -> None:
    server.process.start(lambda: server.serves("parent.test"))
