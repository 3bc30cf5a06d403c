"""Updates of many names at once: joined in few messages, and each answered as if it were alone.

How many messages there are is no promise but for one name's: it depends on how fast BIND answers.
So what is asserted is that some were joined, and that every answer and every record is as it is
when each call is made by itself.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

import dns.message
import dns.opcode
import pytest

from gateway.dns.exchange import Limits, Over
from gateway.dns.lanes import APART_SECONDS, MOST_JOINED
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import Update
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.at_once import (
    CONFLICT,
    CREATED,
    FAILED,
    NAMES,
    UNAVAILABLE,
    Noting,
    Taking,
    callers,
    forgetful_line,
    kinds,
    publish_all,
)
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    V4_OTHER,
    Caller,
    owner_of,
    shown,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import lone_bind
from tests.integration.dns.servers import (
    refusal,
    withholding_server,
)
from tests.integration.dns.test_races import FOREIGN
from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.ports import LOOPBACK, free_port


async def test_many_names_at_once_are_created_in_fewer_messages(
    zone: Zone, hand: Hand, fresh_label: str
) -> None:
    exchange = Noting()
    some = callers(exchange, zone, fresh_label)
    assert kinds(await publish_all(some)) == {CREATED}
    assert len(exchange.updates) < NAMES
    assert max(map(len, exchange.updates)) <= MOST_JOINED
    assert sorted(name for names in exchange.updates for name in names) == sorted(
        each.hostname for each in some
    )
    for each in some:
        assert hand.records(each.hostname) == shown(each, V4)


async def test_joined_replacements_and_withdrawals_leave_what_others_wrote(
    zone: Zone, hand: Hand, fresh_label: str
) -> None:
    exchange = Noting()
    some = callers(exchange, zone, fresh_label)
    await publish_all(some)
    foreign = '900 TXT "spf of somebody"'
    hand.add(*(f"{each.hostname} {foreign}" for each in some[::3]))
    exchange.updates.clear()
    assert kinds(await publish_all(some, V4_OTHER)) == {OutcomeKind.UPDATED}
    assert exchange.joined
    exchange.updates.clear()
    withdrawn = await asyncio.gather(*(each.withdraw() for each in some))
    assert kinds(withdrawn) == {OutcomeKind.DELETED}
    assert exchange.joined
    for n, each in enumerate(some):
        left = {foreign} if n % 3 == 0 else set()
        assert hand.records(each.hostname) == left


async def test_one_name_by_itself_is_sent_at_once_and_alone(zone: Zone, fresh_label: str) -> None:
    exchange = Noting()
    (first, second) = callers(exchange, zone, fresh_label, 2)
    await first.publish(V4)
    await second.publish(V4)
    assert exchange.updates == [{first.hostname}, {second.hostname}]


async def test_conflict_of_one_is_answered_to_that_one_alone(
    zone: Zone, hand: Hand, fresh_label: str
) -> None:
    """Somebody takes two of the names after they were read and before the update is sent."""
    exchange = Taking(hand)
    some = callers(exchange, zone, fresh_label)
    exchange.taken = [some[7].hostname, some[30].hostname]
    outcomes = await publish_all(some)
    assert any(names.intersection(exchange.taken) for names in exchange.joined)
    read_again = {name for name in exchange.queries if exchange.queries.count(name) > 1}
    assert read_again == set(exchange.taken)
    for each, outcome in zip(some, outcomes, strict=True):
        if each.hostname in exchange.taken:
            assert outcome.kind is CONFLICT
            assert [found.value for found in outcome.found] == ["203.0.113.7"]
            assert hand.records(each.hostname) == {FOREIGN}
        else:
            assert outcome.kind is CREATED
            assert hand.records(each.hostname) == shown(each, V4)


async def test_names_below_a_cut_made_meanwhile_are_refused_and_no_others(
    zone: Zone, hand: Hand, fresh_label: str
) -> None:
    class Cutting(Noting):
        async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
            if isinstance(request, Update) and request.changes and not self.updates:
                hand.add(f"{fresh_label}.{zone.name} 300 NS ns.elsewhere.test.")
            return await super().ask(peer, request, over=over, deadline=deadline)

    exchange = Cutting()
    publisher = Publisher(Zones([zone]), MARKERS, exchange)
    below = [
        Caller(publisher, owner_of(f"n{n}.{fresh_label}.{zone.name}")) for n in range(NAMES // 2)
    ]
    beside = callers(exchange, zone, f"{fresh_label}b", NAMES // 2)
    outcomes = await publish_all(
        [each for pair in zip(below, beside, strict=True) for each in pair]
    )
    assert kinds(outcomes[::2]) == {UNAVAILABLE}
    assert all("delegat" in outcome.detail for outcome in outcomes[::2])
    assert kinds(outcomes[1::2]) == {CREATED}
    assert not any(hand.records(each.hostname) for each in below)


async def test_calls_for_one_name_at_once_are_never_in_one_message(
    zone: Zone, hand: Hand, fresh_label: str
) -> None:
    exchange = Noting()
    others = callers(exchange, zone, fresh_label, 10)
    same = [Caller(others[0].publisher, others[0].owner) for _ in range(10)]
    outcomes = await publish_all([*same, *others])
    assert kinds(outcomes) <= {CREATED, OutcomeKind.UNCHANGED}
    assert [outcome.kind for outcome in outcomes[:11]].count(CREATED) == 1
    for each in others:
        assert hand.records(each.hostname) == shown(each, V4)


async def test_caller_that_gives_up_takes_nobodys_answer_away(
    zone: Zone, hand: Hand, fresh_label: str
) -> None:
    exchange = Noting()
    some = callers(exchange, zone, fresh_label)
    tasks = [asyncio.ensure_future(each.publish(V4)) for each in some]
    gone = range(3, NAMES, 4)
    await exchange.has_begun.wait()
    for n in gone:
        tasks[n].cancel()
        await asyncio.sleep(0)
    for n, (task, each) in enumerate(zip(tasks, some, strict=True)):
        if n in gone:
            with suppress(asyncio.CancelledError):
                await task
            assert hand.records(each.hostname) in (set(), shown(each, V4))
        else:
            assert (await task).kind is CREATED
            assert hand.records(each.hostname) == shown(each, V4)


async def test_call_without_time_is_told_so_while_the_others_go_on(
    bind: BindPair, hand: Hand, fresh_label: str
) -> None:
    """Nothing answers updates for a second; who can't wait that long does not know the outcome."""
    async with forgetful_line(bind.primary, lambda n: n < 6) as line:
        zone = zone_at(line, bind.tsig)
        exchange = Noting(Limits(udp_seconds=1.0))
        some = callers(exchange, zone, fresh_label, 20)
        loop = asyncio.get_running_loop()
        outcomes = await asyncio.gather(
            *(
                each.publisher.publish(
                    each.owner,
                    V4,
                    held=False,
                    remembered=None,
                    deadline=loop.time() + (0.5 if n % 4 == 3 else 10.0),
                )
                for n, each in enumerate(some)
            )
        )
    assert kinds([outcome for n, outcome in enumerate(outcomes) if n % 4 != 3]) == {CREATED}
    assert kinds(outcomes[3::4]) <= {CREATED, FAILED, UNAVAILABLE}
    for each, outcome in zip(some, outcomes, strict=True):
        found = hand.records(each.hostname)
        assert found == shown(each, V4) or (outcome.kind is not CREATED and not found)
        assert outcome.kind is CREATED or not found or outcome.unknown


