"""Leasing and writing under a lease, on a real Redis of its own that is made to refuse and to fail.

The step is stood in for by a call that waits until it is told to end.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from gateway.certificates import agenda, leases, machine
from gateway.certificates.leaseholder import Leaseholder
from gateway.certificates.leases import GRACE_MS, LEASE_MS, Grace, LeaseLost, LeaseOver
from gateway.certificates.moves import Moment
from gateway.certificates.states import Debt, DebtKind
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.clock import SharedClock
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Change, Contended, Document, Documents, Holder, Lease
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, start_redis

HOLDER = Holder(ClientId("client"), AppId("app"))
ORDER = Debt(DebtKind.ORDER, url="https://ca.example/order/1", directory_url="https://ca.example")
REFUSING = ["-evalsha", "-eval"]


class Clock(SharedClock):
    """Redis's clock, and a counter of this process, that a test may put forward."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, lambda: time.time_ns() // 10**6, self._steady_ms)
        self.forward_ms = 0

    def _steady_ms(self) -> int:
        return time.monotonic_ns() // 10**6 + self.forward_ms


class Worker:
    """A leaseholder with what belongs to it. `rests` is what it told."""

    def __init__(self, store: Store, name: str) -> None:
        self.clock = Clock(store)
        self.grace = Grace(self.clock)
        self.rests: list[tuple[Hostname, int]] = []
        self.leases = Leaseholder(
            Documents(store),
            self.clock,
            self.grace,
            name=name,
            jitter=lambda: 0.0,
            told_rest=lambda hostname, at_ms: self.rests.append((hostname, at_ms)),
        )

    def is_past_its_grace(self) -> None:
        self.grace.note_contact()
        self.clock.forward_ms += GRACE_MS
        assert self.grace.is_over()


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path_factory.mktemp("leased-redis"))
    yield server
    server.stop()


@pytest.fixture
def admin(own_redis: RedisProcess) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(own_redis.url) as connection:
        yield connection


@pytest.fixture
async def store(own_redis: RedisProcess) -> AsyncIterator[Store]:
    store = Store(own_redis.url)
    yield store
    await store.close()


@pytest.fixture
def documents(store: Store) -> Documents:
    return Documents(store)


@pytest.fixture
def mine(store: Store) -> Worker:
    return Worker(store, "mine")


@pytest.fixture
def other(store: Store) -> Worker:
    return Worker(store, "other")


@pytest.fixture
async def hostname(documents: Documents) -> Hostname:
    """A hostname with an issuance that is due."""
    hostname = Hostname(f"t{secrets.token_hex(6)}.example.test")
    issuance = machine.request("any", Moment(1, 0)).to_json()
    fields = {"holder": HOLDER, "issuance": issuance}
    await documents.change(hostname, lambda _: Change(fields, 0, touches_due=True))
    return hostname


async def leased(worker: Worker, hostname: Hostname) -> Document:
    document = await worker.leases.lease(hostname)
    assert document is not None
    return document


async def lapse(documents: Documents, document: Document) -> None:
    lease = Lease("mine", document.fence, 1)
    await documents.change(document.hostname, lambda _: Change({"lease": lease}))


def kept(worker: Worker, current: Document) -> Change:
    return worker.leases.change(current, {"claim": {"note": "stored"}}, keep=True)


async def test_leased_hostname_is_no_others(
    mine: Worker, other: Worker, hostname: Hostname
) -> None:
    other.is_past_its_grace()
    await leased(mine, hostname)
    assert await other.leases.lease(hostname) is None


async def test_lapsed_lease_is_anothers_only_after_its_grace(
    mine: Worker, other: Worker, documents: Documents, hostname: Hostname
) -> None:
    document = await leased(mine, hostname)
    await lapse(documents, document)
    assert await other.leases.lease(hostname) is None
    other.is_past_its_grace()
    taken = await leased(other, hostname)
    assert taken.fence > document.fence
    with pytest.raises(LeaseLost):
        await mine.leases.write(document, lambda current: kept(mine, current))


async def test_owner_takes_its_own_lapsed_lease_without_waiting(
    mine: Worker, documents: Documents, hostname: Hostname
) -> None:
    await lapse(documents, await leased(mine, hostname))
    await leased(mine, hostname)


