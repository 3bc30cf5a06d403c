"""What `gateway clients apply` says of a difference: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.access.difference import Action
from gateway.contract.faults import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.access.difference import ClaimStep, ClientStep, Detail, Difference

NAMED_AT_MOST: Final = 5

_SIGNS: Final = {Action.ADD: "+", Action.CHANGE: "~", Action.REMOVE: "-"}
_SINGLE: Final = ("type", "note")
"""Fields with one value: it is replaced."""

_NOUNS: Final = {"patterns": "pattern", "allow": "allow", "capabilities": "capability"}


def lines(difference: Difference) -> Iterable[str]:
    """A difference for a person, with what is in no file and stays."""
    for client in difference.clients:
        held = f" (holds {named(client.held)})" if client.held else ""
        yield f"{_SIGNS[client.action]} client {client.client_id}{held}"
        yield from _details(client.details)
    for claim in difference.claims:
        note = f"  {quoted(claim.note)}" if claim.note and not claim.details else ""
        yield f"{_SIGNS[claim.action]} claim {claim.hostname}{note}"
        yield from _details(claim.details)
    left = [
        *([f"clients {named(difference.left_clients)}"] if difference.left_clients else []),
        *([f"claims {named(difference.left_claims)}"] if difference.left_claims else []),
    ]
    if left:
        yield f"Not in the file, and left as they are without --prune: {'; '.join(left)}."
    if difference.is_empty:
        yield "Nothing differs."
        return
    yield (
        f"{difference.count(Action.ADD)} to add, {difference.count(Action.CHANGE)} to change,"
        f" {difference.count(Action.REMOVE)} to remove."
    )


def view(difference: Difference) -> list[dict[str, Any]]:
    """A difference for programs."""
    return [
        *(_client_view(step) for step in difference.clients),
        *(_claim_view(step) for step in difference.claims),
    ]


def _client_view(step: ClientStep) -> dict[str, Any]:
    shown = {"action": step.action.value, "client": step.client_id, "fields": _fields(step.details)}
    return shown if step.action is not Action.REMOVE else {**shown, "holds": list(step.held)}


def _claim_view(step: ClaimStep) -> dict[str, Any]:
    return {
        "action": step.action.value,
        "claim": step.hostname,
        "note": step.note,
        "fields": _fields(step.details),
    }


def _fields(details: Iterable[Detail]) -> dict[str, Any]:
    return {
        each.field: {"added": list(each.added), "removed": list(each.removed)} for each in details
    }


def _details(details: Iterable[Detail]) -> Iterable[str]:
    for field, added, removed in details:
        if field in _SINGLE and added and removed:
            yield f"    ~ {field} {quoted(removed[0])} -> {quoted(added[0])}"
            continue
        noun = _NOUNS.get(field, field)
        yield from (f"    + {noun} {value}" for value in added)
        yield from (f"    - {noun} {value}" for value in removed)


def named(names: Iterable[str]) -> str:
    """Some names, the first ones, and how many there are."""
    known = list(names)
    more = len(known) - NAMED_AT_MOST
    return ", ".join(known[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