@pytest.mark.parametrize("loses", ["the first answers", "each second answer"])
async def test_lost_answers_are_settled_for_each_name(
    loses: str, bind: BindPair, hand: Hand, fresh_label: str
) -> None:
    def is_lost(n: int) -> bool:
        return n <= 4 if loses == "the first answers" else n % 2 == 0

    async with forgetful_line(bind.primary, is_lost) as line:
        zone = zone_at(line, bind.tsig)
        exchange = Noting(Limits(udp_seconds=0.3, tcp_seconds=0.5))
        some = callers(exchange, zone, fresh_label, 24)
        assert kinds(await publish_all(some)) == {CREATED}
    for each in some:
        assert hand.records(each.hostname) == shown(each, V4)


async def test_server_that_refuses_joined_updates_gets_each_by_itself(
    bind: BindPair, hand: Hand, fresh_label: str
) -> None:
    """A fake for a server with such a limit: no real one here has it."""
    refused: list[int] = []

    def judge(request: dns.message.Message) -> dns.message.Message | None:
        names = {rrset.name for rrset in request.sections[2]}
        if request.opcode() != dns.opcode.UPDATE or len(names) < 2:
            return None
        refused.append(len(names))
        return refusal(request)

    async with withholding_server(bind.primary, bind.tsig, judge) as server:
        exchange = Noting()
        some = callers(exchange, zone_at(server, bind.tsig), fresh_label, 12)
        assert kinds(await publish_all(some)) == {CREATED}
        told = len(refused)
        more = callers(exchange, zone_at(server, bind.tsig), f"{fresh_label}m", 12)
        assert kinds(await publish_all(more)) == {CREATED}
        assert len(refused) == told, f"within {APART_SECONDS} s it is not tried again"
    for each in (*some, *more):
        assert hand.records(each.hostname) == shown(each, V4)


