"""When an issuance came to each state: what a person is shown of an attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.certificates import events, machine
from gateway.certificates.moves import Moment
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import Issuance, State, StoredCertificate
from tests.unit.certificates.test_machine import CERTIFICATE, issuance, order

ORDERED = {"requested": 1, "ordered": 10}


def at(now_ms: int, before: Issuance, event: events.Event) -> Issuance:
    return machine.advance(before, event, Moment(now_ms, 0)).issuance


def ordered() -> Issuance:
    requested = machine.request("one", Moment(1, 0))
    chosen = at(2, requested, events.AuthorityChosen("dir", takes_replaces=False))
    return at(10, at(3, chosen, events.KeyMade("key", "csr")), events.OrderSeen(order("pending")))


def test_each_state_has_the_time_at_which_it_was_entered() -> None:
    ready = at(30, ordered(), events.OrderSeen(order("ready")))
    processing = at(40, ready, events.Finalized(order("processing")))
    valid = at(50, processing, events.OrderSeen(order("valid", certificate_url="c")))
    issued = at(60, valid, events.CertificateFetched(CERTIFICATE))
    stages = {**ORDERED, "ready": 30, "finalizing": 40, "issued": 60}
    assert issued.passed_ms == stages
    assert CERTIFICATE.come_of(issued).stages_ms == stages


def test_state_that_is_entered_again_keeps_its_first_time() -> None:
    stale = events.AuthorityFailed(FaultKind.STALE_CHALLENGE, "words")
    published = replace(ordered(), state=State.VALIDATING)
    assert at(90, published, stale).passed_ms == ORDERED


@pytest.mark.parametrize("kind", [FaultKind.UNREACHABLE, FaultKind.REFUSED])
def test_what_was_passed_is_kept_where_it_waits_or_failed(kind: FaultKind) -> None:
    stopped = at(20, ordered(), events.AuthorityFailed(kind, "no"))
    assert stopped.state in {State.WAITING, State.FAILED}
    assert stopped.passed_ms == ORDERED


def test_new_attempt_forgets_what_the_last_one_passed() -> None:
    failed = at(20, ordered(), events.AuthorityFailed(FaultKind.REFUSED, "no"))
    assert at(99, failed, events.Due()).passed_ms == {"requested": 99}


def test_attempt_at_another_authority_is_a_new_one() -> None:
    refused = events.AuthorityFailed(FaultKind.REFUSED, "no", elsewhere=True)
    assert at(20, ordered(), refused).passed_ms == {"requested": 20}


def test_attempt_that_got_no_further_than_its_request_keeps_that_time() -> None:
    requested = machine.request("one", Moment(1, 0))
    chosen = at(2, requested, events.AuthorityChosen("dir", takes_replaces=False))
    keyed = at(3, chosen, events.KeyMade("key", "csr"))
    away = at(4, keyed, events.AuthorityFailed(FaultKind.UNREACHABLE, "no"))
    assert at(5_000, away, events.Due()).passed_ms == {"requested": 1}


def test_issuance_of_an_older_release_has_the_times_since() -> None:
    older = replace(issuance(State.ORDERED), passed_ms={})
    assert "passed_ms" not in older.to_json()
    assert at(7, older, events.OrderSeen(order("ready"))).passed_ms == {"ready": 7}
    stored = CERTIFICATE.to_json()
    del stored["stages_ms"]
    assert StoredCertificate.from_json(stored).stages_ms == {}


def test_release_that_knows_no_times_reads_the_rest() -> None:
    """As every release so far has read: fields that it does not know are left out."""
    stored = {**ordered().to_json(), "of_a_newer_release": {"a": 1}}
    assert Issuance.from_json(stored) == ordered()
