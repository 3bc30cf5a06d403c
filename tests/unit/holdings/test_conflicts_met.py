"""The end of a conflict is told once, and only where it was met."""

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.outcome import OutcomeKind
from gateway.dns.owner import Owner
from gateway.holdings.conflicts_met import REMEMBERED, ConflictsMet

MINE = Owner(ClientId("c"), AppId("a"), Hostname("a.example.test"))


def test_success_after_a_conflict_is_told_once() -> None:
    met = ConflictsMet()
    assert not met.is_ended_by(MINE, OutcomeKind.UNCHANGED)
    assert not met.is_ended_by(MINE, OutcomeKind.CONFLICT)
    assert not met.is_ended_by(MINE, OutcomeKind.UNAVAILABLE)
    assert met.is_ended_by(MINE, OutcomeKind.UNCHANGED)
    assert not met.is_ended_by(MINE, OutcomeKind.UNCHANGED)


def test_the_oldest_is_forgotten_where_there_are_too_many() -> None:
    met = ConflictsMet()
    owners = [
        Owner(ClientId("c"), AppId("a"), Hostname(f"h{number}.example.test"))
        for number in range(REMEMBERED + 1)
    ]
    for owner in owners:
        met.is_ended_by(owner, OutcomeKind.CONFLICT)
    assert not met.is_ended_by(owners[0], OutcomeKind.UNCHANGED)
    assert met.is_ended_by(owners[1], OutcomeKind.UNCHANGED)
