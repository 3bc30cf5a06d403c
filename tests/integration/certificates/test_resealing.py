"""Resealing on a real Redis of its own: what moves, what waits, what is told.

The zone has no part in this: its markers are stood in for by one that holds none, and that tells
the moment at which a document is visited.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import redis

from gateway.certificates.accounts import RedisAccountStore
from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.keyring_proof import begin_moving, prove_keyring, proven_keys
from gateway.certificates.resealing import AccountSeals, Report, Resealing, Stage
from gateway.certificates.sealing import Keyring, KeyringInvalid, key_id_of
from gateway.certificates.seals import Found, Thing
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store import keys
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Change, Document, Documents, Holder, Lease
from tests.lab.ports import free_port
from tests.lab.redis import RedisProcess, start_redis

NEW, OLD = ("new", b"n" * 32), ("old", b"o" * 32)
FORMER, BOTH, ALONE = Keyring([OLD]), Keyring([NEW, OLD]), Keyring([NEW])
HOLDER = Holder(ClientId("client"), AppId("app"))
DIRECTORY = "https://ca.example/directory"
PEM = b"a private key"


class NoMarks:
    """Holds no markers; `meanwhile` is called with each document that is visited."""

    def __init__(self) -> None:
        self.meanwhile: list[Callable[[], object]] = []

    async def look(self, document: Document) -> Found:
        return Found()

    async def move(self, document: Document) -> Found:
        while self.meanwhile:
            outcome = self.meanwhile.pop()()
            if asyncio.iscoroutine(outcome):
                await outcome
        return Found()


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path_factory.mktemp("resealed-redis"))
    yield server
    server.stop()


@pytest.fixture
async def store(own_redis: RedisProcess) -> AsyncIterator[Store]:
    with redis.Redis.from_url(own_redis.url) as connection:
        connection.flushall()
    store = Store(own_redis.url)
    yield store
    await store.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def sealed(hostname: str, keyring: Keyring = FORMER) -> str:
    return keyring.seal(PEM, purpose=KEY_PURPOSE, bound_to=key_binding(HOLDER, Hostname(hostname)))


async def put(store: Store, hostname: str, **fields: object) -> None:
    """A hostname with a certificate whose key the former keyring sealed."""
    made = {"holder": HOLDER, "certificate": {"sealed_key": sealed(hostname)}, **fields}
    await Documents(store).change(Hostname(hostname), lambda _: Change(made))


async def key_of(store: Store, hostname: str) -> str:
    document = await Documents(store).read(Hostname(hostname))
    assert document.certificate is not None
    return key_id_of(document.certificate["sealed_key"])


def resealing(
    store: Store, marks: NoMarks | None = None, told: Callable[[Report], None] = lambda _: None
) -> Resealing:
    return Resealing(
        store,
        Documents(store),
        BOTH,
        AccountSeals(store, BOTH, [DIRECTORY]),
        marks or NoMarks(),
        now_ms=now_ms,
        told=told,
    )


async def test_everything_moves_and_opens_without_the_old_key(store: Store) -> None:
    names = [f"a{number}.example" for number in range(230)]
    for name in names:
        await put(store, name)
    accounts = RedisAccountStore(store, FORMER, DIRECTORY)
    await accounts.add_key(b"account")
    await accounts.add_next_key(b"next")
    await prove_keyring(FORMER, store)
    run = resealing(store)
    await run.run()
    assert run.report.is_complete
    assert run.report.counts == Counter(
        {(Thing.PRIVATE_KEY, "old"): 230, (Thing.ACCOUNT_KEY, "old"): 2}
    )
    for document in await Documents(store).read_many([Hostname(name) for name in names]):
        assert isinstance(document, Document)
        assert document.certificate is not None
        binding = key_binding(HOLDER, document.hostname)
        value = document.certificate["sealed_key"]
        assert ALONE.open(value, purpose=KEY_PURPOSE, bound_to=binding) == PEM
    account = await RedisAccountStore(store, ALONE, DIRECTORY).load()
    assert account is not None
    assert (account.key_pem, account.next_key_pem) == (b"account", b"next")
    await prove_keyring(ALONE, store)
    with pytest.raises(KeyringInvalid, match="the key new"):
        await prove_keyring(FORMER, store)


async def test_second_run_finds_nothing_to_do(store: Store) -> None:
    await put(store, "a.example")
    await resealing(store).run()
    again = resealing(store)
    await again.run()
    assert again.report.is_complete
    assert again.report.counts == Counter()


async def test_document_that_is_not_readable_is_a_failure_and_the_others_move(
    own_redis: RedisProcess, store: Store
) -> None:
    await put(store, "a.example")
    await put(store, "b.example")
    with redis.Redis.from_url(own_redis.url) as connection:
        connection.hset(keys.host_key(Hostname("a.example")), "record", "{")
    run = resealing(store)
    await run.run()
    sentence = "What Redis has of a.example is not readable by this release"
    assert run.report.failures == {"a.example": (sentence,)}
    assert run.report.counts == Counter({(Thing.PRIVATE_KEY, "old"): 1})


async def test_looking_counts_and_changes_nothing(store: Store) -> None:
    await put(store, "a.example")
    await put(store, "b.example", certificate={"sealed_key": sealed("b.example", BOTH)})
    before = await Documents(store).read(Hostname("a.example"))
    run = resealing(store)
    await run.look()
    assert run.report.is_complete
    assert run.report.counts == Counter(
        {(Thing.PRIVATE_KEY, "old"): 1, (Thing.PRIVATE_KEY, "new"): 1}
    )
    assert await Documents(store).read(Hostname("a.example")) == before
    assert await proven_keys(store) == frozenset()


async def test_progress_counts_every_hostname_in_both_rounds(store: Store) -> None:
    for name in ("a.example", "b.example", "c.example"):
        await put(store, name)
    seen: list[tuple[Stage, int, int]] = []
    run = resealing(
        store, told=lambda report: seen.append((report.stage, report.done, report.total))
    )
    await run.run()
    assert seen == [
        (stage, done, 3) for stage in (Stage.MOVING, Stage.CHECKING) for done in range(4)
    ]


async def test_document_that_a_worker_has_is_moved_once_it_is_given_up(store: Store) -> None:
    await put(store, "a.example", lease=Lease("worker", 1, now_ms() + 10_000), fence=1)
    hostname, documents, marks = Hostname("a.example"), Documents(store), NoMarks()
    seen: list[str] = []

    async def give_up() -> None:
        # What the worker had in memory comes back with the lease's end.
        seen.append(await key_of(store, hostname))
        fields = {"lease": None, "certificate": {"sealed_key": sealed(hostname)}}
        await documents.change(hostname, lambda _: Change(fields))

    marks.meanwhile.append(give_up)
    run = resealing(store, marks)
    await run.run()
    assert seen == ["old"]
    assert run.report.is_complete
    assert await key_of(store, hostname) == "new"


async def test_worker_whose_lease_has_lapsed_stores_nothing_afterwards(store: Store) -> None:
    await put(store, "a.example", lease=Lease("worker", 1, now_ms() - 1), fence=1)
    documents, hostname = Documents(store), Hostname("a.example")
    in_memory = await documents.read(hostname)
    await resealing(store).run()
    late = Change({"certificate": {"sealed_key": sealed("a.example")}})
    assert await documents.commit(in_memory, late) is None
    after = await documents.read(hostname)
    assert after.lease is None
    assert await key_of(store, hostname) == "new"


async def test_what_comes_under_the_old_key_meanwhile_is_moved_and_told(store: Store) -> None:
    await put(store, "a.example")
    await prove_keyring(FORMER, store)
    marks = NoMarks()
    marks.meanwhile.append(lambda: put(store, "b.example"))
    run = resealing(store, marks)
    await run.run()
    assert run.report.late == Counter({(Thing.PRIVATE_KEY, "old"): 1})
    assert not run.report.is_complete
    assert await key_of(store, "b.example") == "new"
    assert await proven_keys(store) == {"old", "new"}


async def test_account_at_a_directory_that_nobody_knows_is_a_failure(store: Store) -> None:
    elsewhere = "https://other.example/directory"
    await RedisAccountStore(store, FORMER, elsewhere).add_key(b"account")
    run = resealing(store)
    await run.run()
    (told,) = [text for texts in run.report.failures.values() for text in texts]
    assert keys.account_key(elsewhere) in told
    assert "sealed under old" in told
    assert not run.report.is_complete


async def test_value_that_opens_nowhere_is_told_and_keeps_no_key(store: Store) -> None:
    await put(store, "a.example", certificate={"sealed_key": sealed("b.example")})
    run = resealing(store)
    await run.run()
    assert run.report.is_complete
    assert [text for text in run.report.unopened if text.startswith("a.example: ")]


async def test_both_keys_are_asked_for_from_the_beginning_on(store: Store) -> None:
    await prove_keyring(FORMER, store)
    await begin_moving(BOTH, store)
    await begin_moving(BOTH, store)
    await prove_keyring(BOTH, store)
    for lacking in (FORMER, ALONE):
        with pytest.raises(KeyringInvalid):
            await prove_keyring(lacking, store)


async def test_run_without_redis_says_so() -> None:
    store = Store(f"redis://127.0.0.1:{free_port()}/0")
    try:
        with pytest.raises(StoreUnavailable):
            await resealing(store).run()
    finally:
        await store.close()
