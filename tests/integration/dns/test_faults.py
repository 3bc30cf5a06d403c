"""Lost replies, dead servers, wrong keys and clocks: each answer is true, bounded and says why."""

import asyncio
import base64
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dns.message
import dns.opcode
import pytest
from dns.rcode import Rcode

from gateway.dns.exchange import Exchange, Limits
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Endpoint, TsigKey, Zone, Zones
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    V4_OTHER,
    V6,
    Caller,
    caller_at,
    marker_of,
    owner_of,
    set_clock,
    soon,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import lone_bind
from tests.integration.dns.servers import (
    Meddling,
    black_hole,
    full_backlog,
    lossy_line,
    opcode_of,
    signing_server,
    udp_exchange,
    udp_server,
)
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port

CREATED, UPDATED, DELETED = OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.DELETED
FAILED, UNAVAILABLE, CONFLICT = OutcomeKind.FAILED, OutcomeKind.UNAVAILABLE, OutcomeKind.CONFLICT

IMPATIENT = Exchange(Limits(udp_seconds=0.3, tcp_seconds=1.0))


def lose_first(n: int, reply: bytes) -> bytes | None:
    return None if n == 1 else reply


def spoil_first(n: int, reply: bytes) -> bytes | None:
    return reply[:-20] + bytes(20) if n == 1 else reply


def first_is_servfail(n: int, reply: bytes) -> bytes | None:
    return reply[:3] + bytes([Rcode.SERVFAIL]) + reply[4:10] + bytes(2) if n == 1 else reply


@pytest.mark.parametrize("change", [lose_first, spoil_first, first_is_servfail])
@pytest.mark.parametrize("with_tcp", [True, False], ids=["tcp", "no tcp"])
async def test_answer_is_true_when_the_first_reply_proves_nothing(
    bind: BindPair,
    hostname: str,
    hand: Hand,
    change: Callable[[int, bytes], bytes | None],
    with_tcp: bool,
) -> None:
    owner = owner_of(hostname)
    for kind, record in ((CREATED, V4), (UPDATED, V4_OTHER), (UPDATED, V6)):
        async with lossy_line(bind.primary, change, with_tcp=with_tcp) as endpoint:
            zones = Zones([zone_at(endpoint, bind.tsig)])
            caller = Caller(Publisher(zones, MARKERS, IMPATIENT), owner)
            outcome = await caller.publish(record)
        assert (outcome.kind, outcome.record) == (kind, record)
        assert hand.records(hostname) == {
            f"{record.ttl} {record.type} {record.value}",
            f"{record.ttl} {marker_of(owner, record)}",
        }
    async with lossy_line(bind.primary, change, with_tcp=with_tcp) as endpoint:
        zones = Zones([zone_at(endpoint, bind.tsig)])
        outcome = await Caller(Publisher(zones, MARKERS, IMPATIENT), owner).withdraw()
    assert outcome.kind is DELETED
    # Also where only the message whose reply was lost can have taken it out.
    assert [(each.type, each.value) for each in outcome.removed] == [(V6.type, V6.value)]
    assert (outcome.unmarked, outcome.left) == (True, ())
    assert hand.records(hostname) == set()


async def test_lost_reply_of_a_refused_update_is_a_conflict(
    bind: BindPair, caller: Caller, hand: Hand
) -> None:
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")
    async with lossy_line(bind.primary, lose_first, with_tcp=True) as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig), IMPATIENT).publish(V4)
    assert outcome.kind is CONFLICT


async def test_conflict_with_what_was_published_itself_is_an_unknown_outcome(
    bind: BindPair, caller: Caller, hand: Hand
) -> None:
    def lose_and_add(n: int, reply: bytes) -> bytes | None:
        if n == 1:
            hand.add(f"{caller.hostname} 300 A 203.0.113.9")
        return lose_first(n, reply)

    async with lossy_line(bind.primary, lose_and_add, with_tcp=True) as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig), IMPATIENT).publish(V4)
    assert (outcome.kind, outcome.unknown) == (FAILED, True)


