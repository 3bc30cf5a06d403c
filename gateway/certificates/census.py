"""The census: what all hostnames together come to, for figures and for the operator's page.

Responsible for which figures there are, how a hostname counts in them and which ones are named.
Pure: `Tally` is fed one document after the other, and of each field only what is counted is looked
at. A document that this release cannot read is counted as such and stops nothing.
Must not: read Redis; `certificates.enumerator` does, and keeps the result there.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from gateway.certificates.attention import AttentionLists, Concern, are_lists
from gateway.certificates.states import DebtKind, State
from gateway.moments import is_epoch_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.contract.names import Hostname
    from gateway.store.documents import Document

COUNTED_FIELDS: Final = (
    *("version", "holder", "record", "claim", "certificate", "issuance", "debts"),
)
"""The fields of a document that `Tally.add` looks at."""

_DAY_MS: Final = 86_400_000
_DAYS: Final = (0, 1, 3, 7, 14, 30, 60)
DAYS_LEFT: Final = ("expired", *(f"under-{days}" for days in _DAYS[1:]), f"{_DAYS[-1]}-or-more")
"""How many days a certificate has left: each counts once, in the first that holds."""

_BOUNDS_MS: Final = tuple(days * _DAY_MS for days in _DAYS)
_LATEST: Final = 1 << 53
"""No count is larger: what is would not be a number in JSON everywhere."""

_NEAR_END_TENTH: Final = 9
"""Past nine tenths of its lifetime no authority's window delays a renewal: it has failed so far."""

ENDS_DAYS: Final = 91
"""How many days the ends of certificates are counted by: the day of the census, and 90 after it."""

LATE_AFTER_MS: Final = 300_000
"""An issuance takes seconds, with a slow name server a minute or two; later something holds it."""

_OWING_TRIES: Final = 3
"""A debt is tried again within seconds; after so many tries it is not a passing fault."""


class CensusUnreadable(ValueError):
    """What is stored is not a census of this form."""


@dataclass(frozen=True, slots=True)
class Census:
    """What was counted. Times are epoch milliseconds; `None`: there is none of that kind.

    `taken_at_ms` is when the walk began, `took_ms` how long it went on. `renewals_due` are
    certificates past the time of their renewal and not renewed yet, `near_end` those among them
    that have a tenth of their lifetime left, or nothing. `oldest_issuance_ms` is since when the
    longest unfinished issuance is wanted, however often it was tried.

    `ends` has how many certificates that are still valid end on each UTC day, from the day of
    `taken_at_ms` on, `ENDS_DAYS` of them. `held_up` are issuances that say what they wait for, or
    are not finished `LATE_AFTER_MS` after they were requested. `owing` are hostnames with a debt
    that was tried three times or more. `attention` names hostnames by `Concern`, as
    `AttentionLists` has them.
    """

    taken_at_ms: int
    took_ms: int
    documents: int
    unreadable: int
    records: int
    claims: int
    certificates: Mapping[str, int]
    earliest_end_ms: int | None
    renewals_due: int
    near_end: int
    issuances: Mapping[str, int]
    oldest_issuance_ms: int | None
    held_up: int
    debts: Mapping[str, int]
    owing: int
    ends: Sequence[int]
    attention: Mapping[str, Sequence[str]]

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_text(cls, stored: str) -> Census:
        """The inverse of `to_text`; unknown fields are left out. Raises CensusUnreadable."""
        try:
            told = json.loads(stored)
            values = {each.name: told[each.name] for each in fields(cls)}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise CensusUnreadable from None
        if not all(_is_right(name, value) for name, value in values.items()):
            raise CensusUnreadable
        return cls(**values)


def _is_right(name: str, value: Any) -> bool:
    if name == "attention":
        return are_lists(value)
    if name == "ends":
        is_list = isinstance(value, list) and len(value) == ENDS_DAYS
        return is_list and all(map(_is_count, value))
    if name in _TIMES:
        return is_epoch_ms(value) or (value is None and name in _MAY_BE_NONE)
    wanted = _COUNTS.get(name)
    if wanted is None:
        return _is_count(value)
    is_table = isinstance(value, dict) and value.keys() == wanted
    return is_table and all(map(_is_count, value.values()))


_MAY_BE_NONE: Final = {"earliest_end_ms", "oldest_issuance_ms"}
_TIMES: Final = {"taken_at_ms", *_MAY_BE_NONE}
_COUNTS: Final = {
    "certificates": set(DAYS_LEFT),
    "issuances": {state.value for state in State} - {State.ISSUED.value},
    "debts": {kind.value for kind in DebtKind},
}


