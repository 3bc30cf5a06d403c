"""What an operator reads of their own deeds."""

from dataclasses import replace

import pytest

from gateway.certificates.retrying import Begun, Retried, Standing
from gateway.certificates.states import Reason, State
from gateway.contract import SyncDnsRecordResponse
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.contract.responses import SyncStatus
from gateway.dns.owner import Owner
from gateway.holdings.operator_deeds import Released, Watched, Withdrawn
from gateway.views import deed_words as words
from tests.unit.certificates.test_outlook import CERTIFICATE, HOLDER, NOW_MS, issuance

NAME = Hostname("a.example")
OWNER = Owner(ClientId("relay"), AppId("app"), NAME)
HELD = issuance(
    State.WAITING,
    resume=State.REQUESTED,
    reason=Reason.RATE_LIMITED,
    message="at ca, 50 certificates are used up",
    told_until_ms=NOW_MS + 60_000,
)
FAILED = issuance(State.FAILED, reason=Reason.ISSUANCE_FAILED, message="CAA forbids it.")
RETRIED = Retried(NAME, HOLDER, Begun.ANEW, FAILED, FAILED)


def watched(standing: Standing, **changes: object) -> str:
    seen = Watched(standing, FAILED, None, None, NOW_MS)
    return words.watched_words(RETRIED, replace(seen, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("began", Begun)
def test_what_a_retry_began_is_one_sentence_about_the_hostname(began: Begun) -> None:
    told = words.retried_words(replace(RETRIED, began=began))
    assert told.startswith("a.example ")
    assert told.endswith(" now.") or "now, " in told


def test_certificate_that_came_is_told_with_its_end() -> None:
    assert watched(Standing.ISSUED, issuance=None, certificate=CERTIFICATE) == (
        "a.example has its certificate: serial 01, valid until 2023-11-14T22:14:50Z."
    )


def test_what_holds_it_is_told_with_the_time() -> None:
    assert watched(Standing.WAITING, issuance=HELD) == (
        "a.example waits (rate-limited): at ca, 50 certificates are used up."
        " It is held until 2023-11-14T22:14:20Z."
    )
    assert watched(Standing.FAILED) == (
        "a.example failed (issuance-failed): CAA forbids it."
        " It is tried again at 2023-11-14T22:13:23Z."
    )


def test_what_a_policy_bars_is_told() -> None:
    assert watched(Standing.FAILED, issuance=replace(FAILED, barred=True)) == (
        "a.example rests: its client's policy does not allow it."
    )


def test_what_is_not_settled_is_told() -> None:
    ordered = issuance(State.ORDERED)
    assert watched(Standing.UNTOUCHED) == ("a.example is due; no worker has taken it up yet.")
    assert watched(Standing.UNDER_WAY, issuance=ordered, worker="w") == (
        "a.example is under way, in the state ordered, being worked on by w."
    )
    assert watched(Standing.UNDER_WAY, issuance=ordered) == (
        "a.example is under way, in the state ordered."
    )
    assert watched(Standing.GONE, issuance=None) == (
        "a.example was released meanwhile: nothing is under way."
    )


def test_release_tells_what_stays() -> None:
    assert words.released_words(Released(OWNER, is_released=True, keeps_record=True)) == (
        "The certificate of relay for app at a.example is released. Its record stays in the zone."
    )
    assert words.released_words(Released(OWNER, is_released=False, keeps_record=False)) == (
        "relay has no certificate for app at a.example, nor is one under way: nothing was released."
    )


@pytest.mark.parametrize(
    ("status", "keeps", "told"),
    [
        ("managed-deleted", True, "a.example is managed-deleted: Gone. Its certificate stays."),
        ("managed-deleted", False, "a.example is managed-deleted: Gone."),
        ("zone-unavailable", True, "a.example is zone-unavailable: Gone."),
    ],
)
def test_withdrawal_tells_what_its_client_would_be_answered(
    status: SyncStatus, keeps: bool, told: str
) -> None:
    answer = SyncDnsRecordResponse(status=status, hostname=NAME, message="Gone.")
    done = Withdrawn(OWNER, answer, keeps_certificate=keeps)
    assert words.withdrawn_words(done) == told
    assert done.is_done is (status == "managed-deleted")
