"""The audit trail in words: an entry, and what is gone. Pure. For `cli.audit` and the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.store.deeds import Action
from gateway.views.times import past_words, time_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.store.stream import Extent
    from gateway.store.trail_reading import Told

UNREADABLE = "an entry that this release can't read"

_RECORD: Final = re.compile(r"(?<!\S)((?:A|AAAA|CNAME) \S+) (\d{1,10})(?=$|,)")


@dataclass(frozen=True, slots=True)
class EntryWords:
    """When (UTC), who, what, to which hostname or else client, with what outcome, and the rest.

    `subject` is None where there is neither. Of an entry that can't be read only `at` and `what`
    say something.
    """

    at: str
    who: str
    what: str
    subject: str | None
    outcome: str
    rest: tuple[str, ...]
    is_readable: bool = True


def entry_words(told: Told) -> EntryWords:
    """The words of an entry; whatever was written there has some."""
    entry = told.entry
    if entry is None:
        at = past_words(told.written_at_ms)
        return EntryWords(at, "", UNREADABLE, None, "", (), is_readable=False)
    subject = entry.get("hostname") or entry.get("clientId")
    return EntryWords(
        at=past_words(entry["at"]),
        who=_who(entry),
        what=str(entry["what"]),
        subject=str(subject) if subject else None,
        outcome=str(entry["outcome"]),
        rest=tuple(_rest(entry)),
    )


def is_done(entry: Mapping[str, Any]) -> bool:
    """Whether what stands before and after in an entry is a change that was made."""
    outcome = str(entry.get("outcome", ""))
    return entry.get("what") != Action.RECORD_SYNC or outcome.startswith("managed-")


def change_words(entry: Mapping[str, Any], arrow: str) -> str | None:
    """What was there before and after, or else what was asked for in vain; None where neither."""
    before, after = entry.get("before"), entry.get("after")
    if not before and not after:
        return None
    before, after = before and with_unit(str(before)), after and with_unit(str(after))
    if is_done(entry):
        return f"{before or 'nothing'} {arrow} {after or 'nothing'}"
    stays = f"; {before} stays" if before else ""
    return f"asked for {after}{stays}" if after else f"asked to withdraw {before}"


def with_unit(text: str) -> str:
    """What an entry has of records, as in a zone file, with the TTL told as one."""
    return _RECORD.sub(r"\1, TTL \2 s", text)


def gone_words(extent: Extent, since_ms: int | None) -> str | None:
    """What is said where the trail had more, back to a time or to its begin; None where not."""
    begins_ms = 0 if extent.first is None else int(extent.first.partition("-")[0])
    reaches = since_ms is not None and since_ms >= begins_ms
    if reaches or not extent.trimmed:
        return None
    begins = f" It begins at {time_words(begins_ms)}." if begins_ms else ""
    return (
        f"{extent.trimmed} older entries are gone (trimmed by audit.entries, or deleted).{begins}"
    )


def _who(entry: Mapping[str, Any]) -> str:
    name = entry.get("ofClient") or entry.get("name")
    return f"{entry['who']} {name}" if name else str(entry["who"])


def _rest(entry: Mapping[str, Any]) -> Iterator[str]:
    change = change_words(entry, "->")
    if change is not None:
        yield change
    if entry.get("repeated"):
        yield f"{entry['repeated']} times more since the last entry"
    named = {
        "client": entry.get("clientId") if entry.get("hostname") else None,
        "app": entry.get("appId"),
        "new credential": entry.get("credentialId"),
        "by credential": entry.get("name") if entry["who"] == "client" else None,
        "from": entry.get("remote"),
        "request": entry.get("requestId"),
    }
    if entry.get("detail"):
        yield str(entry["detail"])
    for label, text in named.items():
        if text and text != entry.get("ofClient"):
            yield f"{label} {text}"
