"""What a backup's stream says: one line of JSON for each piece, and at its end how many there were.

Pure: between pieces and lines, what a summary counts, and what follows from what. The indices
(which hostnames there are and who holds which, which clients and claims there are, what is due
when) are in no backup: they follow from the documents, and made from them they agree with them.

Called by `backup.saving` and `backup.restoring`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gateway.backup.sealed_file import BackupRefused
from gateway.store import keys
from gateway.store.whole import Piece, Sort, hash_piece, sort_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEASE: Final = "lease"
NAMED_AT_MOST: Final = 20

_SETTLED: Final = ("issued", "failed")
"""States of an issuance that nobody works on; an order that failed is asked for anew."""

_KINDS: Final = ("hash", "set", "zset", "string", "stream")

_COUNTED: Final = (
    *(sort.value for sort in Sort),
    "record",
    "certificate",
    "claim",
    "debt",
    "issuance",
)
"""All that a tally counts; the end of a backup names each."""


@dataclass
class Tally:
    """What is in a backup, counted as it goes by. `under_way` names hostnames and states."""

    counts: Counter[str] = field(default_factory=Counter)
    under_way: list[str] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        """Count a piece."""
        if not piece.is_first:
            return
        sort = sort_of(piece.key)
        self.counts[sort.value] += 1
        if sort is not Sort.DOCUMENT:
            return
        fields = piece.fields()
        for name in ("record", "certificate", "claim"):
            self.counts[name] += name in fields
        self.counts["debt"] += len(_value(fields, "debts", list) or [])
        state = (_value(fields, "issuance") or {}).get("state")
        if state is not None and state not in _SETTLED:
            self.counts["issuance"] += 1
            if len(self.under_way) < NAMED_AT_MOST:
                self.under_way.append(f"{keys.hostname_in(piece.key)} ({state})")

    def line(self) -> bytes:
        """The last line of a stream, which counts all before it."""
        return _line({"end": {name: self.counts[name] for name in _COUNTED}})

    def agrees_with(self, end: Mapping[str, object]) -> bool:
        """Whether it has counted what a stream's end says, of what the end names.

        A release that counts more reads the backups of those before it, and is read by them.
        """
        told = {name: count for name, count in end.items() if name in _COUNTED}
        own = {name: self.counts[name] for name in told}
        return _without_indices(own) == _without_indices(told)


def _without_indices(counts: dict[str, Any]) -> dict[str, Any]:
    """Counts in which an index is an `OTHER` key: to a release from before that index, it is."""
    indices, others = counts.get(Sort.INDEX.value), counts.get(Sort.OTHER.value)
    if not isinstance(indices, int) or not isinstance(others, int):
        return counts
    return {**counts, Sort.INDEX.value: 0, Sort.OTHER.value: indices + others}


def counted(number: int, noun: str) -> str:
    """A number of things, as a person says it."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def without_lease(piece: Piece, now_ms: int) -> Piece:
    """A document without its lease: where it is restored, nobody works on it, so it is due."""
    fields = piece.fields()
    if LEASE not in fields:
        return piece
    del fields[LEASE]
    due = None if piece.due is None else str(now_ms)
    return replace(piece, values=hash_piece(piece.key, fields).values, due=due)


def line_of(piece: Piece) -> bytes:
    """A piece as a line."""
    told: dict[str, Any] = {"key": piece.key, "kind": piece.kind, "values": piece.values}
    if not piece.is_first:
        told["continues"] = True
    if piece.expires_ms is not None:
        told["expiresMs"] = piece.expires_ms
    if piece.due is not None:
        told["due"] = piece.due
    if piece.entered is not None:
        told["entered"] = piece.entered
    return _line(told)


def pieces_in(lines: Iterator[bytes], tally: Tally, name: str) -> Iterator[Piece]:
    """The pieces that a stream's lines spell; `tally` counts them, `name` is the file's.

    Raises:
        BackupRefused: a line is none of these, or there are not as many as the last one says.
    """
    is_over = False
    for line in lines:
        if is_over:
            raise BackupRefused(f"{name} goes on behind its end.")
        told = json.loads(line)
        if "end" in told:
            is_over = True
            if not tally.agrees_with(told["end"]):
                raise BackupRefused(f"{name} does not hold what its end counts.")
            continue
        piece = Piece(
            told["key"],
            told["kind"],
            told["values"],
            not told.get("continues", False),
            told.get("expiresMs"),
            told.get("due"),
            told.get("entered"),
        )
        if piece.kind not in _KINDS:
            raise BackupRefused(
                f"{name} was made by a newer release: {piece.key} is a {piece.kind}."
            )
        tally.add(piece)
        yield piece
    if not is_over:
        raise BackupRefused(f"{name} has no end.")


def index_entries(piece: Piece) -> list[Piece]:
    """The entries of indices that follow from a document or a client."""
    sort = sort_of(piece.key)
    if sort is Sort.CLIENT:
        client_id = (_value(piece.fields(), "client") or {}).get("clientId")
        return [_entry(keys.CLIENTS_KEY, "set", [client_id])] if client_id else []
    if sort is not Sort.DOCUMENT:
        return []
    hostname, fields = keys.hostname_in(piece.key), piece.fields()
    bucket = keys.bucket_of(hostname)
    entries = [_entry(keys.names_key(bucket), "zset", [hostname, "0"])]
    if piece.due is not None:
        entries.append(_entry(keys.due_key(bucket), "zset", [hostname, piece.due]))
    holder = client_of(piece)
    if holder is not None and piece.entered is not None:
        key = keys.client_holdings_key(keys.fingerprint(holder))
        entries.append(_entry(key, "zset", [hostname, piece.entered]))
    if "claim" in fields:
        entries.append(_entry(keys.CLAIMS_KEY, "set", [hostname]))
    return entries


def client_of(document: Piece) -> str | None:
    """The client that holds a document's hostname; None where nobody does."""
    client_id = (_value(document.fields(), "holder") or {}).get("clientId")
    return client_id if isinstance(client_id, str) else None


def _entry(key: str, kind: str, values: list[str]) -> Piece:
    return Piece(key, kind, values, is_first=False)


def _value(fields: Mapping[str, str], name: str, kind: type = dict) -> Any:
    """A field's JSON; None where there is none, or what nobody can read: it is kept as it is."""
    try:
        found = json.loads(fields.get(name, "null"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, kind) else None


def _line(told: dict[str, Any]) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"
