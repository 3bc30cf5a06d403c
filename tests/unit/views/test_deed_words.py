"""What an operator reads of their own deeds."""

from dataclasses import replace

import pytest

from gateway.certificates.retrying import Begun, Retried, Standing
from gateway.certificates.states import Reason, State
from gateway.contract import DnsRecord, SyncDnsRecordResponse
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.outcome import FoundRecord
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
        "a.example has its certificate: serial 01, valid until 2023-11-14 22:14:50 UTC."
    )


def test_what_holds_it_is_told_with_the_time() -> None:
    assert watched(Standing.WAITING, issuance=HELD) == (
        "a.example waits (rate-limited): at ca, 50 certificates are used up."
        " It is held until 2023-11-14 22:14:20 UTC."
    )
    assert watched(Standing.FAILED) == (
        "a.example failed (issuance-failed): CAA forbids it."
        " It is tried again at 2023-11-14 22:13:23 UTC."
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
    done = Released(OWNER, is_released=True, keeps_record=True, had_certificate=True)
    assert words.released_words(done) == (
        "The certificate of relay for app at a.example is released. Its record stays in the zone."
    )
    assert words.released_words(Released(OWNER, is_released=False, keeps_record=False)) == (
        "relay has no certificate for app at a.example, nor is one under way: nothing was released."
    )


def test_release_of_an_issuance_does_not_tell_of_a_certificate() -> None:
    done = Released(OWNER, is_released=True, keeps_record=False, had_certificate=False)
    assert words.released_words(done) == (
        "The issuance of relay for app at a.example is given up; there was no certificate yet."
    )


RECORD = DnsRecord.of("192.0.2.5")


def withdrawn(remains: str | None = None, *, is_removed: bool = True, keeps: bool = False) -> str:
    answer = SyncDnsRecordResponse(status="managed-deleted", hostname=NAME, message="Gone.")
    removed = (FoundRecord(NAME, "A", "192.0.2.5", 300),) if is_removed else ()
    done = Withdrawn(OWNER, answer, keeps, RECORD, removed, remains)
    assert done.is_done
    return words.withdrawn_words(done)


def test_withdrawal_tells_the_record_that_went() -> None:
    assert withdrawn() == "a.example: A 192.0.2.5 of relay for app is taken out of the zone."
    assert withdrawn(keeps=True).endswith(" is taken out of the zone. Its certificate stays.")


def test_withdrawal_tells_what_somebody_else_has_left_there() -> None:
    left = "its marker is gone; A 203.0.113.9, which somebody else wrote, is still there"
    assert withdrawn(left, is_removed=False) == (
        "a.example: A 192.0.2.5 of relay for app is given up. Its marker is gone;"
        " A 203.0.113.9, which somebody else wrote, is still there."
    )


def test_withdrawal_of_nothing_says_so() -> None:
    answer = SyncDnsRecordResponse(status="managed-deleted", hostname=NAME, message="Gone.")
    done = Withdrawn(OWNER, answer, keeps_certificate=False)
    assert words.withdrawn_words(done) == "a.example: relay for app has no record there."


def test_withdrawal_that_did_not_come_about_tells_why() -> None:
    answer = SyncDnsRecordResponse(status="zone-unavailable", hostname=NAME, message="No answer.")
    done = Withdrawn(OWNER, answer, keeps_certificate=True)
    assert not done.is_done
    assert words.withdrawn_words(done) == (
        "Nothing was withdrawn at a.example (zone-unavailable): No answer."
    )