async def test_unknown_outcome_that_can_not_be_read_is_told_and_settled_later(
    bind: BindPair, caller: Caller, hand: Hand
) -> None:
    is_dead = False

    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        nonlocal is_dead
        if is_dead:
            return
        reply = await udp_exchange(bind.primary, wire)
        if opcode_of(wire) == dns.opcode.UPDATE:
            is_dead = True
        else:
            answer(reply)

    async with udp_server(serve) as endpoint:
        far = caller.through(zone_at(endpoint, bind.tsig), IMPATIENT)
        outcome = await far.publisher.publish(
            caller.owner, V4, held=False, remembered=None, deadline=soon() - 9.0
        )
    assert (outcome.kind, outcome.unknown, outcome.record) == (FAILED, True, None)
    assert outcome.retry_after_seconds is not None
    assert f"300 A {V4.value}" in hand.records(caller.hostname)
    assert (await caller.publish(V4)).kind is OutcomeKind.UNCHANGED


async def test_cut_that_appears_after_a_lost_reply_leaves_the_outcome_unknown(
    bind: BindPair, hand: Hand, fresh_label: str, call: Callable[[str], Caller]
) -> None:
    cut = f"{fresh_label}.example.test"

    def change(_n: int, _reply: bytes) -> None:
        hand.add(f"{cut} 300 NS ns.example.org.")

    async with lossy_line(bind.primary, change, with_tcp=False) as endpoint:
        zone = zone_at(endpoint, bind.tsig)
        outcome = await call(f"relay.{cut}").through(zone, IMPATIENT).publish(V4)
    assert (outcome.kind, outcome.unknown) == (FAILED, True)
    assert "delegated" in outcome.detail


@pytest.mark.parametrize("rcode", [Rcode.REFUSED, Rcode.NOTAUTH, Rcode.NOTIMP, Rcode.FORMERR])
async def test_signed_refusal_of_the_update_fails_with_its_words(
    bind: BindPair, caller: Caller, hand: Hand, rcode: Rcode
) -> None:
    def judge(request: dns.message.Message) -> Rcode | None:
        return rcode if request.opcode() == dns.opcode.UPDATE else None

    async with signing_server(bind.primary, bind.tsig, judge) as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig)).publish(V4)
    assert (outcome.kind, outcome.unknown) == (FAILED, False)
    assert rcode.name in outcome.detail
    assert hand.records(caller.hostname) == set()


async def test_signed_servfail_of_an_update_is_tried_again_and_then_unknown(
    bind: BindPair, caller: Caller
) -> None:
    updates = 0

    def judge(request: dns.message.Message) -> Rcode | None:
        nonlocal updates
        if request.opcode() != dns.opcode.UPDATE:
            return None
        updates += 1
        return Rcode.SERVFAIL

    async with signing_server(bind.primary, bind.tsig, judge) as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig)).publish(V4)
    assert (outcome.kind, outcome.unknown, updates) == (FAILED, True, 4)
    assert "SERVFAIL" in outcome.detail


async def test_servfail_while_only_looking_is_unavailable(
    bind: BindPair, caller: Caller, hand: Hand
) -> None:
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")

    def judge(request: dns.message.Message) -> Rcode | None:
        return Rcode.SERVFAIL if request.opcode() == dns.opcode.UPDATE else None

    async with signing_server(bind.primary, bind.tsig, judge) as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig)).inspect()
    assert (outcome.kind, outcome.unknown) == (UNAVAILABLE, False)


async def test_lost_reply_while_only_looking_is_unavailable(
    bind: BindPair, caller: Caller, hand: Hand
) -> None:
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")
    async with lossy_line(bind.primary, lose_first, with_tcp=False) as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig), IMPATIENT).inspect()
    assert (outcome.kind, outcome.unknown) == (UNAVAILABLE, False)