async def test_names_that_the_key_may_not_change_are_refused_and_no_others(
    tmp_path: Path, fresh_label: str
) -> None:
    """BIND refuses a message as a whole for one name that its update-policy does not grant."""
    policy = "update-policy { grant gateway subdomain granted.example.test. ANY; };"
    with lone_bind(tmp_path, {"example.test": ""}, permission=policy) as server:
        zone, exchange = zone_at(server.primary, server.tsig), Noting()
        publisher = Publisher(Zones([zone]), MARKERS, exchange)
        some = [
            Caller(publisher, owner_of(f"n{n}.{place}.example.test"))
            for n in range(10)
            for place in ("granted", "other")
        ]
        outcomes = await publish_all(some)
        hand = Hand(server.primary, server.tsig)
        assert exchange.joined
        assert kinds(outcomes[::2]) == {CREATED}
        assert kinds(outcomes[1::2]) == {FAILED}
        for each in some[::2]:
            assert hand.records(each.hostname) == shown(each, V4)
        for each, outcome in zip(some[1::2], outcomes[1::2], strict=True):
            assert each.hostname in outcome.detail
            assert not hand.records(each.hostname)


async def test_names_too_long_for_a_datagram_are_joined_all_the_same(
    zone: Zone, hand: Hand, fresh_label: str
) -> None:
    exchange = Noting()
    stem = f"{'long.' * 30}{fresh_label}"
    publisher = Publisher(Zones([zone]), MARKERS, exchange)
    some = [Caller(publisher, owner_of(f"n{n}.{stem}.{zone.name}")) for n in range(NAMES)]
    assert kinds(await publish_all(some)) == {CREATED}
    assert exchange.joined
    for each in some:
        assert hand.records(each.hostname) == shown(each, V4)


async def test_primary_killed_meanwhile_leaves_each_name_whole(
    tmp_path: Path, fresh_label: str
) -> None:
    bind = start_bind_pair(tmp_path, ["example.test"])
    try:

        def again() -> None:
            bind.primary_process.kill()
            bind.start_primary()

        class Killing(Noting):
            killing: asyncio.Future[None] | None = None

            async def ask(
                self, peer: Peer, request: Request, *, over: Over, deadline: float
            ) -> Reply:
                if self.joined and self.killing is None:
                    self.killing = asyncio.ensure_future(asyncio.to_thread(again))
                return await super().ask(peer, request, over=over, deadline=deadline)

        exchange = Killing(Limits(udp_seconds=0.5, tcp_seconds=0.5))
        some = callers(exchange, zone_at(bind.primary, bind.tsig), fresh_label, 64)
        outcomes = await publish_all(some)
        assert exchange.killing is not None
        await exchange.killing
        hand = Hand.at(bind)
        for each, outcome in zip(some, outcomes, strict=True):
            found = hand.records(each.hostname)
            assert found in (shown(each, V4), set())
            assert bool(found) is (outcome.kind is CREATED) or outcome.unknown
        assert kinds(await publish_all(some)) <= {CREATED, OutcomeKind.UNCHANGED}
        assert all(hand.records(each.hostname) == shown(each, V4) for each in some)
    finally:
        bind.stop()


async def test_dead_server_is_told_of_to_each(bind: BindPair, fresh_label: str) -> None:
    zone = zone_at(Endpoint(LOOPBACK, free_port()), bind.tsig)
    outcomes = await publish_all(callers(Noting(), zone, fresh_label))
    assert kinds(outcomes) == {UNAVAILABLE}
