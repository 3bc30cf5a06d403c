"""Which entries of the audit trail are kept apart, for whoever asks what went wrong lately. Pure.

Notable is what a person has to look at: orders that failed, changes that were refused to an admin
or an operator, entries that were lost. Conflicts have a stream of their own: they come as often as
a client calls. Not kept apart is what passes by itself (a zone that does not answer is shown by
`/readyz`), and what anybody can have refused in a loop (a client that may not, a login, an update
that a DNS server refuses): it would push the others out.

Called by `store.trail_writing` and `store.lately`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gateway.store.deeds import Action, Role

if TYPE_CHECKING:
    from gateway.store.deeds import Actor, Deed

REFUSED: Final = "refused"
"""The outcome of every change that was refused to whoever may change things."""

_CONFLICTS: Final = frozenset(
    {
        (Action.RECORD_SYNC.value, "record-conflict"),
        (Action.CERTIFICATE_REQUEST.value, "hostname-conflict"),
    }
)
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

_TRUSTED: Final = frozenset({Role.ADMIN, Role.OPERATOR, Role.WORKER, Role.PROCESS})


class Apart(StrEnum):
    """Where an entry is kept beside the trail."""

    NOTABLE = "notable"
    CONFLICT = "conflict"


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


def kept_apart(actor: Actor, deed: Deed) -> Apart | None:
    """Where a deed is kept apart, if it is."""
    action, outcome = deed.action, deed.outcome
    if is_conflict(action, outcome):
        return Apart.CONFLICT
    if action in _ALWAYS:
        return Apart.NOTABLE
    if actor.role not in _TRUSTED or action is Action.PAGE_LOGIN:
        return None
    is_refused = outcome == REFUSED or (action in _WHEN_REFUSED and not deed.changed)
    return Apart.NOTABLE if is_refused else None


def counted_as(deed: Deed) -> Counted | None:
    """As what a deed is counted on its day."""
    if is_conflict(deed.action, deed.outcome):
        return Counted.CONFLICT
    return _COUNTED.get(deed.action)
