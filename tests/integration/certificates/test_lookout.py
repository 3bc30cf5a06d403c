"""What a look over the due queues sees, on a real Redis."""

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from gateway.certificates import lookout
from gateway.certificates.lookout import HEAD, Lookout
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.connection import Store
from gateway.store.documents import Change, Documents, Holder
from gateway.store.keys import bucket_of, due_key, host_key
from tests.lab.redis import RedisProcess, start_redis

MANY = Holder(ClientId("many"), AppId("app"))
FEW = Holder(ClientId("few"), AppId("app"))
BUCKET = 5
NOW_MS = 1_000


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A Redis of these tests alone: they state all that is due in it."""
    server = start_redis(tmp_path_factory.mktemp("lookout-redis"))
    yield server
    server.stop()


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[Store]:
    store = Store(redis_server.url)
    yield store
    for hostname, _ in await store.members(due_key(BUCKET)):
        gone = Change({"holder": None, "issuance": None}, touches_due=True)
        await Documents(store).change(Hostname(hostname), lambda _, gone=gone: gone)  # type: ignore[misc]
    await store.close()


@pytest.fixture
def documents(store: Store) -> Documents:
    return Documents(store)


def in_bucket(count: int) -> list[Hostname]:
    found: list[Hostname] = []
    while len(found) < count:
        hostname = Hostname(f"{secrets.token_hex(6)}.example.test")
        if bucket_of(hostname) == BUCKET:
            found.append(hostname)
    return found


async def make_due(
    documents: Documents, hostnames: list[Hostname], holder: Holder | None, at_ms: int
) -> None:
    fields: dict[str, object] = {"holder": holder, "issuance": {"any": "thing"}}
    for hostname in hostnames:
        change = Change(fields, at_ms, touches_due=True)
        await documents.change(hostname, lambda _, change=change: change)  # type: ignore[misc]


def nobody(_: Hostname) -> bool:
    return False


async def test_look_tells_what_is_due_longest_due_first_and_whose(documents: Documents) -> None:
    first, second, third, later = in_bucket(4)
    await make_due(documents, [second], FEW, 20)
    await make_due(documents, [first], MANY, 10)
    await make_due(documents, [third], None, 30)
    await make_due(documents, [later], MANY, NOW_MS + 1)
    seen = await Lookout(documents, nobody).look(NOW_MS)
    assert seen == [(first, "many"), (second, "few"), (third, None)]


async def test_hostname_behind_a_backlog_is_seen_at_the_first_look(documents: Documents) -> None:
    *many, one = in_bucket(10 * HEAD)
    await make_due(documents, many, MANY, 10)
    await make_due(documents, [one], FEW, 20)
    assert (one, "few") in await Lookout(documents, nobody).look(NOW_MS)


async def test_backlog_longer_than_a_look_is_gone_through_again_and_again(
    documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "BEYOND", HEAD)
    hostnames = in_bucket(4 * HEAD)
    await make_due(documents, hostnames, MANY, 10)
    looking = Lookout(documents, nobody)
    for _ in range(2):
        looks = [await looking.look(NOW_MS) for _ in range(4)]
        assert max(map(len, looks)) <= 2 * HEAD
        assert {name for look in looks for name, _ in look} == set(hostnames)


async def test_known_hostnames_are_left_out(documents: Documents) -> None:
    known, unknown = in_bucket(2)
    await make_due(documents, [known, unknown], MANY, 10)
    seen = await Lookout(documents, lambda name: name == known).look(NOW_MS)
    assert seen == [(unknown, "many")]


async def test_hostname_that_went_to_another_client_is_seen_as_its_own(
    documents: Documents,
) -> None:
    hostname = in_bucket(1)[0]
    looking = Lookout(documents, nobody)
    await make_due(documents, [hostname], MANY, 10)
    assert await looking.look(NOW_MS) == [(hostname, "many")]
    await make_due(documents, [hostname], MANY, NOW_MS + 1)
    assert await looking.look(NOW_MS) == []
    await make_due(documents, [hostname], FEW, 10)
    assert await looking.look(NOW_MS) == [(hostname, "few")]


@pytest.mark.parametrize("holder", ["not json", "[]", "7", '{"appId":"app"}'])
async def test_holder_that_cannot_be_read_keeps_no_other_from_being_seen(
    store: Store, documents: Documents, holder: str
) -> None:
    broken, sound = in_bucket(2)
    await make_due(documents, [broken, sound], MANY, 10)
    await store.set_field(host_key(broken), "holder", holder)
    seen = await Lookout(documents, nobody).look(NOW_MS)
    await store.delete_field(host_key(broken), "holder")
    assert dict(seen) == {broken: None, sound: "many"}


async def test_key_of_another_shape_keeps_no_other_from_being_seen(
    redis_server: RedisProcess, documents: Documents
) -> None:
    misshapen, sound = in_bucket(2)
    await make_due(documents, [misshapen, sound], MANY, 10)
    with redis.Redis.from_url(redis_server.url) as connection:
        connection.delete(host_key(misshapen))
        connection.sadd(host_key(misshapen), "not a document")
        seen = await Lookout(documents, nobody).look(NOW_MS)
        connection.delete(host_key(misshapen))
    assert dict(seen) == {misshapen: None, sound: "many"}
