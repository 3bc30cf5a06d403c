"""What an operator's retry does to each state of a certificate, and what it leaves alone."""

from dataclasses import replace

import pytest

from gateway.certificates import events, machine
from gateway.certificates.agenda import Work, issuance_of, next_item
from gateway.certificates.budget import Renewal
from gateway.certificates.ledger import Held, HeldBy
from gateway.certificates.moves import Moment
from gateway.certificates.orders import FaultKind
from gateway.certificates.renewal import kind_of
from gateway.certificates.retrying import (
    Asked,
    Begun,
    Retried,
    RetryRefused,
    Standing,
    due_from_ms,
    retry,
    standing,
)
from gateway.certificates.states import Issuance, Reason, State, StoredCertificate
from gateway.contract.names import ClientId
from gateway.store.documents import Change, Document, Holder, Lease
from tests.unit.certificates.test_outlook import (
    CERTIFICATE,
    DIRECTORY,
    HOLDER,
    HOUR_MS,
    LATER_MS,
    NOW_MS,
    WITHOUT_ORDER,
    document,
    issuance,
)

AT_WORK = [state for state in State if state not in {State.WAITING, State.FAILED}]
LIVE = Lease("worker-1", 7, NOW_MS + 5_000)
LAPSED = Lease("worker-1", 7, NOW_MS - 1)
ASKED = Asked(NOW_MS, renews=False, issuance_id="new", allowed=HOLDER, holds={})
HELD = Held(NOW_MS + HOUR_MS, "ca is left alone until later", HeldBy.SUSPENDED)

RESTING = {
    "failed": (issuance(State.FAILED, **WITHOUT_ORDER), Begun.ANEW),
    "waiting for an authority": (
        issuance(State.WAITING, resume=State.REQUESTED, **WITHOUT_ORDER),
        Begun.ANEW,
    ),
    **{
        f"waiting in {state}": (issuance(State.WAITING, resume=state), Begun.ORDER)
        for state in AT_WORK
        if state is not State.REQUESTED
    },
}


def tried(before: Document, asked: Asked = ASKED) -> tuple[Document, Retried]:
    """The document after a retry, and what it began."""
    change, retried = retry(before, asked)
    assert change == Change(change.fields, NOW_MS, touches_due=True)
    return replace(before, **change.fields), retried  # type: ignore[arg-type]


def refusal(before: Document, asked: Asked = ASKED) -> str:
    with pytest.raises(RetryRefused) as refused:
        retry(before, asked)
    return str(refused.value)


@pytest.mark.parametrize("due_ms", [NOW_MS - 9, LATER_MS], ids=["due", "not due"])
@pytest.mark.parametrize("lease", [None, LAPSED], ids=["no lease", "a lapsed lease"])
@pytest.mark.parametrize(("rests", "began"), RESTING.values(), ids=RESTING)
def test_issuance_that_rests_is_due_at_once_with_all_it_had(
    rests: Issuance, began: Begun, lease: Lease | None, due_ms: int
) -> None:
    was = replace(rests, due_at_ms=due_ms)
    after, retried = tried(document(was, lease=lease))
    assert retried == Retried(after.hostname, HOLDER, began, retried.issuance, was)
    assert issuance_of(after) == replace(was, due_at_ms=NOW_MS)
    assert next_item(after, NOW_MS).work is Work.STEP
    assert after.lease == lease


@pytest.mark.parametrize("state", AT_WORK)
def test_issuance_under_way_keeps_its_pace(state: State) -> None:
    later, due = issuance(state), issuance(state, due_at_ms=NOW_MS)
    assert refusal(document(later)) == (
        f"a.example is under way already, in the state {state};"
        " it is looked at again at 2023-11-14 22:13:23 UTC."
    )
    assert refusal(document(due, lease=LAPSED)) == (
        f"a.example is under way already, in the state {state}, and waits for a worker."
    )


@pytest.mark.parametrize("state", State)
def test_issuance_that_a_worker_has_in_its_hands_is_left_to_it(state: State) -> None:
    told = f"a.example is being worked on by worker-1 just now, in the state {state}."
    assert refusal(document(issuance(state), lease=LIVE)) == told


def test_certificate_that_a_worker_has_in_its_hands_is_left_to_it() -> None:
    told = "a.example is being worked on by worker-1 just now."
    assert refusal(document(certificate=CERTIFICATE, lease=LIVE), renewing()) == told


def test_what_the_gateway_itself_held_it_for_ends_before_an_order() -> None:
    held = issuance(
        State.WAITING,
        resume=State.REQUESTED,
        told_until_ms=NOW_MS + HOUR_MS,
        passed_over={DIRECTORY: NOW_MS + HOUR_MS},
        barred=True,
        failures=3,
        **WITHOUT_ORDER,
    )
    after = tried(document(held))[1].issuance
    assert (after.told_until_ms, after.passed_over, after.barred) == (None, {}, False)
    assert after.failures == 3


