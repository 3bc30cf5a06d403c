"""The worker on a real Redis: what it does around a step. What a step comes to is scripted."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from structlog.testing import capture_logs

from gateway import measures
from gateway.certificates import events, machine
from gateway.certificates.cleanup import Payment
from gateway.certificates.events import Command
from gateway.certificates.moves import Moment
from gateway.certificates.orders import FaultKind
from gateway.certificates.pace import Pace
from gateway.certificates.states import Issuance, State
from gateway.certificates.worker import Worker
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.clock import SharedClock
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Change, Documents, Holder
from tests.lab.process import read_until
from tests.lab.redis import RedisProcess

if TYPE_CHECKING:
    from gateway.certificates.cleanup import Cleaner
    from gateway.certificates.steps import Steps

HOLDER = Holder(ClientId("client"), AppId("app"))
REFUSED = events.AuthorityFailed(FaultKind.REFUSED, "no", None, elsewhere=False)
LIMIT_SECONDS = 10.0


def now_ms() -> int:
    return time.time_ns() // 10**6


class Refused:
    """Steps of which each is refused.

    `given_back`: the authorities whose figures came back, and whether an order may be there.
    """

    def __init__(self) -> None:
        self.given_back: list[tuple[str | None, bool]] = []

    async def carry_out(self, _: Command, *__: object) -> events.Event:
        return REFUSED

    async def give_back(
        self, _: Hostname, __: Holder, issuance: Issuance, *, was_placed: bool
    ) -> None:
        self.given_back.append((issuance.directory_url, was_placed))

    def authority_name(self, _: str | None) -> str:
        return "ca"


class Paying:
    """Every debt is paid."""

    async def pay(self, *_: object) -> Payment:
        return Payment(paid=True)


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[Store]:
    store = Store(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
async def hostname(store: Store) -> AsyncIterator[Hostname]:
    hostname = Hostname(f"t{secrets.token_hex(6)}.example.test")
    yield hostname
    gone = Change({"holder": None, "issuance": None, "debts": ()}, touches_due=True)
    await Documents(store).change(hostname, lambda _: gone)


class AwayAtFirst(SharedClock):
    """The clock of a Redis that gives no answer three times."""

    left = 3

    async def sync(self) -> None:
        if self.left:
            self.left -= 1
            raise StoreUnavailable("Redis does not answer")
        await super().sync()


@asynccontextmanager
async def working(
    store: Store,
    steps: Refused,
    *,
    is_allowed: bool,
    clock: SharedClock | None = None,
    pace: Pace | None = None,
) -> AsyncIterator[Worker]:
    async def may_renew(_: Holder, __: Hostname) -> bool:
        return is_allowed

    worker = Worker(
        Documents(store),
        cast("Steps", steps),
        cast("Cleaner", Paying()),
        pace or Pace(),
        clock or SharedClock(store, now_ms, now_ms),
        name="worker",
        may_renew=may_renew,
        new_id=lambda: "any",
        jitter=lambda: 0.5,
        concurrency=2,
    )
    yield worker
    worker.stop(within_seconds=10)
    await worker.run()


async def worked_on(
    store: Store, worker: Worker, hostname: Hostname, issuance: Issuance
) -> Issuance:
    """What becomes of an issuance: once it rests."""
    documents = Documents(store)
    fields = {"holder": HOLDER, "issuance": issuance.to_json()}
    await documents.change(hostname, lambda _: Change(fields))
    worker.kick(hostname, HOLDER.client_id)

    def has_been_worked_on(stored: dict[str, Any] | None) -> bool:
        return stored is not None and stored != fields["issuance"]

    document = await read_until(
        lambda: documents.read(hostname),
        lambda seen: seen.lease is None and has_been_worked_on(seen.issuance),
        LIMIT_SECONDS,
    )
    assert document.issuance is not None
    return Issuance.from_json(document.issuance)


def under_way(state: State, **fields: Any) -> Issuance:
    issuance = machine.request("any", Moment(now_ms(), 0.5))
    return replace(
        issuance,
        state=state,
        directory_url="https://ca.example",
        sealed_key="sealed",
        csr="request",
        **fields,
    )


async def test_issuance_that_may_not_go_on_is_barred(store: Store, hostname: Hostname) -> None:
    failed = replace(under_way(State.FAILED), directory_url=None)
    async with working(store, Refused(), is_allowed=False) as worker:
        after = await worked_on(store, worker, hostname, failed)
    assert after.barred
    assert after.state is State.FAILED
    assert after.due_at_ms > now_ms()


async def test_issuance_that_goes_on_is_barred_no_more(store: Store, hostname: Hostname) -> None:
    barred = replace(under_way(State.FAILED), directory_url=None, barred=True)
    async with working(store, Refused(), is_allowed=True) as worker:
        after = await worked_on(store, worker, hostname, barred)
    assert not after.barred


@pytest.mark.parametrize(
    ("tried", "may_be_placed"),
    [(under_way(State.REQUESTED), False), (under_way(State.ORDERED, order_url="o"), True)],
    ids=["no order", "an order"],
)
async def test_what_an_order_cost_comes_back_when_it_fails(
    store: Store, hostname: Hostname, tried: Issuance, may_be_placed: bool
) -> None:
    steps = Refused()
    async with working(store, steps, is_allowed=True) as worker:
        await worked_on(store, worker, hostname, tried)
    assert steps.given_back == [("https://ca.example", may_be_placed)]


@pytest.mark.parametrize(
    "sent",
    [
        under_way(State.READY, order_url="o", finalize_url="f"),
        under_way(State.FINALIZING, order_url="o", finalize_url="f", certificate_url="c"),
        under_way(State.WAITING, order_url="o", finalize_url="f", resume=State.READY),
    ],
    ids=["ready", "finalizing", "waiting in ready"],
)
async def test_nothing_comes_back_once_the_csr_may_have_been_sent(
    store: Store, hostname: Hostname, sent: Issuance
) -> None:
    steps = Refused()
    async with working(store, steps, is_allowed=True) as worker:
        after = await worked_on(store, worker, hostname, sent)
    assert after.state is State.FAILED
    assert steps.given_back == []


class ReleasedMeanwhile(Refused):
    """Steps that find the hostname released under their feet."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._documents = Documents(store)

    async def carry_out(self, _: Command, *of: object) -> events.Event:
        change = Change({"issuance": None, "lease": None}, touches_due=True)
        await self._documents.change(cast("Hostname", of[0]), lambda _: change)
        return REFUSED


