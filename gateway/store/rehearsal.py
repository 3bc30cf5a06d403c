"""A store for trying out what a call would do: it reads Redis, and remembers changes for itself.

The rules above it cannot tell it from the real one: a document that was changed reads as changed,
and a commit that would be refused is refused. Nothing is written. What the scripts do to indexes,
sets and the ledgers' figures is not kept: nothing that is rehearsed reads those again.

Called by the composition root, for `gateway explain`.
"""

from __future__ import annotations

import secrets
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from gateway.store.connection import EntryRefused, Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.store.connection import Entry
    from gateway.store.nodes import Command
    from gateway.store.sending import Script


_Changed = dict[str, dict[str, str]]
"""Each document that was changed, as it would be by now."""

_OF_REHEARSAL: Final[ContextVar[_Changed | None]] = ContextVar("changed", default=None)


class RehearsedStore(Store):
    """As `Store`, and raises the same. Rehearsals in tasks of their own know nothing of another."""

    def __init__(self, url: str, *, replicas: int | None = None) -> None:
        super().__init__(url, replicas=replicas)
        self._of_nobody: _Changed = {}

    def begin_anew(self) -> None:
        """Forget what was changed: the rehearsal in this task finds what Redis holds."""
        _OF_REHEARSAL.set({})

    @property
    def _changed(self) -> _Changed:
        changed = _OF_REHEARSAL.get()
        return self._of_nobody if changed is None else changed

    async def fields(self, key: str) -> dict[str, str]:
        """All fields of a hash as they would be by now."""
        if key in self._changed:
            return dict(self._changed[key])
        return await super().fields(key)

    async def hashes(self, keys: Sequence[str]) -> list[dict[str, str] | None]:
        """Each of some hashes as it would be by now."""
        found = await super().hashes(keys)
        changed = self._changed
        return [
            dict(changed[key]) if key in changed else fields
            for key, fields in zip(keys, found, strict=True)
        ]

    def begin_hash(self, key: str) -> None:
        """Nothing is asked for before it is needed."""
        del key

    async def commit(
        self,
        document_key: str,
        index_key: str,
        *,
        expected_version: str,
        member: str,
        score: str = "",
        drop: str = "",
        sets: dict[str, str] | None = None,
        deletes: Sequence[str] = (),
        list_key: str | None = None,
        goes_with: str | None = None,
        entry: Entry | None = None,
    ) -> str | None:
        """As `commit.lua` judges and changes the document; the indexes are left alone."""
        del index_key, member, score, list_key, goes_with
        fields = await self.fields(document_key)
        version = fields.get("version")
        if version is None if expected_version == "*" else (version or "") != expected_version:
            return None
        if entry is not None and "version" not in await self.fields(entry.document_key):
            raise EntryRefused
        new_version = secrets.token_hex(8)
        if drop:
            self._changed[document_key] = {}
        elif sets or deletes:
            kept = {name: value for name, value in fields.items() if name not in deletes}
            self._changed[document_key] = {**kept, **(sets or {}), "version": new_version}
        return new_version

    async def _run(
        self,
        script: Script,
        keys: Sequence[str],
        arguments: Sequence[str | float],
        *,
        waits: bool = True,
    ) -> Any:
        """Every script as if it had found what it expects."""
        del script, keys, arguments, waits
        return 1

    async def reserve(self, key: str, name: str, now_ms: int, lifetime_ms: int) -> list[str]:
        """As if nobody else had reserved."""
        del key, now_ms, lifetime_ms
        return [name]

    async def _write(self, key: str, command: Command, script: Script | None = None) -> Any:
        """Nothing is sent."""
        del key, command, script