def test_ledger_is_asked_before_an_order_and_not_here() -> None:
    failed, asked = RESTING["failed"][0], replace(ASKED, holds={DIRECTORY: HELD})
    assert tried(document(failed), asked)[1].began is Begun.ANEW


@pytest.mark.parametrize(
    ("url", "until_ms", "is_held"),
    [
        (DIRECTORY, NOW_MS + 1, True),
        (DIRECTORY, NOW_MS, False),
        ("https://other.example", NOW_MS + 1, False),
    ],
    ids=["until later", "until now", "another authority"],
)
def test_order_goes_on_only_where_its_authority_does_not_hold_it(
    url: str, until_ms: int, is_held: bool
) -> None:
    waits = issuance(
        State.WAITING,
        resume=State.VALIDATING,
        reason=Reason.RATE_LIMITED,
        told_until_ms=LATER_MS,
    )
    asked = replace(ASKED, holds={url: replace(HELD, until_ms=until_ms)})
    if is_held:
        told = "a.example has an order that can't go on yet: ca is left alone until later."
        assert refusal(document(waits), asked) == told
    else:
        assert tried(document(waits), asked)[1].issuance.told_until_ms is None


@pytest.mark.parametrize(
    ("by", "until_ms", "is_held"),
    [
        (HeldBy.AUTHORITY, NOW_MS + 1, True),
        (HeldBy.AUTHORITY, NOW_MS, False),
        (HeldBy.SUSPENDED, NOW_MS + 1, False),
    ],
)
def test_what_its_authority_has_put_off_is_not_asked_of_it_again(
    by: HeldBy, until_ms: int, is_held: bool
) -> None:
    put_off = issuance(
        State.WAITING, resume=State.REQUESTED, order_url=None, reason=Reason.RATE_LIMITED
    )
    asked = replace(ASKED, holds={DIRECTORY: Held(until_ms, "ca takes no orders", by)})
    if is_held:
        told = "a.example has been put off by its authority: ca takes no orders."
        assert refusal(document(put_off), asked) == told
    else:
        assert tried(document(put_off), asked)[1].began is Begun.ANEW


AGAIN = {
    "a fault before an order": (
        issuance(State.WAITING, resume=State.REQUESTED, order_url=None, faults=4, away=2),
        FaultKind.UNREACHABLE,
    ),
    "a fault after the CSR": (
        issuance(State.WAITING, resume=State.FINALIZING, faults=14, away=14),
        FaultKind.SERVER_ERROR,
    ),
    "a failed order": (
        issuance(State.FAILED, order_url=None, failures=5),
        FaultKind.REFUSED,
    ),
    "a lost order": (
        issuance(
            State.WAITING,
            resume=State.REQUESTED,
            order_url=None,
            directory_url=None,
            faults=3,
            orders_lost=3,
        ),
        FaultKind.GONE,
    ),
}


@pytest.mark.parametrize(("rests", "kind"), AGAIN.values(), ids=AGAIN)
def test_retry_that_comes_to_nothing_lengthens_no_pause(rests: Issuance, kind: FaultKind) -> None:
    moment = Moment(NOW_MS, 0)
    counted = ("failures", "faults", "away", "orders_lost")
    for _ in range(3):
        begun = tried(document(rests))[1].issuance
        due = machine.advance(begun, events.Due(), moment).issuance
        again = machine.advance(due, events.AuthorityFailed(kind, "words"), moment).issuance
        assert again.state is rests.state
        told = {name: getattr(again, name) for name in counted}
        assert told == {name: getattr(rests, name) for name in counted}
        rests = replace(again, due_at_ms=LATER_MS)


def test_holder_without_the_right_gets_no_new_order() -> None:
    asked = replace(ASKED, allowed=None)
    assert (
        refusal(document(RESTING["failed"][0]), replace(asked, denied="its client is revoked"))
        == "client may not have a certificate for a.example now: its client is revoked."
    )
    assert "may not have" in refusal(document(certificate=CERTIFICATE), renewing(allowed=None))
    other = Holder(ClientId("other"), HOLDER.app_id)
    assert "may not have" in refusal(document(certificate=CERTIFICATE), renewing(allowed=other))


def test_order_goes_on_for_a_holder_without_the_right_as_it_does_by_itself() -> None:
    waits = RESTING["waiting in finalizing"][0]
    assert tried(document(waits), replace(ASKED, allowed=None))[1].began is Begun.ORDER


def renewing(allowed: Holder | None = HOLDER) -> Asked:
    return replace(ASKED, renews=True, allowed=allowed)