async def figure(name: str, **labels: str) -> float:
    return measures.REGISTRY.get_sample_value(name, labels) or 0


async def test_order_that_came_to_nothing_is_counted_by_its_reason(
    store: Store, hostname: Hostname
) -> None:
    name, labels = "gateway_issuances_ended_total", {"authority": "ca"}
    labels["outcome"] = "authority-refused"
    before = await figure(name, **labels)
    async with working(store, Refused(), is_allowed=True) as worker:
        await worked_on(store, worker, hostname, under_way(State.ORDERED))
        await read_until(lambda: figure(name, **labels), lambda now: now > before, LIMIT_SECONDS)


async def test_hostname_given_up_in_the_middle_is_counted(store: Store, hostname: Hostname) -> None:
    before = await figure("gateway_leases_lost_total")
    fields = {"holder": HOLDER, "issuance": under_way(State.ORDERED).to_json()}
    await Documents(store).change(hostname, lambda _: Change(fields))
    async with working(store, ReleasedMeanwhile(store), is_allowed=True) as worker:
        worker.kick(hostname, HOLDER.client_id)
        await read_until(
            lambda: figure("gateway_leases_lost_total"),
            lambda now: now > before,
            LIMIT_SECONDS,
        )


async def test_whoever_comes_behind_others_is_told_of_their_turns(store: Store) -> None:
    pace = Pace()
    first, *_, last = hostnames = [Hostname(f"t{number}.example.test") for number in range(4)]
    alone_ms = pace.whole_ms(last)
    async with working(store, Refused(), is_allowed=True, pace=pace) as worker:
        for hostname in hostnames:
            worker.kick(hostname, HOLDER.client_id)
        # Of two places one client has one: three wait, as long as one and a half take.
        assert [pace.whole_ms(first), pace.whole_ms(last)] == [alone_ms, 2.5 * alone_ms]


async def test_redis_that_is_away_is_told_once_and_when_it_is_back(store: Store) -> None:
    clock = AwayAtFirst(store, now_ms, now_ms)
    with capture_logs() as said:
        async with working(store, Refused(), is_allowed=True, clock=clock) as worker:
            running = asyncio.create_task(worker.run())
            async with asyncio.timeout(3 * LIMIT_SECONDS):
                await worker.polled.wait()
            worker.stop(within_seconds=10)
            await running
    told = [(line["log_level"], line["event"]) for line in said if "due queues" in line["event"]]
    assert told == [("warning", "due queues unreadable"), ("info", "due queues are read again")]
