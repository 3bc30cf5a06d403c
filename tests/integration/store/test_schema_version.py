"""The form of the state: written once, refused when newer, brought up from an older one."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import count

import pytest
import redis

from gateway.contract.names import Hostname
from gateway.store import schema_version
from gateway.store.connection import Store
from gateway.store.documents import Change, Documents
from gateway.store.keys import HOST_KEYS, SCHEMA_KEY, host_key
from gateway.store.schema_version import Migration, StateRefused, examine, settle
from tests.lab.redis import RedisProcess, start_redis

MANY = 210


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def renamed(fields: Mapping[str, str]) -> dict[str, str]:
    """A step that gives the field `note` another name, and leaves alone what has it."""
    return {("remark" if name == "note" else name): text for name, text in fields.items()}


def marked(fields: Mapping[str, str]) -> dict[str, str]:
    return {**fields, "marked": "1"}


STEPS = (Migration(HOST_KEYS, renamed), Migration(HOST_KEYS, marked))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    started = start_redis(tmp_path_factory.mktemp("schema-redis"))
    yield started
    started.stop()


@pytest.fixture
def client(server: RedisProcess) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server.url, decode_responses=True) as connection:
        connection.flushall()
        yield connection


@pytest.fixture
async def store(server: RedisProcess) -> AsyncIterator[Store]:
    store = Store(server.url)
    yield store
    await store.close()


def hostnames() -> list[str]:
    return [f"n{number}.example.test" for number in range(MANY)]


def fill(client: redis.Redis) -> None:
    """A state from before there was a form."""
    for hostname in hostnames():
        client.hset(host_key(hostname), mapping={"version": "v", "note": hostname})


def form(client: redis.Redis) -> object:
    return client.hget(SCHEMA_KEY, "schema")


async def test_first_start_writes_the_form_and_others_leave_it(
    client: redis.Redis, store: Store
) -> None:
    assert await examine(store) is None
    await settle(store, now_ms)
    written = client.hgetall(SCHEMA_KEY)
    assert written["schema"] == str(schema_version.SCHEMA_VERSION)
    await settle(store, now_ms)
    assert client.hgetall(SCHEMA_KEY) == written
    assert await examine(store) == schema_version.SCHEMA_VERSION


async def test_empty_redis_begins_with_the_newest_form(client: redis.Redis, store: Store) -> None:
    await settle(store, now_ms, STEPS)
    assert form(client) == "3"


async def test_state_without_a_form_has_the_first_and_is_brought_up(
    client: redis.Redis, store: Store
) -> None:
    fill(client)
    await settle(store, now_ms, STEPS)
    assert client.hgetall(SCHEMA_KEY).keys() == {"schema", "version"}
    assert form(client) == "3"
    for hostname in hostnames():
        fields = client.hgetall(host_key(hostname))
        assert fields.pop("version") != "v"
        assert fields == {"remark": hostname, "marked": "1"}


async def test_only_the_steps_that_are_missing_are_taken(client: redis.Redis, store: Store) -> None:
    fill(client)
    client.hset(SCHEMA_KEY, mapping={"schema": "2", "version": "v"})
    await settle(store, now_ms, STEPS)
    assert client.hgetall(host_key("n0.example.test")).keys() == {"version", "note", "marked"}


async def test_newer_form_is_refused_with_both_and_nothing_is_written(
    client: redis.Redis, store: Store
) -> None:
    client.hset(SCHEMA_KEY, mapping={"schema": "4", "version": "v"})
    before = client.hgetall(SCHEMA_KEY)
    with pytest.raises(StateRefused, match="has form 4, and this release knows forms up to 3"):
        await settle(store, now_ms, STEPS)
    assert client.hgetall(SCHEMA_KEY) == before
    assert client.keys() == [SCHEMA_KEY]


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1.5", "²"])
async def test_form_that_is_no_number_is_refused(
    client: redis.Redis, store: Store, text: str
) -> None:
    client.hset(SCHEMA_KEY, mapping={"schema": text, "version": "v"})
    with pytest.raises(StateRefused, match="says that its state has the form"):
        await settle(store, now_ms)


async def test_many_starts_at_once_bring_it_up_once(client: redis.Redis, store: Store) -> None:
    """Whoever comes later waits until it is done."""
    fill(client)
    rewritten = count()

    def counted(fields: Mapping[str, str]) -> dict[str, str]:
        next(rewritten)
        return renamed(fields)

    steps = (Migration(HOST_KEYS, counted),)
    await asyncio.gather(*(settle(store, now_ms, steps) for _ in range(8)))
    assert next(rewritten) == MANY
    assert form(client) == "2"


async def test_migration_that_was_cut_off_is_finished_by_the_next_start(
    client: redis.Redis, store: Store
) -> None:
    fill(client)
    done = count()

    def dying(fields: Mapping[str, str]) -> dict[str, str]:
        if next(done) == MANY // 2:
            raise RuntimeError
        return renamed(fields)

    with pytest.raises(RuntimeError):
        await settle(store, now_ms, (Migration(HOST_KEYS, dying),))
    assert form(client) == "1"
    assert json.loads(client.hget(SCHEMA_KEY, "migrating") or "")["untilMs"] > now_ms()
    # Its lock lapses with it.
    await settle(store, lambda: now_ms() + schema_version.LOCK_MS + 1, STEPS[:1])
    assert form(client) == "2"
    fields = [client.hgetall(host_key(hostname)).keys() for hostname in hostnames()]
    assert all(names == {"version", "remark"} for names in fields)


@pytest.mark.parametrize("lock", ["", "7", "[]", "{}", '{"untilMs": "x"}', '{"untilMs": 9e99}'])
async def test_lock_that_nobody_can_have_written_holds_nobody_up(
    client: redis.Redis, store: Store, lock: str
) -> None:
    client.hset(SCHEMA_KEY, mapping={"schema": "1", "version": "v", "migrating": lock})
    await settle(store, now_ms, STEPS)
    assert form(client) == "3"


async def test_change_by_a_gateway_meanwhile_is_not_lost(client: redis.Redis, store: Store) -> None:
    """One that still runs writes between the reading of a document and its rewriting."""
    hostname = Hostname("n0.example.test")
    client.hset(host_key(hostname), mapping={"version": "v", "note": '"n"'})
    changed = []

    def interrupted(fields: Mapping[str, str]) -> dict[str, str]:
        if not changed:
            changed.append(client.hset(host_key(hostname), mapping={"version": "w", "fence": "7"}))
        return renamed(fields)

    await settle(store, now_ms, (Migration(HOST_KEYS, interrupted),))
    fields = client.hgetall(host_key(hostname))
    assert (fields["remark"], fields["fence"]) == ('"n"', "7")
    assert (
        await Documents(store).commit(await Documents(store).read(hostname), Change())
    ) is not None


async def test_cut_off_restore_is_refused_until_it_is_finished(
    client: redis.Redis, store: Store
) -> None:
    assert await schema_version.begin_restoring(store, "b1")
    assert await schema_version.begin_restoring(store, "b1")
    with pytest.raises(StateRefused, match=r"cut off.*the backup \"b1\""):
        await settle(store, now_ms)
    with pytest.raises(StateRefused, match='A restore of the backup "b1" was cut off here'):
        await schema_version.begin_restoring(store, "b2")
    turn = await schema_version.begin_restoring(store, "b1")
    assert turn is not None
    await schema_version.demand_restoring(store, turn)
    await schema_version.end_restoring(store, 1, turn)
    await settle(store, now_ms)
    assert client.hgetall(SCHEMA_KEY).keys() == {"schema", "version"}
    assert await schema_version.begin_restoring(store, "b1") is None


async def test_restore_that_another_one_has_taken_over_neither_goes_on_nor_ends(
    client: redis.Redis, store: Store
) -> None:
    former = await schema_version.begin_restoring(store, "b1") or ""
    later = await schema_version.begin_restoring(store, "b1") or ""
    before = client.hgetall(SCHEMA_KEY)
    for step in (
        schema_version.demand_restoring(store, former),
        schema_version.end_restoring(store, 1, former),
    ):
        with pytest.raises(StateRefused, match="Another `gateway restore` has begun"):
            await step
    assert client.hgetall(SCHEMA_KEY) == before
    await schema_version.demand_restoring(store, later)
    await schema_version.end_restoring(store, 1, later)
    # Gateways are at work by now.
    with pytest.raises(StateRefused, match="Another `gateway restore` has begun"):
        await schema_version.demand_restoring(store, former)


@pytest.mark.parametrize("form", ["9" * 5_000, "0", "-1", "1.5", "x\x1b[2J", ""])
async def test_form_that_is_no_number_is_refused_in_a_short_sentence(
    client: redis.Redis, store: Store, form: str
) -> None:
    client.hset(SCHEMA_KEY, mapping={"schema": form, "version": "v"})
    with pytest.raises(StateRefused, match="says that its state has the form") as refused:
        await settle(store, now_ms)
    assert len(str(refused.value)) < 200
    assert str(refused.value).isprintable()
