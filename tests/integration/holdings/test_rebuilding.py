"""`gateway holdings rebuild` on a real zone, after a real FLUSHALL."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.zones import Endpoint, TsigKey
from gateway.holdings.candidates import Supposed
from gateway.holdings.rebuilding import Upshot
from tests.integration.dns.conftest import zone_at
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.integration.holdings.ruins import (
    ADDRESS,
    LOST_KEY,
    OTHER_ADDRESS,
    ZONE,
    Ruins,
    challenge_debt,
    debts_as_stored,
    holder_of,
    marked,
)
from tests.integration.holdings.site import now_ms
from tests.lab.ports import LOOPBACK, free_port

EDITED = "192.0.2.99"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneBind]:
    """A server that takes updates and gives no transfer."""
    folder = tmp_path_factory.mktemp("closed")
    with lone_bind(folder, {ZONE: ""}, options="allow-transfer { none; };") as server:
        yield server


@pytest.fixture
async def lost(ruins: Ruins) -> Ruins:
    """A record was published; then Redis was lost, and its client provisioned again."""
    await ruins.make_client()
    assert (await ruins.publish(ruins.owner())).status == "managed-created"
    ruins.lose_redis()
    await ruins.make_client()
    return ruins


async def test_record_is_restored_for_the_app_id_that_is_given(lost: Ruins) -> None:
    finding = (await lost.rebuild("other", "app"))["relay"]
    assert (finding.outcome, finding.owner) == (Upshot.RESTORED, lost.owner())
    await lost.assert_agreed(lost.owner(), ADDRESS)
    assert (await lost.rebuild())["relay"].outcome is Upshot.KNOWN


async def test_restored_record_is_replaced_and_withdrawn_by_its_owner(lost: Ruins) -> None:
    await lost.rebuild("app")
    assert (await lost.publish(lost.owner(), OTHER_ADDRESS)).status == "managed-updated"
    await lost.assert_agreed(lost.owner(), OTHER_ADDRESS)
    assert (await lost.records.withdraw(lost.owner())).status == "managed-deleted"
    assert await lost.in_zone(lost.owner()) == set()
    assert (await lost.document(lost.owner())).version == ""


async def test_dry_run_says_what_it_would_do_and_does_nothing(lost: Ruins) -> None:
    assert (await lost.rebuild("app", writes=False))["relay"].outcome is Upshot.RESTORABLE
    assert (await lost.document(lost.owner())).version == ""


async def test_record_is_restored_for_an_app_id_that_redis_knows(lost: Ruins) -> None:
    await lost.publish(lost.owner(first="second"))
    assert (await lost.rebuild())["relay"].outcome is Upshot.RESTORED


async def test_record_of_nobody_supposed_stays_unproven_until_its_owner_calls(
    lost: Ruins,
) -> None:
    assert (await lost.rebuild("guess"))["relay"].outcome is Upshot.UNPROVEN
    assert (await lost.document(lost.owner())).version == ""
    assert (await lost.publish(lost.owner())).status == "managed-unchanged"
    assert (await lost.rebuild())["relay"].outcome is Upshot.KNOWN


@pytest.mark.parametrize("at_hostname", [True, False])
async def test_ownership_that_is_named_is_tried_whatever_the_patterns_say(
    lost: Ruins, at_hostname: bool
) -> None:
    await lost.make_client("narrow", "elsewhere.example")
    narrow = lost.owner("narrow", first="named")
    await lost.edit(
        f"add {narrow.hostname} 300 A {ADDRESS.value}",
        f"add {narrow.hostname} 300 {marked(narrow)}",
    )
    assert (await lost.rebuild("app"))["named"].outcome is Upshot.UNPROVEN
    name = narrow.hostname if at_hostname else None
    supposed = Supposed(narrow.client_id, narrow.app_id, name)
    assert (await lost.rebuild(supposed=[supposed]))["named"].owner == narrow
    await lost.assert_agreed(narrow, ADDRESS)


async def test_record_of_a_client_that_was_not_provisioned_again_is_told(lost: Ruins) -> None:
    lost.lose_redis()
    supposed = Supposed(ClientId("mine"), AppId("app"))
    finding = (await lost.rebuild(supposed=[supposed]))["relay"]
    assert (finding.outcome, finding.owner) == (Upshot.CLIENT_UNKNOWN, lost.owner())
    assert (await lost.document(lost.owner())).version == ""


LINES: dict[Upshot, Callable[[Ruins], list[str]]] = {
    Upshot.UNKNOWN_KEY: lambda ruins: [
        f"add NAME 300 A {ADDRESS.value}",
        f"add NAME 300 {marked(ruins.owner(first='odd'), markers=LOST_KEY)}",
    ],
    Upshot.MALFORMED: lambda _: [
        f"add NAME 300 A {ADDRESS.value}",
        'add NAME 300 TXT "gateway-owner=v1:k1:short"',
    ],
    Upshot.ADDRESS_GONE: lambda ruins: [f"add NAME 300 {marked(ruins.owner(first='odd'))}"],
    Upshot.UNPROVEN: lambda ruins: [
        f"add NAME 300 A {EDITED}",
        f"add NAME 300 {marked(ruins.owner(first='odd'))}",
    ],
    Upshot.ADDRESS_EDITED: lambda ruins: [
        f"add NAME 300 A {ADDRESS.value}",
        f"add NAME 300 A {EDITED}",
        f"add NAME 300 {marked(ruins.owner(first='odd'))}",
    ],
    Upshot.AMBIGUOUS: lambda ruins: [
        f"add NAME 300 A {ADDRESS.value}",
        f"add NAME 300 {marked(ruins.owner(first='odd'))}",
        f"add NAME 300 {marked(ruins.owner(app='second', first='odd'))}",
    ],
}


@pytest.mark.parametrize("outcome", LINES)
async def test_what_is_not_proven_is_told_and_left_alone(lost: Ruins, outcome: Upshot) -> None:
    owner = lost.owner(first="odd")
    await lost.edit(*(line.replace("NAME", owner.hostname) for line in LINES[outcome](lost)))
    before = await lost.in_zone(owner)
    assert (await lost.rebuild("app", "second"))["odd"].outcome is outcome
    assert (await lost.document(owner)).version == ""
    assert await lost.in_zone(owner) == before


@pytest.mark.parametrize(
    ("app_ids", "detail"),
    [
        ((), "No appId is known to try: give --app-id or --owners. If the address was not"),
        (("b", "c"), "Tried: mine:b, mine:c. If the address was not edited, its owner's next sync"),
        (tuple("bcdefgh"), "mine:f, and 2 more. If the address was not edited"),
    ],
)
async def test_unproven_marker_is_told_with_whom_it_was_tried_for(
    lost: Ruins, app_ids: tuple[str, ...], detail: str
) -> None:
    finding = (await lost.rebuild(*app_ids))["relay"]
    assert finding.outcome is Upshot.UNPROVEN
    assert detail in finding.detail


async def test_unproven_marker_is_told_with_the_record_that_redis_remembers(lost: Ruins) -> None:
    other = lost.owner("other", "x")
    record = {**ADDRESS.to_wire(), "published": True, "edition": "e"}
    await lost.put(other, holder=holder_of(other), record=record)
    detail = (await lost.rebuild("b"))["relay"].detail
    assert detail.startswith("Tried: mine:b, mine:x, other:x. ")


async def test_client_that_is_not_provisioned_yet_is_asked_for(ruins: Ruins) -> None:
    await ruins.make_client()
    await ruins.publish(ruins.owner())
    ruins.lose_redis()
    finding = (await ruins.rebuild("app"))["relay"]
    assert finding.outcome is Upshot.UNPROVEN
    assert finding.detail == ("No client is provisioned whose patterns match: provision it first.")


async def test_marker_at_a_name_that_is_no_hostname_is_told(lost: Ruins) -> None:
    await lost.edit(f"add _odd.{lost.label}.{ZONE} 300 {marked(lost.owner())}")
    assert (await lost.rebuild("app"))["_odd"].outcome is Upshot.NO_HOSTNAME


async def test_one_proven_marker_of_two_is_enough(lost: Ruins) -> None:
    owner = lost.owner()
    await lost.edit(f"add {owner.hostname} 300 {marked(owner, markers=LOST_KEY)}")
    finding = (await lost.rebuild("app"))["relay"]
    assert (finding.outcome, finding.markers) == (Upshot.RESTORED, 2)


async def test_edited_ttl_is_remembered_as_one_that_a_record_may_have(lost: Ruins) -> None:
    name = lost.owner().hostname
    await lost.edit(f"delete {name} A", f"add {name} 7 A {ADDRESS.value}")
    assert (await lost.rebuild("app"))["relay"].record == ADDRESS.model_copy(update={"ttl": 60})
    assert (await lost.publish(lost.owner())).status == "managed-updated"


async def test_document_of_another_holder_is_a_disagreement(lost: Ruins) -> None:
    other = lost.owner("other")
    record = {**ADDRESS.to_wire(), "published": True, "edition": "e"}
    await lost.put(other, holder=holder_of(other), record=record)
    finding = (await lost.rebuild("app"))["relay"]
    assert finding.outcome is Upshot.DISAGREES
    assert finding.detail == "Redis says that other holds it for app."
    assert await lost.holder(other) == holder_of(other)


async def test_document_with_another_value_is_a_disagreement(lost: Ruins) -> None:
    record = {**OTHER_ADDRESS.to_wire(), "published": True, "edition": "e"}
    await lost.put(lost.owner(), holder=holder_of(lost.owner()), record=record)
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.DISAGREES
    assert (await lost.document(lost.owner())).record == record


async def test_claim_is_a_disagreement(lost: Ruins) -> None:
    await lost.put(lost.owner(), claim={"sinceMs": 1, "note": ""})
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.DISAGREES
    assert await lost.holder(lost.owner()) is None


async def test_intent_of_another_gives_way(lost: Ruins) -> None:
    """Its call came after the loss; the zone has not told it yet that the name is taken."""
    other = lost.owner("other")
    await lost.make_client("other")
    old = {**ADDRESS.to_wire(), "published": False, "edition": "e"}
    old["sinceMs"] = now_ms()
    await lost.index.enter(other.client_id, other.hostname, now_ms())
    await lost.put(other, holder=holder_of(other), record=old)
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.RESTORED
    await lost.assert_agreed(lost.owner(), ADDRESS)
    assert not await lost.is_indexed(other)


async def test_certificate_that_was_issued_since_stays_beside_the_record(lost: Ruins) -> None:
    fields = {"issuance_id": "i", "state": "requested"}
    await lost.put(lost.owner(), holder=holder_of(lost.owner()), issuance=fields)
    assert (await lost.rebuild())["relay"].outcome is Upshot.RESTORED
    await lost.assert_agreed(lost.owner(), ADDRESS)
    assert (await lost.document(lost.owner())).issuance == fields


async def test_record_withdrawn_at_that_moment_is_not_remembered(lost: Ruins) -> None:
    lost.taking.before.set(lambda: lost.records.withdraw(lost.owner()))
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.CHANGED
    assert lost.taking.before.has_come
    assert (await lost.document(lost.owner())).version == ""
    assert not await lost.is_indexed(lost.owner())


async def test_record_published_at_that_moment_is_not_overwritten(lost: Ruins) -> None:
    lost.taking.before.set(lambda: lost.publish(lost.owner(), OTHER_ADDRESS))
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.CHANGED
    await lost.assert_agreed(lost.owner(), OTHER_ADDRESS)


async def test_record_that_only_redis_has_is_told(lost: Ruins) -> None:
    await lost.publish(lost.owner(first="gone"))
    await lost.publish(lost.owner(first="taken"))
    gone, taken = lost.hostname("gone"), lost.hostname("taken")
    await lost.edit(f"delete {gone}", f"delete {taken}", f"add {taken} 300 A {EDITED}")
    findings = await lost.rebuild("app")
    assert findings["gone"].outcome is findings["taken"].outcome is Upshot.NOT_IN_ZONE
    assert findings["taken"].detail == f"Redis says A {ADDRESS.value}; at the name is A {EDITED}."


async def test_address_that_was_edited_is_told_with_its_owner(lost: Ruins) -> None:
    await lost.publish(lost.owner())
    name = lost.owner().hostname
    await lost.edit(f"delete {name} A", f"add {name} 300 A {EDITED}")
    finding = (await lost.rebuild())["relay"]
    assert (finding.outcome, finding.owner) == (Upshot.ADDRESS_EDITED, lost.owner())
    assert (await lost.publish(lost.owner())).status == "record-conflict"


async def test_challenge_values_are_told_but_for_those_that_are_owed(lost: Ruins) -> None:
    name = Hostname(f"_acme-challenge.{lost.owner().hostname}")
    await lost.edit(f"add {name} 60 TXT left", f"add {name} 60 TXT owed")
    owed = challenge_debt(ZONE, lost.owner().hostname, "owed")
    await lost.put(lost.owner(), debts=debts_as_stored(owed))
    report = await lost.report("app")
    assert [each.value for each in report.challenges if each.name == name] == ["left"]
    assert await lost.in_zone(replace(lost.owner(), hostname=name)) == {
        '60 TXT "left"',
        '60 TXT "owed"',
    }


async def test_name_below_a_cut_is_not_restored(lost: Ruins) -> None:
    await lost.edit(f"add {lost.label}.{ZONE} 300 NS ns.elsewhere.example.")
    finding = (await lost.rebuild("app"))["relay"]
    assert finding.outcome is Upshot.UNREAD
    assert "delegated away" in finding.detail
    assert (await lost.document(lost.owner())).version == ""


async def test_zone_without_transfer_is_looked_at_by_the_names_that_are_known(
    ruins: Ruins, closed: LoneBind
) -> None:
    ruins.at(zone_at(closed.primary, closed.tsig, ZONE))
    await ruins.make_client()
    for first in ("relay", "given", "unknown"):
        await ruins.publish(ruins.owner(first=first))
    ruins.lose_redis()
    await ruins.make_client()
    await ruins.publish(ruins.owner())
    report = await ruins.report(names=[ruins.hostname("given"), ruins.hostname("nothing")])
    assert report.partial is not None
    assert "REFUSED to a transfer" in report.partial
    found = {each.hostname: each.outcome for each in report.findings}
    assert found == {
        ruins.hostname("relay"): Upshot.KNOWN,
        ruins.hostname("given"): Upshot.RESTORED,
    }
    assert report.is_settled


async def test_challenges_of_known_names_are_told_without_a_transfer(
    ruins: Ruins, closed: LoneBind
) -> None:
    ruins.at(zone_at(closed.primary, closed.tsig, ZONE))
    ruins.hand = type(ruins.hand)(closed.primary, closed.tsig)
    name = f"_acme-challenge.{ruins.hostname()}"
    await ruins.edit(f"add {name} 60 TXT left")
    report = await ruins.report(names=[ruins.hostname()])
    assert [(each.name, each.value) for each in report.challenges] == [(name, "left")]


async def test_zone_without_transfer_of_which_no_name_is_known_is_not_read(
    ruins: Ruins, closed: LoneBind
) -> None:
    ruins.at(zone_at(closed.primary, closed.tsig, ZONE))
    report = await ruins.report()
    assert (report.is_unreadable, report.is_settled, report.findings) == (True, False, [])


async def test_what_a_wildcard_makes_up_is_restored_at_no_name(lost: Ruins) -> None:
    """Somebody copied an address and its marker to the wildcard above a name that has nothing."""
    owner, wildcard = lost.owner(first="x.wild"), lost.owner(first="*.wild").hostname
    await lost.edit(f"add {wildcard} 300 A {ADDRESS.value}", f"add {wildcard} 300 {marked(owner)}")
    report = await lost.report("app", names=[owner.hostname])
    assert owner.hostname not in {each.hostname for each in report.findings}
    assert (await lost.document(owner)).version == ""


@pytest.mark.parametrize("fault", ["nobody listens", "the key is wrong"])
async def test_zone_that_cannot_be_read_is_told_without_asking_for_each_name(
    lost: Ruins, fault: str
) -> None:
    await lost.publish(lost.owner())
    key = TsigKey("gateway", "hmac-sha256", b"w" * 32)
    primary = Endpoint(LOOPBACK, free_port())
    change = {"primary": primary} if fault == "nobody listens" else {"key": key}
    lost.at(replace(lost.zone, **change))
    report = await lost.report("app")
    assert report.is_unreadable
    assert not report.is_settled
    assert {each.outcome for each in report.findings} == {Upshot.UNREAD}


async def test_two_runs_at_once_agree(lost: Ruins) -> None:
    lost.taking.before.set(lambda: lost.rebuild("app"))
    first = (await lost.rebuild("app"))["relay"]
    assert first.outcome is Upshot.CHANGED
    await lost.assert_agreed(lost.owner(), ADDRESS)


async def test_record_is_restored_though_the_zone_falls_silent_afterwards(lost: Ruins) -> None:
    async def fall_silent() -> None:
        lost.exchange.before.set(lost.exchange.silence)

    lost.taking.before.set(fall_silent)
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.RESTORED
    await lost.assert_agreed(lost.owner(), ADDRESS)


async def test_challenge_names_that_the_zone_cannot_have_are_not_asked_for(
    ruins: Ruins, closed: LoneBind
) -> None:
    """One is too long, one is a zone of its own."""
    label = "x" * 60
    long_name = Hostname(f"{label}.{label}.{label}.{'x' * 50}.{ZONE}")
    own = f"_acme-challenge.{ruins.hostname()}"
    here, child = (zone_at(closed.primary, closed.tsig, name) for name in (ZONE, own))
    ruins.at(here, child)
    report = await ruins.report(names=[long_name, ruins.hostname()])
    assert (report.looked_at, report.findings, report.challenges) == (2, [], [])
    assert report.is_settled


async def test_debts_of_a_newer_release_are_passed_by(lost: Ruins) -> None:
    await lost.put(lost.owner(first="newer"), debts=({"kind": "unheard-of"},))
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.RESTORED
