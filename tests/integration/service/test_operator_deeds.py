"""An operator's deeds in a serving process, as its page does them, told as whoever acts.

The process here is the test's own. Its worker never looks into the queues: whatever it does, it was
woken for. Calls are answered by a gateway beside it that works on nothing.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from gateway.certificates.agenda import issuance_of
from gateway.certificates.retrying import Begun, Standing
from gateway.certificates.states import Reason, State
from gateway.config import load_settings
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.exchange import Over
from gateway.dns.owner import Owner
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import Update
from gateway.holdings.as_seen import mark_of
from gateway.holdings.claims import Claim
from gateway.holdings.operator_deeds import DeedOutrun, DeedRefused, OperatorDeeds
from gateway.interventions import build_deeds
from gateway.store.deeds import Actor, Role, acting_as
from gateway.store.documents import Change, Document
from gateway.views.deed_words import withdrawn_words
from gateway.wiring import Gateway, open_gateway
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Ownership, World
from tests.integration.service.inside import delegated_away
from tests.integration.service.trailing import told_of, who
from tests.lab.gateway import start_gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import read_until

LIMIT_SECONDS = 30.0
ADDRESS = "198.51.100.5"
MOVED = "198.51.100.6"
PAGE = Actor(Role.ADMIN, remote="192.0.2.7")


@pytest.fixture(scope="module")
def desk_lab() -> Iterator[Lab]:
    with running_lab(LabOptions(gateways=0)) as lab:
        desk = start_gateway(lab.config, "desk", environ={"GATEWAY_WORKER__ENABLED": "false"})
        yield lab
        desk.stop()


@dataclass(frozen=True)
class Serving:
    """The parts of this process, and what an operator does with them."""

    lab: Lab
    gateway: Gateway
    deeds: OperatorDeeds
    world: World

    async def rests(self, hostname: Hostname, state: State) -> Document:
        """The document once its issuance rests in this state."""

        def does(document: Document) -> bool:
            issuance = issuance_of(document)
            return issuance is not None and issuance.state is state and document.lease is None

        return await read_until(lambda: self.gateway.documents.read(hostname), does, LIMIT_SECONDS)

    async def failed(self, mine: Ownership) -> Hostname:
        """An issuance that has failed, since its challenge had no place then."""
        hostname, hand = Hostname(mine.hostname), Hand.at(self.lab.bind)
        assert mine.get()["status"] == "pending"
        with delegated_away(hand, hostname):
            assert self.gateway.worker is not None
            self.gateway.worker.kick(hostname, owner_of(mine).client_id)
            await self.rests(hostname, State.FAILED)
        return hostname


@pytest.fixture
async def serving(desk_lab: Lab) -> AsyncIterator[Serving]:
    settings = load_settings(desk_lab.config.config_file, os.environ)
    async with open_gateway(settings, works=True) as gateway:
        with acting_as(PAGE):
            world = World(desk_lab.config.url, desk_lab.config.admin_token)
            yield Serving(desk_lab, gateway, build_deeds(gateway), world)
        assert gateway.worker is not None
        gateway.worker.stop(within_seconds=10)
        await gateway.worker.run()


def owner_of(mine: Ownership) -> Owner:
    client_id, _ = who(mine.caller)
    return Owner(ClientId(client_id), AppId(mine.app_id), Hostname(mine.hostname))


async def test_worker_of_the_process_is_woken_by_a_retry(serving: Serving) -> None:
    mine = serving.world.ownership()
    hostname = await serving.failed(mine)
    retried = await serving.deeds.retry(hostname)
    assert retried.began is Begun.ANEW
    seen = await serving.deeds.watch(retried, LIMIT_SECONDS)
    assert seen.standing is Standing.ISSUED
    assert mine.get()["status"] == "ready"


async def test_two_at_once_have_one_issuance(serving: Serving) -> None:
    hostname = await serving.failed(serving.world.ownership())
    both = await asyncio.gather(
        *(serving.deeds.retry(hostname) for _ in range(2)), return_exceptions=True
    )
    began = [each for each in both if not isinstance(each, BaseException)]
    assert all(isinstance(each, DeedRefused) for each in both if each not in began)
    assert len({each.issuance.issuance_id for each in began}) == 1
    assert (await serving.deeds.watch(began[0], LIMIT_SECONDS)).standing is Standing.ISSUED


async def test_order_that_the_authority_holds_does_not_go_on(serving: Serving) -> None:
    """Told to wait half way, as a CA would, in the document and in the ledger."""
    gateway = serving.gateway
    hostname = await serving.failed(serving.world.ownership())
    (listed,) = gateway.authorities
    later_ms = gateway.clock.now_ms() + 3_600_000

    def told_to_wait(document: Document) -> Change:
        failed = issuance_of(document)
        assert failed is not None
        waits = replace(
            failed,
            state=State.WAITING,
            resume=State.VALIDATING,
            reason=Reason.RATE_LIMITED,
            directory_url=listed.directory_url,
            due_at_ms=later_ms,
        )
        return Change({"issuance": waits.to_json()}, later_ms, touches_due=True)

    before = await gateway.documents.change(hostname, told_to_wait)
    await listed.ledger.hold(hostname, later_ms, "slowly", ca_words=f"too many for {hostname}")
    with pytest.raises(DeedRefused, match=r"can't go on yet: .* takes no orders for .*: slowly"):
        await serving.deeds.retry(hostname)
    assert await gateway.documents.read(hostname) == before


@contextmanager
def refused(words: str) -> Iterator[None]:
    with pytest.raises(DeedRefused) as refusal:
        yield
    assert words in str(refusal.value)


async def test_deeds_are_told_as_whoever_acts(serving: Serving) -> None:
    mine = serving.world.ownership()
    owner, hostname = owner_of(mine), Hostname(mine.hostname)
    mine.publish(ADDRESS)
    with refused("is held by a client"):
        await serving.deeds.claim(hostname, "mine now")
    with refused("Nothing is issued"):
        await serving.deeds.retry(hostname)
    assert (await serving.deeds.withdraw(owner)).is_done
    claim = await serving.deeds.claim(hostname, "mine now")
    assert claim == Claim(hostname, claim.since_ms, "mine now")
    assert mine.publish(ADDRESS)["status"] == "record-conflict"
    assert await serving.deeds.unclaim(hostname)
    assert not await serving.deeds.unclaim(hostname)
    entries = await asyncio.to_thread(
        told_of,
        serving.lab,
        hostname,
        ("claim-add", "held-by-client"),
        ("certificate-retry", "refused"),
        ("record-sync", "managed-deleted"),
        ("claim-add", "claimed"),
        ("claim-remove", "removed"),
        ("record-sync", "managed-created"),
        ("record-sync", "record-conflict"),
    )
    assert {(each["who"], each["remote"]) for each in entries[:5]} == {("admin", "192.0.2.7")}


async def test_what_has_changed_since_it_was_seen_is_refused_and_told(serving: Serving) -> None:
    mine = serving.world.ownership()
    hostname, owner = Hostname(mine.hostname), owner_of(mine)
    seen = mark_of(await serving.gateway.documents.read(hostname))
    mine.publish(ADDRESS)
    for deed in (
        serving.deeds.withdraw(owner, seen),
        serving.deeds.release(owner, seen),
        serving.deeds.claim(hostname, "mine", seen),
        serving.deeds.unclaim(hostname, seen),
    ):
        with pytest.raises(DeedOutrun):
            await deed
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"
    entries = await asyncio.to_thread(
        told_of,
        serving.lab,
        hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "refused"),
        ("certificate-release", "refused"),
        ("claim-add", "refused"),
        ("claim-remove", "refused"),
    )
    assert all("has changed since it was looked at" in each["detail"] for each in entries[1:])


async def test_retry_is_refused_for_another_issuance_than_was_seen(serving: Serving) -> None:
    mine = serving.world.ownership()
    hostname = await serving.failed(mine)
    seen = mark_of(await serving.gateway.documents.read(hostname))
    mine.release()
    assert await serving.failed(mine) == hostname
    before = await serving.gateway.documents.read(hostname)
    with pytest.raises(DeedOutrun):
        await serving.deeds.retry(hostname, as_seen=seen)
    assert await serving.gateway.documents.read(hostname) == before
    assert (await serving.deeds.retry(hostname, as_seen=mark_of(before))).hostname == hostname


async def test_withdrawal_beside_a_sync_has_one_entry_that_says_what_went(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client moves within the moment that the zone takes: chosen here, it is any of them."""
    mine, exchange = serving.world.ownership(), serving.gateway.exchange
    mine.publish(ADDRESS)
    owner, hostname = owner_of(mine), Hostname(mine.hostname)
    seen = mark_of(await serving.gateway.documents.read(hostname))
    ask, moved = exchange.ask, list[object]()

    async def ask_and_move(peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        reply = await ask(peer, request, over=over, deadline=deadline)
        if isinstance(request, Update) and request.changes and not moved:
            moved.append(await asyncio.to_thread(mine.publish, MOVED))
        return reply

    monkeypatch.setattr(exchange, "ask", ask_and_move)
    done = await serving.deeds.withdraw(owner, seen)
    assert withdrawn_words(done) == (
        f"{hostname}: A {ADDRESS} of {owner.client_id} for relay is taken out of the zone. Its"
        f" client published at the same moment: A {MOVED} is its record now."
    )
    entries = await asyncio.to_thread(
        told_of,
        serving.lab,
        hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "managed-deleted"),
        ("record-sync", "managed-created"),
    )
    assert [each.get("before") for each in entries] == [None, f"A {ADDRESS} 300", None]
    assert mine.publish(MOVED)["status"] == "managed-unchanged"


async def test_release_wakes_the_worker_to_clean_up(serving: Serving) -> None:
    mine = serving.world.ownership()
    hostname = await serving.failed(mine)
    done = await serving.deeds.release(owner_of(mine))
    assert (done.is_released, done.keeps_record) == (True, False)
    await read_until(
        lambda: serving.gateway.documents.read(hostname),
        lambda document: not document.version,
        LIMIT_SECONDS,
    )
    assert not (await serving.deeds.release(owner_of(mine))).is_released
