"""A line: many callers on one connection, each with its own answer, whatever others do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import hiredis
import pytest
import redis

from gateway import measures
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.nodes import COMMAND_TIMEOUT_SECONDS, MAX_CONNECTIONS, Node, may_share
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import read_until
from tests.lab.redis import RedisProcess, ask_redis, start_redis
from tests.lab.tls import write_server_certificate

CALLERS = 5 * MAX_CONNECTIONS
STEPS_OF_A_CALL = 20
"""Of the event loop: more than one call takes."""

KILL_ALL = ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path)
    with redis.Redis(port=server.port) as writing, writing.pipeline() as together:
        for number in range(CALLERS):
            together.hset(key_of(number), mapping=dict(fields_of(number)))
        together.execute()
    yield server
    server.stop()


@pytest.fixture
async def store(own_redis: RedisProcess) -> AsyncIterator[Store]:
    opened = Store(own_redis.url)
    await opened.fields(key_of(0))
    yield opened
    await opened.close()


def key_of(number: int) -> str:
    return f"gw:line:{number}"


def fields_of(number: int) -> dict[str, str]:
    return {"number": str(number)}


async def read_all(store: Store) -> list[dict[str, str]]:
    return await asyncio.gather(*(store.fields(key_of(number)) for number in range(CALLERS)))


def connections(redis: RedisProcess) -> int:
    """How many the gateway has: all but the one that asks."""
    return str(ask_redis(redis.port, "CLIENT", "LIST")).count("id=") - 1


async def test_callers_share_one_connection_and_get_their_own_answers(
    store: Store, own_redis: RedisProcess
) -> None:
    assert await read_all(store) == [fields_of(number) for number in range(CALLERS)]
    assert connections(own_redis) == 1


async def test_whoever_gives_up_leaves_the_others_their_answers(store: Store) -> None:
    given_up = 0
    for steps in range(STEPS_OF_A_CALL):
        tasks = [asyncio.create_task(store.fields(key_of(number))) for number in range(CALLERS)]
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        await asyncio.wait(tasks)
        given_up += sum(task.cancelled() for task in tasks[::3])
        for number, task in enumerate(tasks):
            assert task.cancelled() or task.result() == fields_of(number)
        assert not any(task.cancelled() for task in tasks[1::3] + tasks[2::3])
        assert await store.fields(key_of(7)) == fields_of(7)
    assert given_up > CALLERS // 3  # some before they had asked, some after


async def test_calls_on_a_connection_that_has_died_are_answered(
    store: Store, own_redis: RedisProcess
) -> None:
    # The loop does not run meanwhile, so nobody here knows of it.
    ask_redis(own_redis.port, *KILL_ALL)
    assert await read_all(store) == [fields_of(number) for number in range(CALLERS)]
    assert connections(own_redis) == 1


async def test_answer_that_came_too_late_is_nobody_elses(
    store: Store, own_redis: RedisProcess
) -> None:
    own_redis.process.pause()
    try:
        with pytest.raises(StoreUnavailable):
            await store.fields(key_of(1))
    finally:
        own_redis.process.resume()
    assert await store.fields(key_of(2)) == fields_of(2)
    assert await read_all(store) == [fields_of(number) for number in range(CALLERS)]


async def test_refusal_is_its_callers_alone(store: Store, own_redis: RedisProcess) -> None:
    ask_redis(own_redis.port, "SET", "gw:text", "no hash")
    refused, *read = await asyncio.gather(
        store.fields("gw:text"),
        *(store.fields(key_of(number)) for number in range(9)),
        return_exceptions=True,
    )
    assert "WRONGTYPE" in str(refused)
    assert read == [fields_of(number) for number in range(9)]


async def test_bytes_that_are_no_text_come_back_as_they_were(
    store: Store, own_redis: RedisProcess
) -> None:
    odd = b"\xff\x00\r\n\xc3\xa9".decode(errors="surrogateescape")
    await store.put("gw:odd", odd, 60_000)
    assert await store.values(["gw:odd", "gw:none"]) == [odd, None]
    assert await store.fields(f"gw:{odd}") == {}
    assert connections(own_redis) == 1


async def test_line_ends_with_its_store(own_redis: RedisProcess) -> None:
    opened = Store(own_redis.url)
    reading = [asyncio.create_task(opened.fields(key_of(number))) for number in range(9)]
    await opened.fields(key_of(0))
    await opened.close()
    ended = await asyncio.gather(*reading, return_exceptions=True)
    assert all(each == fields_of(number) for number, each in enumerate(ended))
    assert connections(own_redis) == 0


@pytest.fixture
def tls_redis(tmp_path: Path) -> Iterator[str]:
    """The URL of one that speaks TLS at another port than its own."""
    authority, certificate, key = (tmp_path / name for name in ("ca.pem", "own.pem", "key.pem"))
    write_server_certificate(authority, certificate, key, LOOPBACK)
    port = free_port()
    server = start_redis(
        tmp_path,
        *("--tls-port", str(port), "--tls-auth-clients", "no"),
        *("--tls-cert-file", str(certificate), "--tls-key-file", str(key)),
        *("--tls-ca-cert-file", str(authority)),
    )
    yield f"rediss://{LOOPBACK}:{port}/0?ssl_ca_certs={authority}"
    server.stop()


async def test_nothing_breaks_in_the_moment_in_which_a_tls_line_is_lost(tls_redis: str) -> None:
    broken: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: broken.append(fault))
    store = Store(tls_redis)
    await store.fields(key_of(0))
    # It ends its own connection, and one is asked for at each step of the loop until that is known.
    ending = asyncio.create_task(store.values([key_of(0)]))
    killing = asyncio.create_task(store.answers_of_each([(key_of(0), [KILL_ALL])]))
    reading: list[asyncio.Task[dict[str, str]]] = []
    while not killing.done():
        reading.append(asyncio.create_task(store.fields(key_of(len(reading)))))
        await asyncio.sleep(0)
    assert await asyncio.gather(*reading, ending) == [{}] * len(reading) + [[None]]
    await store.close()
    assert not broken


def test_what_waits_or_answers_at_length_shares_no_line() -> None:
    read = ("HGETALL", "gw:x")
    assert may_share([read])
    assert may_share([read, read])
    assert not may_share([("EVALSHA", "digest", 1, "gw:x"), ("WAIT", 1, 200)])
    assert not may_share([("SCAN", "0")])
    assert not may_share([("ASKING",), read])
    assert not may_share([read] * 5)


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that says `answer` to each read: what Redis never does. Its URL, and its reads."""
    reads: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = hiredis.Reader()
        while data := await reader.read(65_536):
            parser.feed(data)
            while (command := parser.gets()) is not False:
                reads.extend([1] * (command[0] == b"HGETALL"))
                writer.write(answer if command[0] == b"HGETALL" else b"+OK\r\n")
        writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"redis://{LOOPBACK}:{port}/0", reads


