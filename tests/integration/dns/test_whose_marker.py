"""Whose record is it: every way that markers and addresses can lie at a name, on a real BIND.

The table of docs/architecture.md, "Whose marker", line by line. In each state the owner of `V4`
publishes, publishes it again, withdraws and inspects, and so does another ownership. What is not
proven to be the caller's is at the name afterwards as it was before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.contract import DnsRecord
from gateway.dns.exchange import Exchange
from gateway.dns.marker import MARKER_PREFIX, MarkerKey, Markers
from gateway.dns.outcome import OutcomeKind
from gateway.dns.owner import Owner
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Zones
from tests.integration.dns.conftest import V4, V4_OTHER, V6, Caller, owner_of, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import signed_bind
from tests.lab.process import read_until

CREATED, UPDATED, UNCHANGED = OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED
DELETED, CONFLICT, OURS, FREE = (
    OutcomeKind.DELETED,
    OutcomeKind.CONFLICT,
    OutcomeKind.OURS,
    OutcomeKind.FREE,
)

OLD = MarkerKey("k0", b"o" * 32)
FIRST = MarkerKey("k1", b"k" * 32)
MARKERS, OLD_MARKERS = Markers([FIRST, OLD]), Markers([OLD])
STRANGE_MARKERS = Markers([MarkerKey("k1", b"s" * 32)])
RELABELLED_MARKERS = Markers([MarkerKey("k9", FIRST.secret)])

ADDRESS, EDITED, FOREIGN_V6 = f"A {V4.value}", "A 203.0.113.7", "AAAA 2001:db8:bad::1"
SPF, VERIFICATION = 'TXT "v=spf1 -all"', 'TXT "site-verification=" "0123456789abcdef"'

MALFORMED = {
    "nothing after the prefix": f'TXT "{MARKER_PREFIX}"',
    "other version": f'TXT "{MARKER_PREFIX}v2:k1:AAAAAAAAAAAAAAAAAAAAAA"',
    "no base64": f'TXT "{MARKER_PREFIX}v1:k1:!!!!!!!!!!!!!!!!!!!!!!"',
    "no key id": f'TXT "{MARKER_PREFIX}v1::AAAAAAAAAAAAAAAAAAAAAA"',
    "not ASCII": f'TXT "{MARKER_PREFIX}v1:k1:\\195\\182AAAAAAAAAAAAAAAAAAAA"',
    "255 bytes": f'TXT "{MARKER_PREFIX}{"A" * (255 - len(MARKER_PREFIX))}"',
}


def marker(owner: Owner, record: DnsRecord = V4, markers: Markers = MARKERS) -> str:
    return f'TXT "{markers.sign(owner, record.type, record.value)}"'


def _altered(owner: Owner) -> str:
    text = marker(owner)
    return f"{text[:-2]}{'B' if text[-2] != 'B' else 'C'}{text[-1]}"


def _split(owner: Owner) -> str:
    text = marker(owner)
    return f'{text[:30]}" "{text[30:]}'


def _elsewhere(owner: Owner) -> Owner:
    return owner_of(f"other.{owner.hostname}", owner.client_id, owner.app_id)


def _rival(owner: Owner) -> Owner:
    return owner_of(owner.hostname, "rival")


def _same_client(owner: Owner) -> Owner:
    return owner_of(owner.hostname, owner.client_id, "app:two")


@dataclass(frozen=True)
class Lying:
    """What lies at the name, as `TYPE value`, and what the owner of V4 is answered.

    `ours` goes with a withdrawal and with a record that is published; `foreign` never.
    """

    ours: tuple[str, ...]
    foreign: tuple[str, ...]
    other: OutcomeKind
    again: OutcomeKind
    inspect: OutcomeKind
    remembered: DnsRecord | None = None


Build = Callable[[Owner], Lying]


def _proven(*foreign: Callable[[Owner], str] | str) -> Build:
    """Our address with its marker, and more beside them: disturbs nothing."""
    return lambda owner: Lying(
        (ADDRESS, marker(owner)), _each(foreign, owner), UPDATED, UNCHANGED, OURS
    )


def _unproven(*foreign: Callable[[Owner], str] | str) -> Build:
    """Nothing that is proven to be ours."""
    return lambda owner: Lying(
        (), _each(foreign, owner), CONFLICT, CONFLICT, CONFLICT, remembered=V4
    )


def _each(records: tuple[Callable[[Owner], str] | str, ...], owner: Owner) -> tuple[str, ...]:
    return tuple(each if isinstance(each, str) else each(owner) for each in records)


STATES: dict[str, Build] = {
    "our address and its marker": _proven(),
    "our address, marker of an older key": lambda owner: Lying(
        (ADDRESS, marker(owner, markers=OLD_MARKERS)), (), UPDATED, UNCHANGED, OURS
    ),
    "our address, markers of two keys": lambda owner: Lying(
        (ADDRESS, marker(owner), marker(owner, markers=OLD_MARKERS)), (), UPDATED, UNCHANGED, OURS
    ),
    "ours, and a marker of another owner": _proven(lambda owner: marker(_rival(owner), V6)),
    "ours, and a marker of ours for another address": _proven(lambda owner: marker(owner, V6)),
    "ours, and a marker of an unknown key": _proven(
        lambda owner: marker(owner, markers=STRANGE_MARKERS)
    ),
    "ours, and SPF and a site verification": _proven(SPF, VERIFICATION),
    "ours, and a CAA and an address of the other family": _proven(
        'CAA 0 issue "ca.test"', FOREIGN_V6
    ),
    **{f"ours, and a malformed marker: {why}": _proven(text) for why, text in MALFORMED.items()},
    "a second address beside ours": lambda owner: Lying(
        (marker(owner),), (ADDRESS, EDITED), CONFLICT, CONFLICT, OURS
    ),
    "an edited address, the record remembered": lambda owner: Lying(
        (marker(owner),), (EDITED,), CONFLICT, CONFLICT, CONFLICT, remembered=V4
    ),
    "an edited address, nothing remembered": lambda owner: Lying(
        (), (EDITED, marker(owner)), CONFLICT, CONFLICT, CONFLICT
    ),
    "our marker alone, the record remembered": lambda owner: Lying(
        (marker(owner),), (), CREATED, CREATED, CONFLICT, remembered=V4
    ),
    "our marker alone, nothing remembered": lambda owner: Lying(
        (), (marker(owner),), CONFLICT, CREATED, CONFLICT
    ),
    "our marker and SPF, the record remembered": lambda owner: Lying(
        (marker(owner),), (SPF,), CREATED, CREATED, CONFLICT, remembered=V4
    ),
    "our address alone": _unproven(ADDRESS),
    "our address and SPF": _unproven(ADDRESS, SPF),
    "SPF and a site verification alone": _unproven(SPF, VERIFICATION),
    "another owner's record": _unproven(ADDRESS, lambda owner: marker(_rival(owner))),
    "another app's record": _unproven(ADDRESS, lambda owner: marker(_same_client(owner))),
    "another owner's marker alone": _unproven(lambda owner: marker(_rival(owner))),
    "a marker copied from another name": _unproven(
        ADDRESS, lambda owner: marker(_elsewhere(owner))
    ),
    "a marker of an unknown key": _unproven(
        ADDRESS, lambda owner: marker(owner, markers=STRANGE_MARKERS)
    ),
    "a marker that names another key": _unproven(
        ADDRESS, lambda owner: marker(owner, markers=RELABELLED_MARKERS)
    ),
    "our marker with one character altered": _unproven(ADDRESS, _altered),
    "our marker split into two strings": _unproven(ADDRESS, _split),
    **{f"a malformed marker: {why}": _unproven(ADDRESS, text) for why, text in MALFORMED.items()},
    "a malformed marker alone": _unproven(MALFORMED["other version"]),
}


class Scene:
    """One state at a name of its own, and the two ownerships that ask about it."""

    def __init__(self, publisher: Publisher, hand: Hand, hostname: str, build: Build) -> None:
        self.mine = Caller(publisher, owner_of(hostname))
        self.rival = Caller(publisher, owner_of(hostname, "second-rival"))
        self.lying = build(self.mine.owner)
        self._hand, self._hostname = hand, hostname
        hand.add(*(f"{hostname} 300 {each}" for each in self.lying.ours + self.lying.foreign))
        self.before = self.after

    @property
    def after(self) -> set[str]:
        """What lies at the name now, without the TTLs, which are all the same."""
        records = self._hand.records(self._hostname)
        assert {record.partition(" ")[0] for record in records} <= {"300"}
        return {record.partition(" ")[2] for record in records}


@pytest.fixture
def publisher(zones: Zones) -> Publisher:
    return Publisher(zones, MARKERS, Exchange())


@pytest.fixture(params=list(STATES.values()), ids=list(STATES))
def scene(request: pytest.FixtureRequest, publisher: Publisher, hand: Hand, hostname: str) -> Scene:
    return Scene(publisher, hand, hostname, request.param)


@pytest.mark.parametrize("record", [V4, V4_OTHER], ids=["again", "another"])
async def test_publish_replaces_what_is_proven_and_nothing_else(
    scene: Scene, record: DnsRecord
) -> None:
    lying = scene.lying
    outcome = await scene.mine.publish(record, remembered=lying.remembered)
    assert outcome.kind is (lying.again if record is V4 else lying.other)
    if outcome.kind in (CREATED, UPDATED):
        published = {f"A {record.value}", marker(scene.mine.owner, record)}
        assert scene.after == {*lying.foreign, *published}
    else:
        assert scene.after == scene.before


async def test_withdraw_removes_what_is_proven_and_nothing_else(scene: Scene) -> None:
    assert (await scene.mine.withdraw(scene.lying.remembered)).kind is DELETED
    assert scene.after == set(scene.lying.foreign)


async def test_inspect_tells_what_an_address_at_the_name_proves(scene: Scene) -> None:
    assert (await scene.mine.inspect()).kind is scene.lying.inspect
    assert scene.after == scene.before


async def test_another_ownership_gets_a_conflict_and_changes_nothing(scene: Scene) -> None:
    for record in (V4, V6):
        assert (await scene.rival.publish(record, remembered=record)).kind is CONFLICT
    assert (await scene.rival.withdraw(V4)).kind is DELETED
    assert (await scene.rival.inspect()).kind is CONFLICT
    assert scene.after == scene.before


async def test_marker_put_back_by_hand_proves_for_whom_it_was_made(
    publisher: Publisher, hand: Hand, hostname: str
) -> None:
    """Two owners, one address: whoever edits the zone by hand can give a record to both."""
    mine = Caller(publisher, owner_of(hostname))
    rival = Caller(publisher, _rival(mine.owner))
    await mine.publish(V4)
    hand.add(f"{hostname} 300 {marker(rival.owner)}")
    assert [(await each.publish(V4)).kind for each in (mine, rival)] == [UNCHANGED, UNCHANGED]
    assert (await rival.withdraw()).kind is DELETED
    assert hand.records(hostname) == {f"300 {marker(mine.owner)}"}


async def test_records_of_two_owners_of_two_families_stay_apart(
    publisher: Publisher, hand: Hand, hostname: str
) -> None:
    mine = Caller(publisher, owner_of(hostname))
    rival = Caller(publisher, _rival(mine.owner))
    await mine.publish(V4)
    theirs = (f"AAAA {V6.value}", marker(rival.owner, V6))
    hand.add(*(f"{hostname} 300 {each}" for each in theirs))
    assert (await mine.publish(V6)).kind is CONFLICT
    assert (await rival.publish(V4)).kind is CONFLICT
    assert (await mine.publish(V4_OTHER)).kind is UPDATED
    assert (await mine.withdraw()).kind is DELETED
    assert hand.records(hostname) == {f"300 {each}" for each in theirs}


@pytest.mark.parametrize("inline", ["yes", "no"])
async def test_dnssec_records_are_nobodys_and_hold_no_name(tmp_path: Path, inline: str) -> None:
    signing = f"dnssec-policy default; inline-signing {inline};"
    with signed_bind(tmp_path, {"signed.test": ""}, signing) as server:
        hand = Hand(server.primary, server.tsig)
        zone = zone_at(server.primary, server.tsig, "signed.test")
        publisher = Publisher(Zones([zone]), MARKERS, Exchange())
        mine = Caller(publisher, owner_of("relay.signed.test"))
        assert (await mine.publish(V4)).kind is CREATED
        signed = await read_until(lambda: _records(hand, mine), _is_signed)
        assert {record.split()[1] for record in signed} == {"A", "TXT", "RRSIG", "NSEC"}
        assert (await mine.publish(V4)).kind is UNCHANGED
        assert {each.type for each in (await mine.inspect()).found} == {"A", "TXT"}
        rival = Caller(publisher, _rival(mine.owner))
        assert {each.type for each in (await rival.publish(V4)).found} == {"A", "TXT"}
        assert (await mine.publish(V6)).kind is UPDATED
        assert (await mine.withdraw()).kind is DELETED
        assert (await rival.inspect()).kind is FREE
        assert (await rival.publish(V4)).kind is CREATED


async def _records(hand: Hand, caller: Caller) -> set[str]:
    return hand.records(caller.hostname)


def _is_signed(records: set[str]) -> bool:
    return any(record.split()[1] == "NSEC" for record in records)
