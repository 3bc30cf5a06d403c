"""Where a certificate stands, in words."""

from dataclasses import replace

import pytest

from gateway.certificates import machine
from gateway.certificates.moves import Moment
from gateway.certificates.outlook import Outlook, outlook
from gateway.certificates.states import Issuance, Reason, State, StoredCertificate
from gateway.contract.names import Hostname
from gateway.store.documents import Document, Lease
from gateway.views import issuances
from tests.unit.certificates.test_outlook import CERTIFICATE, HOLDER

NOW_MS = 1_700_000_000_000
HELD = replace(
    machine.request("i", Moment(NOW_MS, 0)),
    state=State.WAITING,
    resume=State.REQUESTED,
    reason=Reason.RATE_LIMITED,
    message="used up",
    due_at_ms=NOW_MS + 600_000,
    told_until_ms=NOW_MS + 9_000_000,
)


def seen(issuance: Issuance, lease: Lease | None = None) -> Outlook:
    document = Document(
        Hostname("a.example"), version="1", issuance=issuance.to_json(), lease=lease
    )
    found = outlook(document, NOW_MS, {})
    assert found is not None
    return found


def test_line_of_what_is_held_has_both_times() -> None:
    assert issuances.line(seen(HELD), NOW_MS) == (
        "a.example  waiting, wanted for 0.0 s; rate-limited: used up;"
        " look again whether there is room for a new order, in 10 min;"
        " held until 2023-11-15 00:43:20 UTC"
    )


def test_age_is_since_it_was_first_wanted_and_the_attempt_is_told_beside_it() -> None:
    on = replace(HELD, begun_at_ms=NOW_MS - 90_000, wanted_since_ms=NOW_MS - 7_200_000)
    assert issuances.line(seen(on), NOW_MS).startswith(
        "a.example  waiting, wanted for 2 h, this attempt for 90 s; "
    )
    rows = dict(issuances.rows(seen(on), {}, NOW_MS))
    assert rows["wanted since"].endswith("(2 h ago)")
    assert rows["this attempt"].endswith("(90 s ago)")
    assert "this attempt" not in dict(issuances.rows(seen(HELD), {}, NOW_MS))


@pytest.mark.parametrize(("count", "orders"), [(1, "1 order"), (2, "2 orders")])
def test_failures_and_faults_are_counted(count: int, orders: str) -> None:
    rows = dict(issuances._count_rows(replace(HELD, failures=count, faults=count)))
    assert rows["failures"] == f"{orders} came to nothing"
    assert rows["faults"] == orders.replace("order", "passing fault") + " in a row"


def test_servers_that_are_waited_for_are_named() -> None:
    told = "the challenge record is not yet answered by 192.0.2.1:53"
    published = replace(HELD, state=State.PUBLISHED, reason=None, message=told, told_until_ms=None)
    assert f"published, wanted for 0.0 s; {told}; ask the name servers" in issuances.line(
        seen(published), NOW_MS
    )


def test_what_never_happened_is_not_counted() -> None:
    assert list(issuances._count_rows(HELD)) == []


def test_who_works_on_it_does_not_hide_what_is_next() -> None:
    late = seen(replace(HELD, due_at_ms=NOW_MS - 60_000), Lease("worker", 3, NOW_MS + 1_000))
    assert issuances.next_words(late, NOW_MS) == (
        "look again whether there is room for a new order, now"
    )
    assert "being worked on by worker" in issuances.line(late, NOW_MS)


def test_renewal_times_are_asked_for_again_only_where_the_authority_suggests_any() -> None:
    asked = "renewal times asked again at 2023-11-14 22:14:20 UTC"
    stored = replace(CERTIFICATE, ask_at_ms=NOW_MS + 60_000, window_ms=None)
    bare, suggested = (
        dict(issuances._certificate_rows(each, {}, NOW_MS))
        for each in (stored, replace(stored, window_ms=(NOW_MS, NOW_MS + 60_000)))
    )
    assert asked in suggested["window"]
    assert not any(asked in text for text in bare.values())


@pytest.mark.parametrize(
    ("issuance", "certificate"),
    [
        (replace(HELD, state=State.FAILED, told_until_ms=None), None),
        (HELD, None),
        (None, CERTIFICATE),
    ],
)
def test_order_that_a_holder_may_not_have_is_not_promised(
    issuance: Issuance | None, certificate: StoredCertificate | None
) -> None:
    document = Document(
        Hostname("a.example"),
        version="1",
        holder=HOLDER,
        issuance=issuance and issuance.to_json(),
        certificate=certificate and certificate.to_json(),
    )
    found = outlook(document, NOW_MS, {}, "its client is revoked")
    assert found is not None
    told = issuances.next_words(found, NOW_MS)
    assert told.startswith("no new certificate is ordered, since its client is revoked; looked at")


def test_order_that_is_under_way_goes_on_whatever_its_holder_may() -> None:
    on = replace(HELD, resume=State.VALIDATING, told_until_ms=None, directory_url="u")
    found = outlook(seen(on).document, NOW_MS, {}, "its client is revoked")
    assert found is not None
    assert "is ordered" not in issuances.next_words(found, NOW_MS)