async def test_secret_is_in_no_output_whatever_goes_wrong(
    bind: BindPair,
    caller: Caller,
    zone: Zone,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = TsigKey("gateway", "hmac-sha256", b"wrong-secret-wrong-secret-wrong!")
    nowhere = replace(zone, primary=Endpoint(LOOPBACK, free_port()))
    outcomes = [
        await caller.through(each).publish(V4) for each in (zone, replace(zone, key=wrong), nowhere)
    ]
    captured = capfd.readouterr()
    said = f"{outcomes}{captured.out}{captured.err}"
    assert "dns exchange" in said
    assert "wrong-secret" not in said
    for secret in (wrong.secret, zone.key.secret):
        assert base64.b64encode(secret).decode() not in said
        assert repr(secret) not in said


async def test_answer_without_authority_is_unavailable_for_now(
    bind: BindPair, caller: Caller
) -> None:
    async with signing_server(bind.primary, bind.tsig, lambda _: Rcode.NOERROR) as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig)).publish(V4)
    assert outcome.kind is UNAVAILABLE
    assert outcome.retry_after_seconds is not None
    assert "authority" in outcome.detail


async def test_server_without_tcp_and_with_short_answers_to_any_is_read_whole(
    tmp_path: Path,
) -> None:
    """`minimal-any`: over UDP an ANY query is answered with one RRset of several."""
    with lone_bind(tmp_path, {"parent.test": ""}, options="minimal-any yes;") as server:
        async with lossy_line(server.primary, lambda _, reply: reply, with_tcp=False) as endpoint:
            zone = zone_at(endpoint, server.tsig, "parent.test")
            caller = caller_at("x.parent.test", zone)
            kinds = [(await caller.publish(record)).kind for record in (V4, V4, V6, V6)]
            assert kinds == [CREATED, OutcomeKind.UNCHANGED, UPDATED, OutcomeKind.UNCHANGED]
            assert (await caller.withdraw()).kind is DELETED


async def test_tcp_that_takes_no_connection_is_done_without(
    bind: BindPair, caller: Caller, hand: Hand
) -> None:
    async with lossy_line(bind.primary, lambda _, reply: reply, with_tcp=False) as endpoint:
        far = caller.through(zone_at(endpoint, bind.tsig), Exchange(Limits(connect_seconds=0.2)))
        with full_backlog(endpoint.port):
            assert (await far.publish(V4)).kind is CREATED
    assert f"300 A {V4.value}" in hand.records(caller.hostname)


async def test_update_too_large_for_a_datagram_goes_over_tcp(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)
    hand.add(*(f'{caller.hostname} 900 TXT "{n:03}{"x" * 100}"' for n in range(20)))
    exchange = Meddling(lambda n: None)
    assert (await caller.through(zone, exchange).publish(V6)).kind is UPDATED
    assert [each for each in exchange.asked if each != "tcp query"] == ["tcp update"]
    assert len(hand.records(caller.hostname)) == 22


async def test_black_hole_is_unavailable_before_the_deadline(
    bind: BindPair, caller: Caller
) -> None:
    async with black_hole() as endpoint:
        outcome = await caller.through(zone_at(endpoint, bind.tsig)).publish(V4)
    assert outcome.kind is UNAVAILABLE
    assert outcome.retry_after_seconds is not None
    assert str(endpoint) in outcome.detail
    assert "example.test" in outcome.detail


async def test_nobody_listening_is_unavailable(bind: BindPair, caller: Caller) -> None:
    endpoint = Endpoint(LOOPBACK, free_port())
    outcome = await caller.through(zone_at(endpoint, bind.tsig)).publish(V4)
    assert outcome.kind is UNAVAILABLE
    assert "refused" in outcome.detail
    assert (
        await caller.through(zone_at(endpoint, bind.tsig)).publisher.records_at(
            caller.hostname, soon()
        )
        == ()
    )


