"""What was made of stored texts, kept for as long as the texts stay the same. Bounded.

Each call reads the texts anew, and they are nearly always the same as before; to make something of
them takes longer than to compare them. Whoever keeps something keeps the texts beside it and
compares: nothing is believed for having been so. No private key may lie here. Called by whoever
reads Redis for each call.
"""

from __future__ import annotations

from typing import Final, TypeVar

KEPT: Final = 1_024
"""Of how many hostnames something is kept: 25 KB each with a chain of three, 25 MB in all."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Kept(dict[_Key, _Value]):
    """A dictionary of at most so many entries, those that were kept last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: _Key, value: _Value) -> None:
        """Keep a value, in the place of a former one."""
        self.pop(key, None)
        self[key] = value
        if len(self) > self._most:
            del self[next(iter(self))]
