"""What needs a person now, judged anew from documents that the census named a while ago."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.certificates.attention import Concern
from gateway.certificates.census import LATE_AFTER_MS, Census, Tally
from gateway.certificates.states import Debt, DebtKind, Issuance, Reason, State, StoredCertificate
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.http.page.causes import ALIKE_SHOWN, Need
from gateway.http.page.needs import (
    CAUSES_SHOWN,
    OF_EACH,
    Concerned,
    Waits,
    hostnames_of,
    needs_of,
)
from gateway.store.documents import Document, Holder, Unreadable

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NAMES = {"https://ca.test/directory": "ca"}
HOLDER = Holder(ClientId("c"), AppId("a"))


def document(name: str = "a.example.test", **fields: Any) -> Document:
    return Document(Hostname(name), version="v", holder=HOLDER, **fields)


def issuance(state: State, **fields: Any) -> dict[str, Any]:
    times = {"begun_at_ms": NOW_MS - DAY_MS, "changed_at_ms": NOW_MS - HOUR_MS}
    return Issuance("i", state, **{**times, "due_at_ms": NOW_MS + HOUR_MS, **fields}).to_json()


def certificate(*, left_ms: int, renew_in_ms: int) -> dict[str, Any]:
    until_ms = NOW_MS + left_ms
    return StoredCertificate(
        issuance_id="i",
        chain_pem="",
        sealed_key="",
        valid_from_ms=until_ms - 90 * DAY_MS,
        valid_until_ms=until_ms,
        renew_at_ms=NOW_MS + renew_in_ms,
        renew_after_ms=NOW_MS + renew_in_ms,
        share_at_ms=NOW_MS + renew_in_ms,
        serial="1",
        issuer="CN=ca",
        directory_url="https://ca.test/directory",
        ask_at_ms=NOW_MS + DAY_MS,
    ).to_json()


def census_of(documents: Sequence[Document], now_ms: int = NOW_MS) -> Census:
    tally = Tally(now_ms)
    for each in documents:
        tally.add(each.hostname, each)
    return tally.census(now_ms)


def needs(*documents: Document) -> list[Concerned]:
    return list(needs_of(census_of(documents), documents, NOW_MS, NAMES).concerned)


def only(found: list[Concerned]) -> tuple[Concern, Need]:
    (group,) = found
    (cause,) = group.causes
    (need,) = cause.needs
    assert (group.more, cause.more, group.count) == (0, 0, 1)
    return group.concern, need


def test_failed_issuance_says_since_when_and_why_and_what_is_next() -> None:
    failed = issuance(
        State.FAILED, reason=Reason.ISSUANCE_FAILED, message="CAA forbids <b>it</b>", renewal=True
    )
    concern, need = only(needs(document(issuance=failed)))
    assert concern is Concern.FAILED
    assert (need.what, need.since_ms) == ("a renewal failed", NOW_MS - DAY_MS)
    assert need.why == "issuance-failed: CAA forbids <b>it</b>"
    assert str(need.next).endswith("in 60 min")


def test_certificate_near_its_end_says_how_long_it_has() -> None:
    concern, need = only(
        needs(document(certificate=certificate(left_ms=5 * HOUR_MS, renew_in_ms=-DAY_MS)))
    )
    assert concern is Concern.NEAR_END
    assert (need.what, need.since_ms) == ("ends in 5 h", NOW_MS - DAY_MS)
    assert need.why.startswith("renew the certificate, due since 24 h")


def test_expired_certificate_says_so() -> None:
    _, need = only(
        needs(document(certificate=certificate(left_ms=-3 * DAY_MS, renew_in_ms=-9 * DAY_MS)))
    )
    assert need.what == "expired 3 days ago"


@pytest.mark.parametrize(
    ("waits_ms", "held", "is_told"),
    [
        (LATE_AFTER_MS, None, True),
        (LATE_AFTER_MS - 1, None, False),
        (1_000, NOW_MS + DAY_MS, True),
    ],
)
def test_wait_is_told_once_it_is_long_or_held(
    waits_ms: int, held: int | None, *, is_told: bool
) -> None:
    waits = issuance(
        State.WAITING,
        resume=State.REQUESTED,
        reason=Reason.ZONE_UNAVAILABLE,
        message="no server answers",
        begun_at_ms=NOW_MS - waits_ms,
        changed_at_ms=NOW_MS - waits_ms,
        told_until_ms=held,
    )
    found = needs(document(issuance=waits))
    assert bool(found) is is_told
    if is_told:
        _, need = only(found)
        assert need.what == "the first certificate waits"
        assert need.why.startswith("zone-unavailable: no server answers")
        assert ("held until" in need.why) is (held is not None)


def test_old_debt_says_what_is_owed_and_how_often_it_was_tried() -> None:
    few = Debt(DebtKind.CHALLENGE_RECORD, "example.test", "_acme-challenge.a", "v", tries=3)
    many = replace(few, name="_acme-challenge.b", tries=9)
    concern, need = only(needs(document(debts=(few.to_json(), many.to_json()))))
    assert concern is Concern.OWING
    assert need.why == "remove the TXT record v at _acme-challenge.b (tried 9 times)"
    assert str(need.next).startswith("remove")


def test_what_is_not_readable_is_told_whatever_makes_it_so() -> None:
    names = [Hostname("a.example.test"), Hostname("b.example.test")]
    unreadable: list[Document | Unreadable] = [
        Unreadable(names[0]),
        document(names[1], issuance={"state": "new-one"}),
    ]
    census = replace(
        census_of([]), unreadable=2, attention={**census_of([]).attention, "unreadable": names}
    )
    (group,) = needs_of(census, unreadable, NOW_MS, NAMES).concerned
    (cause,) = group.causes
    assert group.concern is Concern.UNREADABLE
    assert [need.hostname for need in cause.needs] == names
    assert cause.cause == "What Redis has of … is not readable by this release"


def test_what_was_mended_since_the_census_is_not_told() -> None:
    census = census_of([document(issuance=issuance(State.FAILED))])
    assert needs_of(census, [document()], NOW_MS, NAMES).concerned == ()
    gone = [Document(Hostname("a.example.test"))]
    assert needs_of(census, gone, NOW_MS, NAMES).concerned == ()


def test_what_was_counted_and_not_read_anew_is_told_as_a_number() -> None:
    failed = [
        document(f"h{number:03}.example.test", issuance=issuance(State.FAILED))
        for number in range(OF_EACH + 7)
    ]
    census = census_of(failed)
    names = hostnames_of(census)
    assert len(names) == OF_EACH
    documents = [each for each in failed if each.hostname in names]
    (group,) = needs_of(census, documents, NOW_MS, NAMES).concerned
    assert (group.causes[0].count, group.more, group.count) == (OF_EACH, 7, OF_EACH + 7)


def test_waits_that_were_not_read_are_not_told_where_younger_ones_than_they_are_brief() -> None:
    many = [
        document(
            f"h{number:03}.example.test",
            issuance=issuance(State.PUBLISHED, begun_at_ms=NOW_MS - 1_000, message="ns2 lags"),
        )
        for number in range(OF_EACH + 7)
    ]
    assert needs_of(census_of(many), many[:OF_EACH], NOW_MS, NAMES).concerned == ()


def test_what_failed_since_the_census_and_was_not_read_is_told_as_a_number() -> None:
    failed = document(issuance=issuance(State.FAILED))
    (group,) = needs_of(census_of([]), [failed], NOW_MS, NAMES, unread_failures=13).concerned
    assert (group.count, group.more) == (14, 13)
    (group,) = needs_of(None, [], NOW_MS, NAMES, unread_failures=13).concerned
    assert (group.count, group.causes) == (13, ())


def test_many_failures_of_one_cause_are_told_once() -> None:
    failed = [
        document(
            f"h{number:03}.example.test",
            issuance=issuance(
                State.FAILED,
                reason=Reason.ISSUANCE_FAILED,
                failed_at="https://ca.test/directory",
                message=f"NXDOMAIN at _acme-challenge.h{number:03}.example.test, try {number}",
            ),
        )
        for number in range(40)
    ]
    (group,) = needs(*failed)
    (cause,) = group.causes
    assert (group.count, cause.count, len(cause.needs)) == (40, 40, ALIKE_SHOWN)
    assert cause.cause == "issuance-failed: NXDOMAIN at _acme-challenge.…, try 0"
    assert cause.first.place == "ca"


def test_causes_are_told_up_to_a_bound_what_most_have_first() -> None:
    words = "abcdefghijkl"
    failed = [
        document(f"{word}{number}.test", issuance=issuance(State.FAILED, message=word))
        for place, word in enumerate(words)
        for number in range(place // 2 + 1)
    ]
    (group,) = needs(*failed)
    assert [each.cause for each in group.causes] == list("klijghef"[:CAUSES_SHOWN])
    assert (group.count, group.more) == (len(failed), 6)


@pytest.mark.parametrize("state", [State.PUBLISHED, State.ORDERED, State.WAITING])
def test_issuance_that_is_tried_again_and_again_is_as_old_as_its_request(state: State) -> None:
    again = issuance(
        state,
        resume=State.ORDERED if state is State.WAITING else None,
        wanted_since_ms=NOW_MS - HOUR_MS,
        begun_at_ms=NOW_MS - 1_000,
        changed_at_ms=NOW_MS - 1_000,
        reason=Reason.ZONE_UNAVAILABLE if state is State.WAITING else None,
        message="ns2 does not answer",
    )
    concern, need = only(needs(document(issuance=again)))
    assert concern is Concern.WAITING
    assert (need.since_ms, need.attempt_ms) == (NOW_MS - HOUR_MS, NOW_MS - 1_000)
    assert need.why.endswith("ns2 does not answer")


def test_what_waits_for_a_zone_is_counted_be_it_brief_or_not() -> None:
    def waiting(name: str, ago_ms: int, state: State = State.WAITING) -> Document:
        held = issuance(
            state,
            resume=State.ORDERED,
            begun_at_ms=NOW_MS - ago_ms,
            changed_at_ms=NOW_MS - ago_ms,
            published_at_ms=NOW_MS - ago_ms,
            challenge_zone="example.test",
            reason=None if state is State.PUBLISHED else Reason.ZONE_UNAVAILABLE,
            message="ns2 does not answer",
        )
        return document(name, issuance=held)

    documents = [
        waiting("a.example.test", 1_000),
        waiting("b.example.test", LATE_AFTER_MS),
        waiting("c.example.test", HOUR_MS, State.PUBLISHED),
    ]
    found = needs_of(census_of(documents), documents, NOW_MS, NAMES)
    assert found.waits == {"example.test": Waits(3, NOW_MS - HOUR_MS)}
    (group,) = found.concerned
    (cause,) = group.causes
    assert [need.hostname for need in cause.needs] == ["c.example.test", "b.example.test"]


def test_at_most_fifty_hostnames_of_each_concern_are_read_anew() -> None:
    attention = {
        concern.value: [f"h{number:03}.{concern.name.lower()}.test" for number in range(100)]
        for concern in Concern
    }
    assert len(hostnames_of(replace(census_of([]), attention=attention))) == 50 * len(Concern)


def test_hostname_of_two_concerns_is_read_once_and_told_twice() -> None:
    both = document(
        issuance=issuance(State.FAILED, renewal=True),
        certificate=certificate(left_ms=HOUR_MS, renew_in_ms=-DAY_MS),
    )
    assert hostnames_of(census_of([both])) == [both.hostname]
    assert [group.concern for group in needs(both)] == [Concern.NEAR_END, Concern.FAILED]


def test_census_is_read_as_it_is_stored() -> None:
    census = census_of([document(issuance=issuance(State.FAILED))])
    stored = Census.from_text(json.dumps(json.loads(census.to_text())))
    assert hostnames_of(stored) == ["a.example.test"]
