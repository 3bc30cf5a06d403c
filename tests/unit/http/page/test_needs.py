"""What needs a person now, judged anew from documents that the census named a while ago."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.certificates.attention import Concern
from gateway.certificates.census import Census, Tally
from gateway.certificates.states import Debt, DebtKind, Issuance, Reason, State, StoredCertificate
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.http.page.needs import LONG_WAIT_MS, OF_EACH, Concerned, Need, hostnames_of, needs_of
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
    return needs_of(census_of(documents), documents, NOW_MS, NAMES)


def only(found: list[Concerned]) -> tuple[Concern, Need]:
    (group,) = found
    (need,) = group.needs
    assert group.more == 0
    return group.concern, need


def test_failed_issuance_says_since_when_and_why_and_what_is_next() -> None:
    failed = issuance(
        State.FAILED, reason=Reason.ISSUANCE_FAILED, message="CAA forbids <b>it</b>", renewal=True
    )
    concern, need = only(needs(document(issuance=failed)))
    assert concern is Concern.FAILED
    assert (need.what, need.since_ms) == ("a renewal failed", NOW_MS - HOUR_MS)
    assert need.why.startswith("issuance-failed: CAA forbids <b>it</b>; next: ")
    assert need.why.endswith("in 60 min")


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
        (LONG_WAIT_MS, None, True),
        (LONG_WAIT_MS - 1, None, False),
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
    assert need.why.startswith(
        "remove the TXT record v at _acme-challenge.b (tried 9 times); remove"
    )


def test_what_is_not_readable_is_told_whatever_makes_it_so() -> None:
    names = [Hostname("a.example.test"), Hostname("b.example.test")]
    unreadable = [Unreadable(names[0]), document(names[1], issuance={"state": "new-one"})]
    census = replace(
        census_of([]), unreadable=2, attention={**census_of([]).attention, "unreadable": names}
    )
    (group,) = needs_of(census, unreadable, NOW_MS, NAMES)
    assert group.concern is Concern.UNREADABLE
    assert [need.hostname for need in group.needs] == names
    assert all(need.why.endswith("is not readable by this release") for need in group.needs)


def test_what_was_mended_since_the_census_is_not_told() -> None:
    census = census_of([document(issuance=issuance(State.FAILED))])
    assert needs_of(census, [document()], NOW_MS, NAMES) == []
    assert needs_of(census, [Document(Hostname("a.example.test"))], NOW_MS, NAMES) == []


def test_what_was_counted_and_not_read_anew_is_told_as_a_number() -> None:
    failed = [
        document(f"h{number:03}.example.test", issuance=issuance(State.FAILED))
        for number in range(OF_EACH + 7)
    ]
    census = census_of(failed)
    names = hostnames_of(census)
    assert len(names) == OF_EACH
    documents = [each for each in failed if each.hostname in names]
    (group,) = needs_of(census, documents, NOW_MS, NAMES)
    assert (len(group.needs), group.more) == (OF_EACH, 7)


def test_at_most_a_hundred_hostnames_are_read_anew() -> None:
    attention = {
        concern.value: [f"h{number:03}.{concern.name.lower()}.test" for number in range(100)]
        for concern in Concern
    }
    assert len(hostnames_of(replace(census_of([]), attention=attention))) == 100


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
