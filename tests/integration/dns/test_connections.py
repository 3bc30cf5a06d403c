"""TCP connections that are kept for the next query: how many, how long, and what ends them.

The server behind is real where it answers; what counts and closes connections before it is a fake,
since no server can be told when to close.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import dns.message
import dns.rcode
import pytest
from dns.rdatatype import RdataType

from gateway.dns import connections
from gateway.dns.connections import MOST_KEPT, Connections
from gateway.dns.errors import NoReply, OutcomeUnknown, ReplyInvalid, Unreachable
from gateway.dns.exchange import Exchange, Limits, Over
from gateway.dns.names import to_name
from gateway.dns.questions import make_query
from gateway.dns.reading import Reply
from gateway.dns.records import A, address_rdata
from gateway.dns.replies import Peer
from gateway.dns.update import Add, Delete, send_update
from gateway.dns.zones import Endpoint, Zone
from tests.integration.dns.conftest import soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lines import is_update
from tests.integration.dns.servers import framed, tcp_exchange, tcp_server
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import read_until

Answer = Callable[[int, bytes], Awaitable[bytes | None]]
"""What the n-th message of a connection gets, with its length before it; None closes it."""


class Counted:
    """A line over TCP that counts: how many messages each connection carried, which are open."""

    def __init__(self, endpoint: Endpoint, answer: Answer) -> None:
        self.endpoint = endpoint
        self.carried: list[int] = []
        self.open = 0
        self._answer = answer

    async def now_open(self) -> int:
        return self.open

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.carried)
        self.carried.append(0)
        self.open += 1
        try:
            while not reader.at_eof():
                message = await framed(reader)
                self.carried[number] += 1
                answer = await self._answer(self.carried[number], message)
                if answer is None:
                    return
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass  # closed by the gateway
        finally:
            self.open -= 1


@asynccontextmanager
async def counted(answer: Answer) -> AsyncIterator[Counted]:
    line = Counted(Endpoint(LOOPBACK, free_port()), answer)
    async with tcp_server(line.serve, line.endpoint.port):
        yield line


@contextmanager
def keeping(limits: Limits | None = None) -> Iterator[Exchange]:
    exchange = Exchange(limits, keeps_connections=True)
    try:
        yield exchange
    finally:
        exchange.close()


def through(bind: BindPair) -> Answer:
    return lambda _, message: tcp_exchange(bind.primary, message)


async def ask(
    exchange: Exchange, endpoint: Endpoint, bind: BindPair, until: float | None = None
) -> Reply:
    zone = zone_at(endpoint, bind.tsig)
    query = make_query(zone.apex, RdataType.SOA)
    return await exchange.ask(Peer.primary_of(zone), query, over=Over.TCP, deadline=until or soon())


async def carried_by_three(answer: Answer, bind: BindPair) -> list[int]:
    """Ask three times, each answered in the end; how many messages each connection has carried."""
    async with counted(answer) as line:
        with keeping() as exchange:
            for _ in range(3):
                assert (await ask(exchange, line.endpoint, bind)).answer
        return line.carried


async def answer_to(bind: BindPair, message: bytes) -> bytes:
    return (await tcp_exchange(bind.primary, len(message).to_bytes(2, "big") + message))[2:]


async def test_queries_after_each_other_share_a_connection(bind: BindPair) -> None:
    async with counted(through(bind)) as line:
        with keeping() as exchange:
            for _ in range(5):
                assert (await ask(exchange, line.endpoint, bind)).answer
        assert line.carried == [5]
        await read_until(line.now_open, lambda count: count == 0, 10)


async def test_exchange_that_keeps_none_opens_one_for_each(bind: BindPair) -> None:
    async with counted(through(bind)) as line:
        for _ in range(3):
            await ask(Exchange(), line.endpoint, bind)
        assert line.carried == [1, 1, 1]
        await read_until(line.now_open, lambda count: count == 0, 10)


async def test_real_server_answers_many_over_the_connections_that_are_kept(bind: BindPair) -> None:
    with keeping() as exchange:
        for _ in range(10):
            replies = await asyncio.gather(
                *(ask(exchange, Endpoint(*bind.primary), bind) for _ in range(20))
            )
            assert all(reply.answer for reply in replies)


async def test_connection_that_nobody_uses_is_closed(bind: BindPair) -> None:
    async with counted(through(bind)) as line:
        with keeping() as exchange:
            await ask(exchange, line.endpoint, bind)
            assert line.open == 1
            await read_until(line.now_open, lambda count: count == 0, 20)


async def test_of_many_at_once_a_few_are_kept(bind: BindPair) -> None:
    count = 3 * MOST_KEPT
    all_asked = asyncio.Barrier(count)

    async def together(_: int, message: bytes) -> bytes:
        await all_asked.wait()
        return await tcp_exchange(bind.primary, message)

    async with counted(together) as line:
        with keeping() as exchange:
            for _ in range(2):
                await asyncio.gather(*(ask(exchange, line.endpoint, bind) for _ in range(count)))
        assert (len(line.carried), line.carried.count(2)) == (2 * count - MOST_KEPT, MOST_KEPT)


async def test_of_many_at_once_a_few_are_under_way_where_the_server_answers(
    bind: BindPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WAIT_SECONDS", 10.0)
    async with counted(through(bind)) as line:
        with keeping() as exchange:
            replies = await asyncio.gather(
                *(ask(exchange, line.endpoint, bind) for _ in range(5 * MOST_KEPT))
            )
        assert all(reply.answer for reply in replies)
        assert (len(line.carried), sum(line.carried)) == (MOST_KEPT, 5 * MOST_KEPT)


async def test_connection_of_a_cancelled_query_goes_to_the_next_that_waits(
    bind: BindPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WAIT_SECONDS", 10.0)
    may_answer = asyncio.Event()

    async def waiting(_: int, message: bytes) -> bytes:
        await may_answer.wait()
        return await tcp_exchange(bind.primary, message)

    async with counted(waiting) as line:
        with keeping() as exchange:
            asking = (ask(exchange, line.endpoint, bind) for _ in range(2 * MOST_KEPT))
            tasks = [*map(asyncio.create_task, asking)]
            await read_until(line.now_open, lambda count: count == MOST_KEPT, 10)
            # Of those under way and those that wait, every second one.
            for task in tasks[::2]:
                task.cancel()
            may_answer.set()
            replies = await asyncio.gather(*tasks, return_exceptions=True)
            assert sum(isinstance(reply, Reply) for reply in replies) == MOST_KEPT
            again = await asyncio.gather(
                *(ask(exchange, line.endpoint, bind) for _ in range(3 * MOST_KEPT))
            )
        assert len(again) == 3 * MOST_KEPT
        # The connections of those that were under way are closed with them.
        assert len(line.carried) == MOST_KEPT + MOST_KEPT // 2


async def test_connection_given_to_a_query_in_the_moment_of_its_end_goes_to_the_next(
    bind: BindPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WAIT_SECONDS", 10.0)
    monkeypatch.setattr(connections, "MOST_KEPT", 1)
    loop = asyncio.get_running_loop()
    message = make_query(to_name("example.test"), RdataType.SOA).to_wire()
    async with counted(through(bind)) as line:
        kept = Connections(keeps=True)

        def asking(accept: Callable[[bytes], object]) -> asyncio.Task[object]:
            asked = kept.ask(
                line.endpoint, message, accept, again=True, connect_until=soon(), until=soon()
            )
            return asyncio.create_task(asked)

        # Its answer is taken, then it hands its connection on, then the next one is ended.
        first = asking(lambda _: loop.call_soon(second.cancel))
        second, third = asking(len), asking(len)
        await asyncio.wait([first, second, third])
        kept.close()
        assert (second.cancelled(), third.result()) == (True, len(await answer_to(bind, message)))
        assert line.carried == [2]


async def test_query_is_sent_again_when_the_kept_connection_is_closed_instead(
    bind: BindPair,
) -> None:
    async def once(number: int, message: bytes) -> bytes | None:
        return await tcp_exchange(bind.primary, message) if number == 1 else None

    assert await carried_by_three(once, bind) == [2, 2, 1]


async def test_server_that_closes_after_each_answer_is_asked_over_new_ones(
    bind: BindPair,
) -> None:
    port = free_port()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await tcp_exchange(bind.primary, await framed(reader)))

    async with tcp_server(once, port):
        with keeping() as exchange:
            for _ in range(5):
                assert (await ask(exchange, Endpoint(LOOPBACK, port), bind)).answer


async def test_update_never_goes_over_a_kept_connection(
    bind: BindPair, hostname: str, hand: Hand
) -> None:
    """Else one that is closed in that moment would leave the outcome unknown."""
    change = Add(to_name(hostname), 300, address_rdata("A", "198.51.100.1"))

    async def update(exchange: Exchange, zone: Zone) -> None:
        await send_update(exchange, zone, (), (change,), deadline=soon(), prefer=Over.TCP)

    async with counted(through(bind)) as line:
        with keeping() as exchange:
            zone = zone_at(line.endpoint, bind.tsig)
            await ask(exchange, line.endpoint, bind)
            await update(exchange, zone)
            await update(exchange, zone)
        assert line.carried[0] == 1
    assert hand.records(hostname) == {"300 A 198.51.100.1"}


async def test_update_is_not_sent_again_when_its_connection_is_closed(
    bind: BindPair, hostname: str
) -> None:
    updates = 0

    async def refusing(_: int, message: bytes) -> bytes | None:
        nonlocal updates
        if not is_update(message[2:]):
            return await tcp_exchange(bind.primary, message)
        updates += 1
        return None

    change = Delete(to_name(hostname), address_rdata("A", "198.51.100.1"))
    async with counted(refusing) as line:
        with keeping() as exchange:
            await ask(exchange, line.endpoint, bind)
            with pytest.raises(OutcomeUnknown, match="closed the TCP connection"):
                await send_update(
                    exchange,
                    zone_at(line.endpoint, bind.tsig),
                    (),
                    (change,),
                    deadline=soon(),
                    prefer=Over.TCP,
                )
    assert updates == 1


async def test_connection_with_an_answer_too_many_is_not_used_again(bind: BindPair) -> None:
    async def twice(_: int, message: bytes) -> bytes:
        return 2 * await tcp_exchange(bind.primary, message)

    async with counted(twice) as line:
        with keeping() as exchange:
            for _ in range(3):
                assert (await ask(exchange, line.endpoint, bind)).answer
        assert line.carried == [1, 1, 1]


async def test_query_that_meets_a_late_second_answer_is_asked_over_a_new_connection(
    bind: BindPair,
) -> None:
    answers: list[bytes] = []

    async def late(number: int, message: bytes) -> bytes:
        answers.append(await tcp_exchange(bind.primary, message))
        return b"".join(answers[-number:])

    assert await carried_by_three(late, bind) == [2, 2, 1]


async def test_query_waits_for_a_connection_no_longer_than_its_time(
    bind: BindPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WAIT_SECONDS", 10.0)

    over = asyncio.Event()

    async def silent(*_: object) -> None:
        await over.wait()

    async with counted(silent) as line:
        with keeping() as exchange:
            asking = (ask(exchange, line.endpoint, bind) for _ in range(MOST_KEPT))
            tasks = [*map(asyncio.create_task, asking)]
            await read_until(line.now_open, lambda count: count == MOST_KEPT, 10)
            until = asyncio.get_running_loop().time() + 0.1
            with pytest.raises(Unreachable):
                await ask(exchange, line.endpoint, bind, until)
            assert not any(task.done() for task in tasks)
            over.set()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_connection_whose_answer_was_not_believed_is_not_used_again(
    bind: BindPair,
) -> None:
    forge = True

    async def other_id(_: int, message: bytes) -> bytes:
        answer = await tcp_exchange(bind.primary, message)
        return answer[:2] + bytes([answer[2] ^ forge]) + answer[3:]

    async with counted(other_id) as line:
        with keeping() as exchange:
            with pytest.raises(ReplyInvalid, match="not a reply"):
                await ask(exchange, line.endpoint, bind)
            forge = False
            assert (await ask(exchange, line.endpoint, bind)).answer
        assert line.carried == [1, 1]


async def test_silence_on_a_kept_connection_ends_it(bind: BindPair) -> None:
    async def then_silent(number: int, message: bytes) -> bytes | None:
        if number == 2:
            await asyncio.Event().wait()
        return await tcp_exchange(bind.primary, message)

    async with counted(then_silent) as line:
        with keeping(Limits(tcp_seconds=0.5)) as exchange:
            await ask(exchange, line.endpoint, bind)
            with pytest.raises(NoReply, match="in time"):
                await ask(exchange, line.endpoint, bind)
            assert (await ask(exchange, line.endpoint, bind)).rcode == dns.rcode.NOERROR
        assert line.carried == [2, 1]


async def test_cancelled_query_leaves_no_answer_to_the_next_one(bind: BindPair) -> None:
    has_message, may_answer = asyncio.Event(), asyncio.Event()

    async def waiting(_: int, message: bytes) -> bytes:
        has_message.set()
        await may_answer.wait()
        return await tcp_exchange(bind.primary, message)

    async with counted(waiting) as line:
        with keeping() as exchange:
            cancelled = asyncio.create_task(ask(exchange, line.endpoint, bind))
            await has_message.wait()
            cancelled.cancel()
            may_answer.set()
            assert (await ask(exchange, line.endpoint, bind)).answer
        assert line.carried == [1, 1]


async def test_restarted_server_is_asked_anew(bind: BindPair, zone: Zone) -> None:
    with keeping() as exchange:
        peer, query = Peer.primary_of(zone), make_query(zone.apex, A)
        await exchange.ask(peer, query, over=Over.TCP, deadline=soon())
        bind.primary_process.stop()
        bind.start_primary()
        reply = await exchange.ask(peer, query, over=Over.TCP, deadline=soon())
        assert reply.rcode == dns.rcode.NOERROR
