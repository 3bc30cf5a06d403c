"""One entry of the audit trail as a row: its words, what it links to, and its details. Pure.

An entry is what others wrote: all of it is text, and only what can be a hostname or a client's id
is a link. Called by `audit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import client_id_fault
from gateway.store.notable import REFUSED, is_conflict
from gateway.views.trail import change_words, entry_words, is_done, with_unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.store.trail_reading import Told
    from gateway.views.trail import EntryWords

_DETAILS: Final = {
    "before": "Before",
    "after": "After",
    "detail": "Detail",
    "clientId": "Client",
    "appId": "App",
    "credentialId": "New credential",
    "name": "By",
    "remote": "From",
    "requestId": "Request",
    "repeated": "Repeated since the last entry",
}
"""The labels of an entry's other parts, in the order they are shown in."""

_IN_VAIN: Final = {"before": "Stays", "after": "Asked for"}

_LONGEST_BRIEF: Final = 90
_BAD: Final = frozenset({"certificate-failed", "entries-lost"})
_GOOD: Final = frozenset({"certificate-issued", "certificate-renewed"})


@dataclass(frozen=True, slots=True)
class Row:
    """One entry. `kind` is a badge's; `hostname` and `client_id` are there where they are links.

    `brief` is what changed, or else why, cut short; `details` are labels and values.
    """

    place: str
    at_ms: int
    words: EntryWords
    kind: str
    hostname: str | None
    client_id: str | None
    brief: str | None
    details: tuple[tuple[str, str], ...]


def row_of(told: Told) -> Row:
    """The row of an entry, whatever was written there."""
    entry = told.entry or {}
    hostname, client_id = entry.get("hostname"), entry.get("clientId")
    labels = _DETAILS if is_done(entry) else _DETAILS | _IN_VAIN
    return Row(
        place=told.place,
        at_ms=entry.get("at", told.written_at_ms),
        words=entry_words(told),
        kind=_kind(entry),
        hostname=hostname if hostname_fault(hostname) is None else None,
        client_id=client_id if client_id_fault(client_id) is None else None,
        brief=_brief(entry),
        details=tuple(
            (label, _told(name, str(entry[name])))
            for name, label in labels.items()
            if entry.get(name)
        ),
    )


def _told(name: str, text: str) -> str:
    return with_unit(text) if name in {"before", "after"} else text


def _brief(entry: Mapping[str, Any]) -> str | None:
    detail = entry.get("detail")
    short = {
        **entry,
        **{name: _cut(str(entry[name])) for name in ("before", "after") if entry.get(name)},
    }
    change = change_words(short, "\N{RIGHTWARDS ARROW}")
    if change is not None:
        return change
    return None if detail is None else _cut(str(detail))


def _cut(text: str) -> str:
    return (
        text if len(text) <= _LONGEST_BRIEF else f"{text[:_LONGEST_BRIEF]}\N{HORIZONTAL ELLIPSIS}"
    )


def _kind(entry: Mapping[str, Any]) -> str:
    what, outcome = str(entry.get("what", "")), str(entry.get("outcome", ""))
    if what in _BAD or is_conflict(what, outcome):
        return "bad"
    if outcome == REFUSED or outcome.endswith("-failed") or not is_done(entry):
        return "warn"
    return "ok" if what in _GOOD else "calm"