async def test_server_name_without_address_is_unavailable(bind: BindPair, caller: Caller) -> None:
    outcome = await caller.through(zone_at(("no-such-host.invalid", 53), bind.tsig)).publish(V4)
    assert outcome.kind is UNAVAILABLE
    assert "No address" in outcome.detail


async def test_server_may_be_configured_by_name(bind: BindPair, caller: Caller) -> None:
    zone = zone_at(("localhost", bind.primary[1]), bind.tsig)
    assert (await caller.through(zone).publish(V4)).kind is CREATED


async def test_call_without_time_left_is_unavailable(caller: Caller) -> None:
    outcome = await caller.publisher.publish(
        caller.owner, V4, held=False, remembered=None, deadline=0.0
    )
    assert outcome.kind is UNAVAILABLE
    assert "time" in outcome.detail


async def test_dead_zone_delays_no_other_zone(bind: BindPair, hostname: str, zone: Zone) -> None:
    async with black_hole() as endpoint:
        dead = zone_at(endpoint, bind.tsig, "example.net.test")
        publisher = Publisher(Zones([zone, dead]), MARKERS, Exchange())
        waiting = [
            asyncio.ensure_future(Caller(publisher, owner_of(f"n{n}.example.net.test")).publish())
            for n in range(50)
        ]
        assert (await Caller(publisher, owner_of(hostname)).publish(V4)).kind is CREATED
        assert not any(each.done() for each in waiting)
        assert {(await each).kind for each in waiting} == {UNAVAILABLE}


@pytest.mark.parametrize(
    ("key", "word"),
    [
        (TsigKey("nobody", "hmac-sha256", b"x" * 32), "BADKEY"),
        (TsigKey("gateway", "hmac-sha256", b"wrong-secret-wrong-secret-wrong!"), "BADSIG"),
        (TsigKey("gateway", "hmac-sha512", b"x" * 64), "BADKEY"),
    ],
    ids=["unknown name", "wrong secret", "wrong algorithm"],
)
async def test_wrong_key_fails_and_says_which(
    bind: BindPair, caller: Caller, zone: Zone, key: TsigKey, word: str
) -> None:
    outcome = await caller.through(replace(zone, key=key)).publish(V4)
    assert (outcome.kind, outcome.unknown) == (FAILED, False)
    assert outcome.retry_after_seconds is not None
    for expected in (word, key.name, "example.test", str(zone.primary)):
        assert expected in outcome.detail
    assert "wrong-secret" not in repr(outcome)


@pytest.mark.parametrize(("ours", "words"), [(3600, "behind"), (-3600, "ahead of")])
async def test_clock_that_is_off_fails_and_says_by_how_much(
    monkeypatch: pytest.MonkeyPatch, caller: Caller, ours: int, words: str
) -> None:
    set_clock(monkeypatch, lambda: time.time() + ours)
    outcome = await caller.publish(V4)
    assert outcome.kind is FAILED
    assert "BADTIME" in outcome.detail
    assert words in outcome.detail
    assert any(f"{seconds} s" in outcome.detail for seconds in (3599, 3600, 3601))


async def test_server_that_refuses_updates_fails_and_says_so(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"parent.test": ""}, permission="allow-update { none; };") as server:
        zone = zone_at(server.primary, server.tsig, "parent.test")
        caller = caller_at("x.parent.test", zone)
        outcome = await caller.publish(V4)
    assert (outcome.kind, outcome.unknown) == (FAILED, False)
    for word in ("REFUSED", "update", "parent.test", "gateway"):
        assert word in outcome.detail


@pytest.mark.parametrize("algorithm", ["hmac-sha256", "hmac-sha384", "hmac-sha512"])
async def test_all_usual_algorithms_sign(tmp_path: Path, algorithm: str) -> None:
    with lone_bind(tmp_path, {"parent.test": ""}, algorithm=algorithm) as server:
        zone = zone_at(server.primary, server.tsig, "parent.test")
        caller = caller_at("x.parent.test", zone)
        assert (await caller.publish(V4)).kind is CREATED