@pytest.mark.parametrize("nonsense", [b"*0\r\n+more\r\n", b"*0\r\n?\r\n"])
async def test_line_with_an_answer_that_nobody_asked_for_is_given_up(nonsense: bytes) -> None:
    async with answering(nonsense) as (url, reads):
        store = Store(url)
        assert await store.fields("gw:x") == {}
        assert await store.fields("gw:y") == {}
        await store.close()
        assert len(reads) == 2


@pytest.mark.parametrize("answer", [b"?\r\n", b"-LOADING Redis is loading the dataset\r\n"])
async def test_server_that_has_no_answer_is_unavailable(answer: bytes) -> None:
    before = connection_faults()
    async with answering(answer) as (url, _):
        store = Store(url)
        with pytest.raises(StoreUnavailable):
            await store.fields("gw:x")
        await store.close()
    assert connection_faults() == before + 1


async def test_server_that_closes_each_connection_is_unavailable_at_once() -> None:
    """Which no Redis does."""
    opened = 0

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        parser, greetings = hiredis.Reader(), 0
        while greetings < 2:
            parser.feed(await reader.read(65_536))
            while parser.gets() is not False:
                greetings += 1
        writer.write(b"+OK\r\n" * greetings)
        writer.close()

    server = await asyncio.start_server(close, LOOPBACK, 0)
    async with server:
        store = Store(f"redis://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/0")
        with pytest.raises(StoreUnavailable):
            await store.fields("gw:x")
        await store.close()
    assert opened == 2


async def test_connection_that_hangs_is_found_out_though_each_caller_gives_up_sooner() -> None:
    """A firewall that has forgotten it: packets go nowhere."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        hangs = connections == 1
        parser = hiredis.Reader()
        while data := await reader.read(65_536):
            parser.feed(data)
            while (command := parser.gets()) is not False:
                if command[0] == b"CLIENT":
                    writer.write(b"+OK\r\n")
                elif not hangs:
                    writer.write(b"*0\r\n")
        writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    async with server:
        store = Store(f"redis://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/0")

        async def ask() -> dict[str, str] | None:
            try:
                async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS / 8):
                    return await store.fields("gw:x")
            except TimeoutError:
                return None

        assert await read_until(ask, lambda answer: answer is not None, 20) == {}
        await store.close()


async def test_line_that_is_open_only_once_its_server_was_left_is_closed() -> None:
    """As that to a primary which sleeps through its replacement; then nobody hangs up again."""
    has_come, may_answer, was_closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        has_come.set()
        await may_answer.wait()
        writer.write(b"+OK\r\n+OK\r\n")
        await reader.read()
        was_closed.set()
        writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        node = Node((LOOPBACK, port), f"redis://{LOOPBACK}:{port}/0")
        reading = asyncio.create_task(node.exchange([("HGETALL", "gw:x")]))
        await has_come.wait()
        node.is_left = True
        await node.hang_up()
        may_answer.set()
        with pytest.raises(redis.ConnectionError, match="no primary any more"):
            await reading
        await was_closed.wait()
        await node.close()


def connection_faults() -> float:
    name = "gateway_redis_faults_total"
    return measures.REGISTRY.get_sample_value(name, {"fault": "connection"}) or 0.0
