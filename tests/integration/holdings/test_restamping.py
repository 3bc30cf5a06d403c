"""The markers of held records on the real server, moved from one key to another."""

from dataclasses import replace

import pytest

from gateway.certificates.seals import Found, Thing
from gateway.contract import DnsRecord
from gateway.dns.exchange import Exchange, Over
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.owner import Owner
from gateway.dns.publisher import Publisher
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone, Zones
from gateway.holdings import restamping
from gateway.holdings.restamping import GIVEN_UP_AFTER, Restamping
from gateway.store.documents import Document, Holder
from tests.integration.dns.conftest import owner_of, soon, zone_at
from tests.integration.dns.hand import Hand
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port

OLD, NEW = MarkerKey("old", b"o" * 32), MarkerKey("new", b"n" * 32)
RECORD = DnsRecord(type="A", value="198.51.100.1", ttl=300)


class Watched(Exchange):
    """Counts what is sent, and edits the address before the first update that changes something."""

    def __init__(self, edit: str | None = None, hand: Hand | None = None) -> None:
        super().__init__()
        self.sent = 0
        self.edit = edit
        self.hand = hand

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        self.sent += 1
        if self.edit and self.hand and request.is_update:
            name, self.edit = self.edit, None
            self.hand.update(f"delete {name} A", f"add {name} 300 A 192.0.2.7")
        return await super().ask(peer, request, over=over, deadline=deadline)


def document_of(owner: Owner, record: DnsRecord | None = RECORD) -> Document:
    kept = record and {**record.to_wire(), "published": True, "edition": "e"}
    return Document(owner.hostname, "1", Holder(owner.client_id, owner.app_id), record=kept)


@pytest.fixture
def zone(bind: BindPair) -> Zone:
    return zone_at(bind.primary, bind.tsig, port=bind.nameserver_port)


@pytest.fixture
def hand(bind: BindPair) -> Hand:
    return Hand.at(bind)


@pytest.fixture
async def owner(zone: Zone, fresh_label: str) -> Owner:
    """Of a record that was published when the old key was the only one."""
    owner = owner_of(f"{fresh_label}.example.test")
    publisher = Publisher(Zones([zone]), Markers([OLD]), Exchange())
    await publisher.publish(owner, RECORD, held=False, remembered=None, deadline=soon())
    return owner


def restamping_at(zone: Zone, exchange: Exchange | None = None) -> Restamping:
    zones = Zones([zone])
    publisher = Publisher(zones, Markers([NEW, OLD]), exchange or Exchange())
    return Restamping(publisher, zones, "new")


def stamped(hand: Hand, owner: Owner) -> set[str]:
    """The key of each marker at the name."""
    texts = hand.records(owner.hostname)
    return {text.split(":")[1] for text in texts if "gateway-owner=" in text}


def found(*key_ids: str) -> Found:
    return Found(things=tuple((Thing.MARKER, key_id) for key_id in key_ids))


async def test_marker_moves_and_the_record_is_its_owners_without_the_old_key(
    zone: Zone, hand: Hand, owner: Owner
) -> None:
    stamps = restamping_at(zone)
    assert await stamps.look(document_of(owner)) == found("old")
    assert stamped(hand, owner) == {"old"}
    assert await stamps.move(document_of(owner)) == found("old")
    assert await stamps.move(document_of(owner)) == found()
    assert await stamps.look(document_of(owner)) == found("new")
    publisher = Publisher(Zones([zone]), Markers([NEW]), Exchange())
    outcome = await publisher.publish(owner, RECORD, held=False, remembered=None, deadline=soon())
    assert outcome.kind.value == "unchanged"


async def test_new_marker_costs_one_question(zone: Zone, owner: Owner) -> None:
    await restamping_at(zone).move(document_of(owner))
    exchange = Watched()
    await restamping_at(zone, exchange).move(document_of(owner))
    assert exchange.sent == 1


async def test_address_edited_at_that_moment_stays_edited(
    zone: Zone, hand: Hand, owner: Owner
) -> None:
    """The second try sees it, and keeps the marker provable by the remembered record."""
    exchange = Watched(owner.hostname, hand)
    assert await restamping_at(zone, exchange).move(document_of(owner)) == found("old")
    assert "300 A 192.0.2.7" in hand.records(owner.hostname)
    assert stamped(hand, owner) == {"new"}


async def test_document_without_a_record_or_a_holder_costs_nothing(
    zone: Zone, owner: Owner
) -> None:
    exchange = Watched()
    stamps = restamping_at(zone, exchange)
    assert await stamps.move(document_of(owner, None)) == Found()
    assert await stamps.look(replace(document_of(owner), holder=None)) == Found()
    assert exchange.sent == 0


async def test_name_in_no_configured_zone_is_told(zone: Zone) -> None:
    stamps = restamping_at(zone)
    (text,) = (await stamps.move(document_of(owner_of("a.unknown.test")))).failures
    assert text.startswith("a.unknown.test: ")
    assert "No configured zone" in text


async def test_zone_that_does_not_answer_is_given_up_after_a_few_names(bind: BindPair) -> None:
    exchange = Watched()
    stamps = restamping_at(zone_at((LOOPBACK, free_port()), bind.tsig), exchange)
    names = [f"a{number}.example.test" for number in range(GIVEN_UP_AFTER + 1)]
    told = [await stamps.move(document_of(owner_of(name))) for name in names]
    assert all(name in each.failures[0] for name, each in zip(names, told, strict=True))
    asked = exchange.sent
    again = await stamps.move(document_of(owner_of("b.example.test")))
    assert exchange.sent == asked
    (text,) = again.failures
    assert text.startswith("b.example.test: ")
    assert text.endswith("did not answer for others.")


async def test_zone_that_answers_in_between_is_not_given_up(
    zone: Zone, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time to answer in, every question fails as one at a dead server does."""
    stamps = restamping_at(zone)
    for _ in range(GIVEN_UP_AFTER - 1):
        with monkeypatch.context() as patched:
            patched.setattr(restamping, "BOUND_SECONDS", 0.0)
            assert (await stamps.look(document_of(owner))).failures
    assert await stamps.look(document_of(owner)) == found("old")
    with monkeypatch.context() as patched:
        patched.setattr(restamping, "BOUND_SECONDS", 0.0)
        assert (await stamps.look(document_of(owner))).failures
    assert await stamps.look(document_of(owner)) == found("old")