def test_certificate_at_rest_is_renewed_only_where_that_is_said() -> None:
    at_rest = document(certificate=CERTIFICATE)
    assert refusal(at_rest) == (
        "a.example has a certificate whose renewal is due at 2023-11-14 22:14:20 UTC."
    )
    after, retried = tried(at_rest, renewing())
    assert (retried.began, retried.was) == (Begun.RENEWAL, None)
    assert after.certificate == at_rest.certificate
    begun = issuance_of(after)
    assert begun == retried.issuance
    assert (begun.issuance_id, begun.state, begun.renewal) == ("new", State.REQUESTED, True)
    assert begun.overdue_at_ms == CERTIFICATE.share_at_ms
    assert next_item(after, NOW_MS).work is Work.STEP


def test_renewal_before_its_time_is_counted_as_an_operators_until_it_would_be_due() -> None:
    window = replace(CERTIFICATE, renew_at_ms=NOW_MS + 5, share_at_ms=NOW_MS + 9)
    begun = tried(document(certificate=window), renewing())[1].issuance
    kinds = [kind_of(begun, NOW_MS + after_ms) for after_ms in (0, 4, 5, 8, 9)]
    assert kinds == [Renewal.BY_HAND] * 2 + [Renewal.EARLY] * 2 + [Renewal.DUE]
    due = replace(CERTIFICATE, renew_at_ms=NOW_MS, share_at_ms=NOW_MS + 9)
    begun = tried(document(certificate=due))[1].issuance
    assert kind_of(begun, NOW_MS) is Renewal.EARLY


def test_second_renewal_is_refused_while_the_first_is_under_way() -> None:
    after, _ = tried(document(certificate=CERTIFICATE), renewing())
    told = "a.example is under way already, in the state requested, and waits for a worker."
    assert refusal(after, renewing()) == told


PUT_OFF_MS = NOW_MS + 9 * HOUR_MS


@pytest.mark.parametrize(
    ("certificate", "due_ms"),
    [
        (CERTIFICATE, CERTIFICATE.renew_at_ms),
        (replace(CERTIFICATE, renew_at_ms=PUT_OFF_MS), CERTIFICATE.share_at_ms),
        (replace(CERTIFICATE, renew_at_ms=PUT_OFF_MS, window_ms=(5, 7)), 7),
        (replace(CERTIFICATE, renew_at_ms=6, window_ms=(5, 7)), 6),
    ],
    ids=["planned", "put off", "put off after its window", "within its window"],
)
def test_renewal_is_due_from_when_it_was_before_it_was_put_off(
    certificate: StoredCertificate, due_ms: int
) -> None:
    assert due_from_ms(certificate) == due_ms


def test_renewal_that_is_due_and_rests_is_begun() -> None:
    put_off = replace(CERTIFICATE, renew_at_ms=PUT_OFF_MS, share_at_ms=NOW_MS)
    assert tried(document(certificate=put_off))[1].began is Begun.RENEWAL


@pytest.mark.parametrize(
    "nothing",
    [document(), replace(document(RESTING["failed"][0]), holder=None)],
    ids=["no certificate", "no holder"],
)
def test_nothing_is_begun_where_nothing_rests(nothing: Document) -> None:
    assert refusal(nothing, renewing()) == "Nothing is issued or under way for a.example."


FAILED = RESTING["failed"][0]
RETRIED = Retried(document().hostname, HOLDER, Begun.ANEW, replace(FAILED, due_at_ms=1), FAILED)
MOVED = {"changed_at_ms": NOW_MS}

STANDINGS = {
    "as it was made due": (document(FAILED), Standing.UNTOUCHED),
    "in a worker's hands": (document(FAILED, lease=LIVE), Standing.UNDER_WAY),
    "in a dead worker's hands": (document(FAILED, lease=LAPSED), Standing.UNTOUCHED),
    "come forward": (document(issuance(State.PUBLISHED)), Standing.UNDER_WAY),
    "waiting": (document(issuance(State.WAITING, **MOVED)), Standing.WAITING),
    "failed again": (document(replace(FAILED, failures=2)), Standing.FAILED),
    "issued": (document(certificate=CERTIFICATE), Standing.ISSUED),
    "released": (document(), Standing.GONE),
    "another's": (document(issuance(State.ORDERED, issuance_id="other")), Standing.GONE),
    "an older certificate": (
        document(certificate=replace(CERTIFICATE, issuance_id="older")),
        Standing.GONE,
    ),
}


@pytest.mark.parametrize(("seen", "what"), STANDINGS.values(), ids=STANDINGS)
def test_what_came_of_a_retry_is_told_from_the_document(seen: Document, what: Standing) -> None:
    assert standing(seen, RETRIED, NOW_MS) is what


def test_only_what_brings_no_certificate_now_is_a_refusal() -> None:
    refusals = {each for each in Standing if each.is_refusal}
    assert refusals == {Standing.WAITING, Standing.FAILED, Standing.GONE}
