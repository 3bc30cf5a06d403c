"""What an issuance's pace is measured from: its latest attempt, not the outage before it.

How old it is, is measured from when it was first requested.
"""

from dataclasses import replace

import pytest

from gateway.certificates import events, machine
from gateway.certificates.events import Command
from gateway.certificates.moves import Moment
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import Issuance, State

HOUR_MS = 3_600_000


@pytest.mark.parametrize("kind", [FaultKind.UNREACHABLE, FaultKind.RATE_LIMITED, FaultKind.REFUSED])
def test_attempt_after_a_wait_or_a_failure_begins_anew(kind: FaultKind) -> None:
    issuance = machine.request("one", Moment(0, 0))
    chosen = machine.advance(issuance, events.AuthorityChosen("dir", False), Moment(2, 0)).issuance
    keyed = machine.advance(chosen, events.KeyMade("sealed", "csr"), Moment(5, 0)).issuance
    assert keyed.begun_at_ms == 0
    waiting = machine.advance(keyed, events.AuthorityFailed(kind, "no"), Moment(10, 0)).issuance
    on = machine.advance(waiting, events.Due(), Moment(HOUR_MS, 0))
    assert on.issuance.begun_at_ms == HOUR_MS
    assert [each.since_ms for each in (waiting, on.issuance)] == [0, 0]
    assert on.command is Command.CHOOSE_AUTHORITY


def test_issuance_of_a_former_release_is_as_old_as_the_attempt_that_it_was_found_in() -> None:
    stored = machine.request("one", Moment(HOUR_MS, 0)).to_json()
    del stored["wanted_since_ms"]
    found = replace(Issuance.from_json(stored), state=State.WAITING, resume=State.REQUESTED)
    assert found.since_ms == HOUR_MS
    on = machine.advance(found, events.Due(), Moment(5 * HOUR_MS, 0)).issuance
    again = replace(on, state=State.FAILED)
    later = machine.advance(again, events.Due(), Moment(9 * HOUR_MS, 0)).issuance
    assert (later.begun_at_ms, later.since_ms) == (9 * HOUR_MS, HOUR_MS)
