"""Which entries of the audit trail are kept apart, for whoever asks what went wrong lately. Pure.

Notable is what a person has to look at: orders that failed, records and hostnames in conflict,
updates that a DNS server refused, changes that were refused to an admin, an operator or a client
that is neither, entries that were lost. Not what passes by itself (a zone that does not answer is
shown by `/readyz`), and not what a client may not do anyway: one of them in a loop would push the
others out.

Called by `store.trail_writing` and `store.lately`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gateway.store.deeds import Action

if TYPE_CHECKING:
    from gateway.store.deeds import Deed

REFUSED: Final = "refused"
"""The outcome of every change that was refused to whoever may change things."""

_CONFLICTS: Final = frozenset(
    {
        (Action.RECORD_SYNC.value, "record-conflict"),
        (Action.CERTIFICATE_REQUEST.value, "hostname-conflict"),
    }
)
_UPDATE_REFUSED: Final = (Action.RECORD_SYNC, "mutation-failed")
_ALWAYS: Final = frozenset({Action.CERTIFICATE_FAILED, Action.ENTRIES_LOST})
_WHEN_REFUSED: Final = frozenset(
    {
        Action.CLIENT_ENSURE,
        Action.CLIENT_ROTATE,
        Action.CLIENT_REVOKE,
        Action.CLIENT_REMOVE,
        Action.CLIENT_PROVISION,
        Action.CLAIM_ADD,
    }
)
"""Whatever word the refusal has."""


class Counted(StrEnum):
    """What is counted by days; the fields of a day's hash."""

    ISSUED = "issued"
    RENEWED = "renewed"
    FAILED = "failed"
    CONFLICT = "conflict"


_COUNTED: Final = {
    Action.CERTIFICATE_ISSUED: Counted.ISSUED,
    Action.CERTIFICATE_RENEWED: Counted.RENEWED,
    Action.CERTIFICATE_FAILED: Counted.FAILED,
}


def is_conflict(action: str, outcome: str) -> bool:
    """Whether something else was found to hold a hostname; in an entry's own words."""
    return (action, outcome) in _CONFLICTS


def is_notable(deed: Deed) -> bool:
    """Whether a deed is kept apart."""
    action, outcome = deed.action, deed.outcome
    return (
        action in _ALWAYS
        or outcome == REFUSED
        or (action, outcome) == _UPDATE_REFUSED
        or (action in _WHEN_REFUSED and not deed.changed)
        or is_conflict(action, outcome)
    )


def counted_as(deed: Deed) -> Counted | None:
    """As what a deed is counted on its day."""
    if is_conflict(deed.action, deed.outcome):
        return Counted.CONFLICT
    return _COUNTED.get(deed.action)
