"""Conflicts that clients met lately, each judged anew: pure.

Whether one is still there is told from what was read just now: the hostname's document, and what
the trail has had since. A zone is not asked: what somebody has put there, or taken out, is known
once the client syncs again. Must not: read Redis. Called by `overview`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.names import AppId, ClientId
from gateway.store.deeds import Action
from gateway.store.documents import Document, Holder
from gateway.views.trail import entry_words, with_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gateway.store.documents import Unreadable
    from gateway.store.trail_reading import Told

CONFLICT_HOURS: Final = 24
"""For how long a conflict that nobody has met again is told of."""

TRAIL_LOOKED_AT: Final = 2_000
"""How far back it is looked for what has ended a conflict."""

_DONE: Final = frozenset(
    {
        *((Action.RECORD_SYNC, word) for word in ("managed-created", "managed-updated")),
        *((Action.RECORD_SYNC, word) for word in ("managed-unchanged", "managed-deleted")),
        (Action.CERTIFICATE_REQUEST, "begun"),
        (Action.CERTIFICATE_ISSUED, None),
        (Action.CERTIFICATE_RENEWED, None),
        (Action.HAND_OVER, None),
    }
)
"""What an ownership has not while something is in its way; None: whatever the outcome."""

_MADE_ROOM: Final = frozenset(
    {
        (Action.CLAIM_REMOVE, None),
        (Action.FORGET, None),
        (Action.CERTIFICATE_RELEASE, None),
        (Action.RECORD_SYNC, "managed-deleted"),
    }
)
"""What ends somebody's hold on a hostname."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A conflict that a client met: who asked for what, and what was in the way.

    `is_claim`: an operator has claimed the hostname, so that nothing is to be mended.
    """

    hostname: str
    at_ms: int
    why: str
    is_claim: bool = False


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Those that are not known to be over; `is_cut`: there may be older ones, kept no more."""

    told: tuple[Conflict, ...]
    is_cut: bool = False

    @property
    def are_quiet(self) -> bool:
        """Whether none of them needs a person: a claim is what somebody wants."""
        return not self.is_cut and all(each.is_claim for each in self.told)


def conflicts_of(
    seen: Sequence[Told], documents: Iterable[Document | Unreadable], since: Iterable[Told]
) -> list[Conflict]:
    """Those that are still there, as far as is known.

    `seen` is the newest of each ownership at a hostname, `since` what the trail has had from the
    oldest of them on, from the newest to the oldest.
    """
    by_name = {each.hostname: each for each in documents if isinstance(each, Document)}
    later: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for told in since:
        if told.entry is not None and "hostname" in told.entry:
            later[told.entry["hostname"]].append(told.entry)
    found = []
    for told in seen:
        if told.entry is None:
            continue
        document = by_name.get(told.entry["hostname"])
        if document is not None and document.claim is not None:
            found.append(_conflict(told, told.entry, is_claim=True))
        elif not _is_over(told.entry, document, later[told.entry["hostname"]]):
            found.append(_conflict(told, told.entry, is_claim=False))
    return found


def _conflict(told: Told, entry: Mapping[str, Any], *, is_claim: bool) -> Conflict:
    words = entry_words(told)
    app = f" for {entry['appId']}" if entry.get("appId") else ""
    if is_claim:
        asker = entry.get("clientId") or words.who
        why = f"{asker}{app} asked for it; clients are refused as long as it is claimed"
        return Conflict(str(entry["hostname"]), entry["at"], why, is_claim=True)
    wanted = f", wanted {with_unit(str(entry['after']))}" if entry.get("after") else ""
    detail = f": {entry['detail']}" if entry.get("detail") else ""
    why = f"{words.who}{app}: {words.what}{wanted}, {words.outcome}{detail}"
    return Conflict(str(entry["hostname"]), entry["at"], why)


def _is_over(
    entry: Mapping[str, Any], document: Document | None, later: Sequence[Mapping[str, Any]]
) -> bool:
    asker = _ownership(entry)
    behind = [each for each in later if each["at"] >= entry["at"]]
    if any(_ownership(each) == asker and _is_one_of(each, _DONE) for each in behind):
        return True
    if document is None:
        return False
    if entry["what"] == Action.CERTIFICATE_REQUEST and document.holder == asker:
        # A hostname that something else holds gets neither.
        return document.certificate is not None or document.issuance is not None
    is_free = document.holder is None or document.holder == asker
    return is_free and any(_is_one_of(each, _MADE_ROOM) for each in behind)


def _ownership(entry: Mapping[str, Any]) -> Holder:
    client_id, app_id = entry.get("clientId") or "", entry.get("appId") or ""
    return Holder(ClientId(str(client_id)), AppId(str(app_id)))


def _is_one_of(entry: Mapping[str, Any], deeds: frozenset[tuple[Action, str | None]]) -> bool:
    what = entry["what"]
    return (what, None) in deeds or (what, entry["outcome"]) in deeds
