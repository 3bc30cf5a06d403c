"""What is in a refused client's way, and the ways out that are told."""

from dataclasses import replace

from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.http.page.refusals import refusal_of
from tests.unit.http.page.test_conflicts import AT_REQUEST, OTHER, document, entry

MET = entry(
    5,
    "record-sync",
    "record-conflict",
    after="A 192.0.2.1 300",
    detail="in the way: A 203.0.113.9",
)


def test_record_in_the_zone_is_named_with_both_ways_out() -> None:
    told = refusal_of(MET, document())
    assert (told.client_id, told.app_id, told.answer) == ("cluster-a", "relay", "record-conflict")
    assert told.wanted == "A 192.0.2.1, TTL 300 s"
    assert told.way.startswith("The zone has A 203.0.113.9 there, which the gateway did not")
    assert [each.partition(":")[0] for each in told.remedies] == [
        "If cluster-a is to have it",
        "If what is there is to stay",
    ]


def test_holder_is_named_and_what_each_of_both_would_take() -> None:
    told = refusal_of(AT_REQUEST, document(OTHER))
    assert (told.wanted, told.way) == ("a certificate", "cluster-b for relay holds it.")
    assert told.remedies[0].startswith("If cluster-b is to keep it: take the hostname out of what")
    assert "hand-over" in told.remedies[1]
    assert "The gateway itself" in refusal_of(MET, document(THE_GATEWAY)).way


def test_claim_is_what_somebody_wants() -> None:
    told = refusal_of(MET, replace(document(), claim={"sinceMs": 1, "note": ""}))
    assert told.is_claim
    assert "take the claim back" in told.remedies[0]
