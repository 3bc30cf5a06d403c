"""Reads the tables of a TOML file key by key, and keeps every fault that it meets.

Responsible for: naming a place (`ownership[1].record.ttl`), judging a value by a plain check of the
contract's kind, and refusing keys that nobody asked for, with the nearest one that there is. Must
not: know any key. A value at fault comes out as its default, or None, so that the reader goes on
and tells the others too. Called by `gateway.agent.config`.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.faults import described, joined, path_text
from gateway.contract.scalars import choice_fault, flag_fault, whole_number_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.contract.faults import Check

REQUIRED: Final = object()
"""In the place of a default: the key must be there."""


class Table:
    """One table: hands out its values and remembers which keys were asked for."""

    def __init__(self, entries: dict[str, Any], place: str, faults: list[str]) -> None:
        self.place = place
        self._entries = entries
        self._faults = faults
        self._asked: dict[str, None] = {}

    def has(self, key: str) -> bool:
        """Whether the key is there; counts as asking for it."""
        self._asked[key] = None
        return key in self._entries

    def fault(self, key: str, sentence: str) -> None:
        """Keep a fault of this table's key."""
        self._faults.append(f"{joined(self.place, path_text([key]))}: {sentence}")

    def fault_here(self, sentence: str) -> None:
        """Keep a fault of the table as a whole."""
        self._faults.append(f"{self.place}: {sentence}")

    def value(self, key: str, check: Check, default: Any = REQUIRED) -> Any:
        """The value, if it is there and good; else the default: None for a required one."""
        instead = None if default is REQUIRED else default
        if not self.has(key):
            if default is REQUIRED:
                self.fault(key, "is required")
            return instead
        value = self._entries[key]
        sentence = check(value)
        if sentence is not None:
            self.fault(key, sentence)
            return instead
        return value

    def whole_number(self, key: str, low: int, high: int, default: int) -> int:
        """A whole number between two bounds, both included."""
        return int(self.value(key, lambda value: whole_number_fault(value, low, high), default))

    def flag(self, key: str) -> bool:
        """True or false; false without the key."""
        return bool(self.value(key, flag_fault, default=False))

    def choice(self, key: str, choices: Sequence[str], default: str) -> Any:
        """One of a few words."""
        return self.value(key, lambda value: choice_fault(value, choices), default)

    def one_of(self, keys: Sequence[str], what: str) -> str | None:
        """The one of these keys that is given; None, and a fault, for several or none."""
        given = [key for key in keys if self.has(key)]
        if len(given) == 1:
            return given[0]
        if not given:
            self.fault_here(f"needs one of {', '.join(keys)}: {what}")
        for key in given[1:]:
            self.fault(key, f"is given besides {given[0]}: keep one")
        return None

    def is_text(self, key: str) -> bool:
        """Whether there is text at the key."""
        return self.has(key) and isinstance(self._entries[key], str)

    def table(self, key: str) -> Table | None:
        """The table at a key; None when it is not there or is something else."""
        entries = self.value(key, _table_fault, None)
        return None if entries is None else self._within(key, entries, self._faults)

    def required_table(self, key: str) -> Table:
        """The table at a key. If there is none, each key that it must have is told as missing."""
        if not self.has(key):
            return self._within(key, {}, self._faults)
        # What stands there instead is the one fault; what would be missing in it is none.
        return self.table(key) or self._within(key, {}, [])

    def tables(self, key: str) -> list[Table]:
        """The tables of a list such as `[[ownership]]`; there must be one at least."""
        wanted = f"[[{key}]], once for each"
        items = self.value(key, lambda value: _list_fault(value, wanted))
        places = [path_text([key, index]) for index in range(len(items or ()))]
        found = []
        for place, item in zip(places, items or (), strict=True):
            if (sentence := _table_fault(item)) is not None:
                self._faults.append(f"{place}: {sentence}")
            else:
                found.append(Table(item, place, self._faults))
        return found

    def close(self) -> None:
        """Refuse keys that were not asked for, without their values: one may be a secret."""
        for key in self._entries:
            if key not in self._asked:
                self.fault(key, f"is not a key of the configuration; {self._suggestion(key)}")

    def _within(self, key: str, entries: dict[str, Any], faults: list[str]) -> Table:
        return Table(entries, joined(self.place, path_text([key])), faults)

    def _suggestion(self, key: str) -> str:
        close = difflib.get_close_matches(key, self._asked, n=1)
        return f"did you mean {close[0]}?" if close else f"known here: {', '.join(self._asked)}"


def _table_fault(value: object) -> str | None:
    return None if isinstance(value, dict) else f"must be a table, not {described(value)}"


def _list_fault(value: object, wanted: str) -> str | None:
    if not isinstance(value, list):
        return f"must be a list of tables: {wanted}"
    return None if value else f"must not be empty: {wanted}"