async def test_lease_of_a_clock_that_was_far_ahead_keeps_nobody_away(
    mine: Worker, other: Worker, documents: Documents, hostname: Hostname
) -> None:
    document = await leased(mine, hostname)
    far = Lease("mine", document.fence, document.fence + 3_600_000)
    await documents.change(hostname, lambda _: Change({"lease": far}))
    other.is_past_its_grace()
    await leased(other, hostname)


async def test_rest_is_told_once_the_lease_is_given_up(mine: Worker, hostname: Hostname) -> None:
    document = await leased(mine, hostname)
    assert mine.rests == []
    issuance = {**(document.issuance or {}), "due_at_ms": document.fence + 60_000}
    await mine.leases.write(
        document, lambda now: mine.leases.change(now, {"issuance": issuance}, keep=False)
    )
    assert mine.rests == [(hostname, document.fence + 60_000)]


async def test_step_is_stored_while_others_go_on_changing_the_document(
    mine: Worker, documents: Documents, hostname: Hostname
) -> None:
    document = await leased(mine, hostname)
    failures = 0

    class Changing(Documents):
        """Redis cannot be made to lose every race: here another's change comes before each."""

        async def change(self, *arguments: object) -> Document:  # type: ignore[override]
            nonlocal failures
            failures += 1
            if failures < 3:
                raise Contended("changed by others")
            return await documents.change(*arguments)  # type: ignore[arg-type]

        async def commit(self, *_: object) -> None:  # type: ignore[override]
            return None

    mine.leases._documents = Changing(documents._store)
    stored = await mine.leases.write_at_last(document, lambda current: kept(mine, current))
    assert failures == 3
    assert stored.claim == {"note": "stored"}


async def test_step_is_stored_when_redis_no_longer_refuses(
    mine: Worker, admin: redis.Redis, hostname: Hostname, caplog: pytest.LogCaptureFixture
) -> None:
    document = await leased(mine, hostname)
    admin.acl_setuser("default", commands=REFUSING, enabled=True, nopass=True, keys=["*"])
    writing = asyncio.create_task(
        mine.leases.write_at_last(document, lambda current: kept(mine, current))
    )
    try:
        await refused(admin)
        assert not writing.done()
    finally:
        admin.acl_setuser("default", commands=["+@all"], enabled=True, nopass=True, keys=["*"])
    assert (await writing).claim == {"note": "stored"}


async def test_debt_is_entered_when_redis_no_longer_refuses(
    mine: Worker, admin: redis.Redis, documents: Documents, hostname: Hostname
) -> None:
    admin.acl_setuser("default", commands=REFUSING, enabled=True, nopass=True, keys=["*"])
    disowning = asyncio.create_task(mine.leases.disown(hostname, ORDER))
    try:
        await refused(admin)
        assert not disowning.done()
    finally:
        admin.acl_setuser("default", commands=["+@all"], enabled=True, nopass=True, keys=["*"])
    await disowning
    assert agenda.debts_of(await documents.read(hostname)) == (ORDER,)


async def refused(admin: redis.Redis) -> None:
    """Wait until Redis has refused a command twice."""
    before = denied(admin)
    await asyncio.to_thread(wait_until, lambda: denied(admin) >= before + 2, "it is refused")


def denied(admin: redis.Redis) -> int:
    found: int = admin.info("commandstats")["cmdstat_evalsha"]["rejected_calls"]  # type: ignore[index]
    return found


async def test_call_goes_on_without_the_lease_and_sends_nothing_more(
    mine: Worker, hostname: Hostname
) -> None:
    document = await leased(mine, hostname)

    async def step() -> None:
        await asyncio.to_thread(leases.check)
        mine.clock.forward_ms += LEASE_MS
        await asyncio.to_thread(leases.check)

    with pytest.raises(LeaseOver, match=hostname):
        await mine.leases.hold(document, step())


async def test_outage_seen_begins_the_grace_anew(
    mine: Worker, own_redis: RedisProcess, hostname: Hostname
) -> None:
    document = await leased(mine, hostname)
    mine.is_past_its_grace()
    own_redis.kill()
    try:
        writing = asyncio.create_task(
            mine.leases.write_at_last(document, lambda current: kept(mine, current))
        )
        while mine.grace.is_over():  # noqa: ASYNC110 (it is told of nothing)
            await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable):
            await mine.leases.lease(hostname)
    finally:
        own_redis.start()
    assert (await writing).claim == {"note": "stored"}
    assert not mine.grace.is_over()