class Tally:
    """Counts documents as they are at `now_ms`; a census is what it comes to."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._seen: Counter[str] = Counter()
        self._certificates = dict.fromkeys(DAYS_LEFT, 0)
        self._issuances = dict.fromkeys(sorted(_COUNTS["issuances"]), 0)
        self._debts = dict.fromkeys(sorted(_COUNTS["debts"]), 0)
        self._earliest_end_ms: int | None = None
        self._oldest_issuance_ms: int | None = None
        self._ends = [0] * ENDS_DAYS
        self._attention = AttentionLists()

    def add(self, hostname: Hostname, document: Document | None) -> None:
        """Count one hostname's document by its `COUNTED_FIELDS`; None is one that cannot be read.

        One without a version was dropped since its name was read, and is not counted.
        """
        if document is not None and not document.version:
            return
        self._seen["documents"] += 1
        try:
            self._add(hostname, document)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self._seen["unreadable"] += 1
            self._attention.add(Concern.UNREADABLE, hostname, 0)

    def census(self, ended_at_ms: int) -> Census:
        """What was counted, at the end of the walk."""
        return Census(
            taken_at_ms=self._now_ms,
            took_ms=max(0, ended_at_ms - self._now_ms),
            documents=self._seen["documents"],
            unreadable=self._seen["unreadable"],
            records=self._seen["records"],
            claims=self._seen["claims"],
            certificates=self._certificates,
            earliest_end_ms=self._earliest_end_ms,
            renewals_due=self._seen["renewals_due"],
            near_end=self._seen["near_end"],
            issuances=self._issuances,
            oldest_issuance_ms=self._oldest_issuance_ms,
            held_up=self._seen["held_up"],
            debts=self._debts,
            owing=self._seen["owing"],
            ends=self._ends,
            attention=self._attention.lists(),
        )

    def _add(self, hostname: Hostname, document: Document | None) -> None:
        if document is None:
            raise TypeError
        # All that may be unreadable comes first: a document counts in its figures, or in none.
        issuance, certificate = document.issuance, document.certificate
        debts = [DebtKind(debt["kind"]) for debt in document.debts]
        tries = max((_count(debt.get("tries", 0)) for debt in document.debts), default=0)
        state = None if issuance is None else State(issuance["state"])
        since_ms = None if issuance is None else _since_ms(issuance)
        times = None if certificate is None else _times(certificate)
        if issuance is not None and state is not None and since_ms is not None:
            self._add_issuance(hostname, issuance, state, since_ms)
        if times is not None:
            barred = issuance is not None and issuance.get("barred") is True
            renews = document.holder is not None and not barred
            self._add_certificate(hostname, *times, renews=renews)
        for kind in debts:
            self._debts[kind.value] += 1
        if tries >= _OWING_TRIES:
            self._seen["owing"] += 1
            self._attention.add(Concern.OWING, hostname, -tries)
        self._seen["records"] += document.record is not None
        self._seen["claims"] += document.claim is not None

    def _add_issuance(
        self, hostname: Hostname, issuance: Mapping[str, Any], state: State, since_ms: int
    ) -> None:
        self._issuances[state.value] += 1
        self._oldest_issuance_ms = _earlier(self._oldest_issuance_ms, since_ms)
        says = {State.WAITING: "reason", State.PUBLISHED: "message"}.get(state)
        says_why = says is not None and issuance.get(says) is not None
        is_late = self._now_ms - since_ms >= LATE_AFTER_MS
        if state is State.FAILED:
            self._attention.add(Concern.FAILED, hostname, since_ms)
        elif says_why or (is_late and issuance.get("barred") is not True):
            self._seen["held_up"] += 1
            self._attention.add(Concern.WAITING, hostname, since_ms)

    def _add_certificate(
        self, hostname: Hostname, from_ms: int, until_ms: int, renew_ms: int, *, renews: bool
    ) -> None:
        left_ms = until_ms - self._now_ms
        self._certificates[_bucket(left_ms)] += 1
        if left_ms > 0:
            self._earliest_end_ms = _earlier(self._earliest_end_ms, until_ms)
            day = until_ms // _DAY_MS - self._now_ms // _DAY_MS
            if day < ENDS_DAYS:
                self._ends[day] += 1
        if renews and renew_ms <= self._now_ms:
            self._seen["renewals_due"] += 1
            near_ms = from_ms + (until_ms - from_ms) * _NEAR_END_TENTH // 10
            if near_ms <= self._now_ms:
                self._seen["near_end"] += 1
                self._attention.add(Concern.NEAR_END, hostname, until_ms)


def _times(certificate: Mapping[str, Any]) -> tuple[int, int, int]:
    """From when until when it is valid, and when its renewal starts."""
    names = ("valid_from_ms", "valid_until_ms", "renew_at_ms")
    from_ms, until_ms, renew_ms = (_time(certificate[name]) for name in names)
    return from_ms, until_ms, renew_ms


def _since_ms(issuance: Mapping[str, Any]) -> int:
    """Since when it is wanted: a wait or a failure since then does not make it younger."""
    begun_ms, changed_ms = _time(issuance["begun_at_ms"]), _time(issuance["changed_at_ms"])
    wanted_ms = issuance.get("wanted_since_ms")
    return min(begun_ms, changed_ms, wanted_ms if is_epoch_ms(wanted_ms) else begun_ms)


def _count(value: Any) -> int:
    """A number of things."""
    if not _is_count(value):
        raise TypeError
    return int(value)


def _time(value: Any) -> int:
    """Epoch milliseconds."""
    if not is_epoch_ms(value):
        raise TypeError
    return value


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _LATEST


def _earlier(one_ms: int | None, other_ms: int) -> int:
    return other_ms if one_ms is None else min(one_ms, other_ms)


def _bucket(left_ms: int) -> str:
    return DAYS_LEFT[0 if left_ms <= 0 else bisect_right(_BOUNDS_MS, left_ms)]
