"""The words of `gateway explain` for what no lab shows at once."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.access.foresight import (
    ANY_APP,
    NO_TIME,
    Asker,
    Coverage,
    Foreseen,
    StepUnknown,
)
from gateway.certificates.events import AuthoritiesHeld, AuthorityChosen, StepBroke
from gateway.certificates.ledger import Granted, Held, HeldBy
from gateway.certificates.states import Reason
from gateway.cli import explanation_json, holding_words
from gateway.contract.names import AppId, ClientId, Hostname, ZoneName
from gateway.dns.challenges import Interruption
from gateway.dns.health import ZoneHealth
from gateway.dns.nameservers import NameServer
from gateway.dns.outcome import FoundRecord
from gateway.dns.owner import Owner
from gateway.dns.situation import (
    ChallengeSeen,
    MarkerSeen,
    NameSeen,
    Presence,
    PrimarySeen,
    ServerSeen,
    ZoneSeen,
    matching_zones,
)
from gateway.dns.zones import Endpoint, Zones
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.store.documents import Document, Holder
from gateway.views import explanation
from gateway.views.explanation import Explanation, Fault, first_allowed
from tests.unit.access.test_foresight import client
from tests.unit.dns.building import HOSTNAME, OTHER, V4, ZONE, marker_of

NOW_MS = 1_700_000_000_000
CLIENT = client("relay", "*.example.test")
CHALLENGE = f"_acme-challenge.{HOSTNAME}"
MARK = marker_of(V4)


def found(**changes: Any) -> Explanation:
    base = Explanation(
        hostname=HOSTNAME,
        zones=(ZONE,),
        zone=ZoneSeen(ZONE, (), ()),
        name=NameSeen(HOSTNAME, ZONE, Presence.ABSENT),
        challenge=ChallengeSeen((CHALLENGE,), NameSeen(CHALLENGE, ZONE, Presence.ABSENT)),
        document=Document(HOSTNAME),
        outlook=None,
        coverage=(),
        authorities={},
        asker=Asker(CLIENT.client_id, AppId("app:one"), "as named", CLIENT),
        record=V4,
        sync=Foreseen("managed-created", "It is done."),
        certificate=Foreseen("pending"),
        authority_names={},
        zone_names=(),
        now_ms=NOW_MS,
    )
    return replace(base, **changes)


def told(**changes: Any) -> str:
    return "\n".join(" ".join(line.split()) for line in explanation.lines(found(**changes)))


def test_topic_is_named_once() -> None:
    server = ServerSeen(NameServer("ns1", ()), is_answering=True)
    lines = list(explanation.lines(found(zone=ZoneSeen(ZONE, (), (server, server)))))
    assert [line for line in lines if "ns1" in line] == [
        "servers      ns1 (no address) answers",
        "             ns1 (no address) answers",
    ]


@pytest.mark.parametrize(
    ("skew", "words"),
    [(0.5, "; its clock and this one agree"), (7.0, "; its clock is 7 s ahead of this one")],
)
def test_primaries_are_told_with_their_clocks(skew: float, words: str) -> None:
    first = PrimarySeen(Endpoint("192.0.2.53", 53), ZoneHealth(True, "Good.", skew))
    second = PrimarySeen(Endpoint("192.0.2.54", 53), ZoneHealth(False, "It is deaf."))
    text = told(zone=ZoneSeen(ZONE, (first, second), ()))
    assert f"primary 192.0.2.53:53 serves the zone and takes updates{words}" in text
    assert "standby It is deaf." in text


def test_clock_that_is_not_shown_and_off_is_told() -> None:
    health = ZoneHealth(True, "Good.", is_clock_off=True)
    primary = PrimarySeen(Endpoint("192.0.2.53", 53), health)
    text = told(zone=ZoneSeen(ZONE, (primary,), ()))
    assert "takes updates; its clock is 30 s or more off this one" in text


def test_fault_is_told_once_and_pointed_to_afterwards() -> None:
    deaf = "It is deaf."
    unknown = NameSeen(HOSTNAME, ZONE, Presence.UNKNOWN, fault=deaf)
    primary = PrimarySeen(Endpoint("192.0.2.53", 53), ZoneHealth(False, deaf, 300.0))
    text = told(
        zone=ZoneSeen(ZONE, (primary,), (), fault=deaf),
        name=unknown,
        challenge=ChallengeSeen((CHALLENGE,), fault=deaf),
        sync=Foreseen("zone-unavailable", deaf, retry_after_ms=5_000),
        certificate=Foreseen("refused", f"At the alias: {deaf}", "zone-unavailable"),
    )
    assert text.count(deaf) == 1
    assert f"primary {deaf}\nservers not known (see primary)\nname not known (see primary)" in text
    assert f"challenge {CHALLENGE}\nnot known (see primary)" in text
    assert "zone-unavailable (see primary) (the client asks again in 5 s)" in text
    assert "refused zone-unavailable: At the alias (see primary)" in text


def test_faults_of_two_primaries_are_pointed_to_together() -> None:
    faults = "It is deaf.", "It is mute."
    one, two = (
        PrimarySeen(Endpoint("192.0.2.53", 53), ZoneHealth(False, fault)) for fault in faults
    )
    text = told(
        zone=ZoneSeen(ZONE, (one, two), ()),
        challenge=ChallengeSeen((CHALLENGE,), fault=" ".join(faults)),
        sync=Foreseen("zone-unavailable", " ".join(faults)),
    )
    assert f"challenge {CHALLENGE}\nnot known (see primary, standby)" in text
    assert "zone-unavailable (see primary, standby)\n" in text


def test_fault_of_redis_is_told_once_whoever_met_it() -> None:
    away = Fault("Redis is away.")
    gone = Foreseen("unavailable", away.sentence)
    text = told(
        document=away, coverage=away, authorities={"one": away}, sync=gone, certificate=gone
    )
    assert text.count(away.sentence) == 1
    assert "policy not known (see holder)\nauthority one: not known (see holder)" in text
    assert text.endswith("a request would answer unavailable (see holder)")


def test_what_is_promised_is_told_with_what_was_not_tried() -> None:
    first = AuthorityChosen("https://one.test/dir", takes_replaces=False)
    text = told(certificate=Foreseen("pending", first=first))
    whether = f"not tried whether the server lets the key change {HOSTNAME}"
    assert f"{whether} and {CHALLENGE}; what the authority says" in text
    view = explanation_json.view(found(certificate=Foreseen("pending", first=first)))
    assert view["notTried"] == [HOSTNAME, CHALLENGE]
    assert told().endswith(whether)
    assert "not tried" not in told(sync=Foreseen("record-conflict", "No."))


def test_host_that_a_challenge_interrupts_is_named() -> None:
    target = NameSeen(CHALLENGE, ZONE, Presence.ABSENT)
    gap = Interruption(HOSTNAME, "*.example.test")
    seen = ChallengeSeen((CHALLENGE,), target, interruption=gap)
    words = f"while one is there, {HOSTNAME} does not resolve: only the wildcard *.example.test"
    assert words in told(challenge=seen)
    assert explanation_json.view(found(challenge=seen))["challenge"]["interruption"] == {
        "name": HOSTNAME,
        "wildcard": "*.example.test",
    }


def test_silent_server_is_told_with_its_bound() -> None:
    bounded = replace(ZONE, silent_server_seconds=300.0)
    server = ServerSeen(NameServer("192.0.2.53:53", (Endpoint("192.0.2.53", 53),)), False)
    seen = ZoneSeen(bounded, (), (server,), fault=None)
    text = told(zones=(bounded,), zone=seen)
    assert "192.0.2.53:53 does not answer: challenges wait for it until 300 s after their" in text


def test_server_that_nobody_had_time_for_is_not_called_silent() -> None:
    seen = ZoneSeen(ZONE, (), (ServerSeen(NameServer("ns1", ()), None),))
    text = told(zone=seen)
    assert f"servers ns1 (no address) may answer or not: {NO_TIME}" in text
    assert "does not answer" not in text


def test_interruption_that_is_not_known_is_told_with_why() -> None:
    target = NameSeen(CHALLENGE, ZONE, Presence.ABSENT)
    seen = ChallengeSeen((CHALLENGE,), target, interruption_fault="It is deaf.")
    assert "what it would interrupt is not known: It is deaf." in told(challenge=seen)


def test_issuance_whose_first_step_got_no_time_is_told_to_start() -> None:
    foreseen = Foreseen("pending", first=StepUnknown())
    words = f"an issuance would start; where is not known: {NO_TIME}"
    assert f"a request would answer pending: {words}" in told(certificate=foreseen)
    view = explanation_json.view(found(certificate=foreseen))
    assert view["certificate"]["start"] == {"authority": None, "fault": NO_TIME}


def test_zones_that_match_shorter_are_named() -> None:
    above = replace(ZONE, name=ZoneName("test"))
    zones = matching_zones(Zones([above, ZONE]), HOSTNAME)
    assert zones == (ZONE, above)
    assert "zone example.test (also configured above it: test)" in told(zones=zones)


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        (
            MarkerSeen(MARK, "new", True),
            "of this gateway's key new: it proves neither this ownership nor this address:"
            " another owner's, or the address was edited; try --client … --app-id …",
        ),
        (
            MarkerSeen(MARK, "k9", False),
            "of the key k9, which the keyring lacks: another gateway's, or a lost one",
        ),
        (MarkerSeen("gateway-owner=v1:new:short", "new", False), "what looks like one is none"),
        (
            MarkerSeen(MARK, "new", True, OTHER, True, True),
            "of the key new: it proves the address to be that of other for app:one",
        ),
        (
            MarkerSeen(MARK, "new", True, OTHER, True),
            "of the key new: it was made for an address of other for app:one, which is not the",
        ),
        (
            MarkerSeen(MARK, "new", True, OTHER),
            "of the key new: it proves a record of other for app:one, whose address is not",
        ),
    ],
)
def test_marker_is_told_by_what_it_proves(marker: MarkerSeen, words: str) -> None:
    name = NameSeen(HOSTNAME, ZONE, Presence.IN_USE, markers=(marker,))
    assert f"marker {words}" in told(name=name)


ASKERS = Owner(CLIENT.client_id, AppId("app:one"), HOSTNAME)


@pytest.mark.parametrize(
    ("marker", "is_pointed_to"),
    [
        (MarkerSeen(MARK, "new", True), True),
        (MarkerSeen(MARK, "new", True, OTHER, True, True), True),
        (MarkerSeen(MARK, "new", True, ASKERS), True),
        (MarkerSeen(MARK, "new", True, ASKERS, True, True), False),
        (MarkerSeen(MARK, "k9", False), False),
    ],
)
def test_conflict_with_a_marker_of_the_gateway_is_not_said_to_be_with_foreign_records(
    marker: MarkerSeen, is_pointed_to: bool
) -> None:
    name = NameSeen(HOSTNAME, ZONE, Presence.IN_USE, markers=(marker,))
    foreign = "It is held by records that the gateway did not publish."
    text = told(name=name, sync=Foreseen("record-conflict", foreign))
    pointing = "records that are not proven to be this ownership's (see marker)"
    assert (pointing in text, foreign in text) == (is_pointed_to, not is_pointed_to)


def test_values_of_a_wildcard_at_the_challenge_are_told_as_made_up() -> None:
    record = FoundRecord(CHALLENGE, "TXT", '"x"', 60)
    target = NameSeen(CHALLENGE, ZONE, Presence.MADE_UP, (record,))
    text = told(challenge=ChallengeSeen((CHALLENGE,), target))
    assert 'in the zone example.test; TXT there, made up by a wildcard: "x"' in text


def test_target_that_cannot_be_read_is_told() -> None:
    target = NameSeen(CHALLENGE, ZONE, Presence.UNKNOWN, fault="It is deaf.")
    assert "It is deaf." in told(challenge=ChallengeSeen((CHALLENGE,), target))


def test_many_clients_are_cut_short_for_people_only() -> None:
    coverage = tuple(Coverage(client(f"c{number}"), ("*",)) for number in range(12))
    assert "\nand 2 more, which --json lists\n" in told(coverage=coverage)
    assert len(explanation_json.view(found(coverage=coverage))["policy"]) == 12


def test_client_without_a_token_is_told_as_such() -> None:
    text = told(
        coverage=(Coverage(CLIENT, CLIENT.hostname_patterns),),
        sync=Foreseen("unauthorized"),
        certificate=Foreseen("unauthorized"),
    )
    assert "relay by *.example.test: nothing; addresses none; without a token that is valid" in text
    assert "unauthorized: relay has no token that is valid" in text


def test_client_that_is_not_there_is_told_as_such() -> None:
    nobody = Asker(ClientId("z"), ANY_APP, "as named")
    text = told(asker=nobody, sync=Foreseen("unauthorized"), certificate=Foreseen("unauthorized"))
    assert "asked by z, with a new appId (as named)" in text
    assert "a request would answer unauthorized: there is no client z" in text


def test_authorities_are_told_with_what_holds_an_order() -> None:
    held = Held(NOW_MS, "it is used up", HeldBy.BUDGET)
    authorities = {"one": Granted(), "two": held, "three": Fault("Redis is away.")}
    text = told(authorities=authorities)
    assert "authority one: has room for an order\ntwo: held: it is used up\n" in text
    assert "three: not known: Redis is away." in text
    assert explanation_json.view(found(authorities=authorities))["authorities"] == {
        "one": {"granted": True},
        "two": {"granted": False, "until": NOW_MS, "by": "budget", "detail": "it is used up"},
        "three": {"fault": "Redis is away."},
    }


def test_issuance_that_would_wait_says_for_what() -> None:
    first = AuthoritiesHeld(NOW_MS, Reason.RATE_LIMITED, "it is used up")
    held = Foreseen("pending", first=first)
    assert "pending: an issuance would start, and wait: it is used up" in told(certificate=held)
    broke = Foreseen("pending", first=StepBroke("x"))
    assert "pending: an issuance would start\n" in told(certificate=broke)


def test_verdict_says_when_to_ask_again() -> None:
    away = Foreseen("zone-unavailable", "It is deaf.", retry_after_ms=5_000)
    assert "zone-unavailable: It is deaf. (the client asks again in 5 s)" in told(sync=away)


def test_holder_is_told_to_whom_the_hostname_is_refused() -> None:
    document = Document(HOSTNAME, holder=Holder(ClientId("b"), AppId("x")))
    conflict = Foreseen("record-conflict", "Something else holds the hostname.")
    refused = Foreseen("refused", "It is held.", "hostname-conflict")
    text = told(document=document, sync=conflict, certificate=refused)
    words = f"{HOSTNAME} is held by another ownership: b for x"
    assert f"record-conflict: {words}\n" in text
    assert f"refused hostname-conflict: {words}" in text
    own = told(document=replace(document, holder=THE_GATEWAY), sync=conflict)
    assert f"record-conflict: {HOSTNAME} is held by the gateway itself, for its listener\n" in own


def test_record_and_claim_are_shown_to_programs_as_in_the_list_of_holdings() -> None:
    record = {**V4.to_wire(), "published": False, "edition": "e", "sinceMs": NOW_MS}
    claim = {"sinceMs": NOW_MS, "note": "ours"}
    document = Document(HOSTNAME, record=record, claim=claim)
    shown = explanation_json.view(found(document=document))["holding"]
    listed = holding_words.view(document, Zones([ZONE]))
    assert shown["record"] == listed["record"] == {**V4.to_wire(), "published": False}
    assert shown["claim"] == listed["claim"] == {"since": NOW_MS, "note": "ours"}


def test_silence_of_both_sides_says_nothing() -> None:
    unknown = NameSeen(HOSTNAME, ZONE, Presence.UNKNOWN, fault="It is deaf.")
    away = Fault("Redis is away.")
    assert not found(name=unknown, document=away).says_anything
    assert found(document=away).says_anything
    assert found(name=unknown).says_anything
    assert not found(zones=(), zone=None, name=None, document=away).says_anything


@pytest.mark.parametrize(
    ("prefixes", "address"),
    [
        (["198.51.100.0/24"], "198.51.100.1"),
        (["198.51.100.7/32"], "198.51.100.7"),
        (["2001:db8::/32", "198.51.100.0/24"], "2001:db8::1"),
        (["0.0.0.0/0", "198.51.100.0/24"], "192.0.2.1"),
        (["::/0"], "2001:db8::1"),
        (["::/8"], "::1:0:0"),
        (["0.0.0.0/1"], "1.0.0.0"),
        (["fe80::/9"], "fec0::"),
        (["127.0.0.0/8", "169.254.0.0/16", "198.51.100.0/24"], "198.51.100.1"),
        (["240.0.0.0/4"], "192.0.2.1"),
        ([], "192.0.2.1"),
    ],
)
def test_address_is_the_first_that_the_client_may_publish(
    prefixes: list[str], address: str
) -> None:
    assert first_allowed(prefixes) == address


def test_hostname_without_a_zone_is_told_which_there_are() -> None:
    text = told(hostname=Hostname("relay.elsewhere.test"), zones=(), zone=None, name=None)
    assert "zone no configured zone holds the hostname; configured: none" in text
