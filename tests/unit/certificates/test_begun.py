"""What an issuance's pace is measured from: its latest attempt, not the outage before it."""

import pytest

from gateway.certificates import events, machine
from gateway.certificates.events import Command
from gateway.certificates.moves import Moment
from gateway.certificates.orders import FaultKind

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
    failed = kind is FaultKind.REFUSED
    assert on.command is (Command.CHOOSE_AUTHORITY if failed else Command.PLACE_ORDER)
