"""When each credential was last used: noted by calls, written in the background, read by people.

Responsible for what one process has noted and not written yet: bounded, written once a minute, all
of it together. Must not: delay or fail a call; a note is one entry in a dictionary. A process that
is killed loses a minute of notes, and so does one whose Redis is away when it ends: the time of a
use may be that much too early, and is never too late.

Noted by `access.gate`; opened by `gateway.notes`; read by `gateway clients show` and the operator's
page.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import structlog

from gateway.access.tokens import fingerprint_in
from gateway.contract.names import CredentialId
from gateway.ending import end
from gateway.store.faults import StoreRefused, StoreUnavailable
from gateway.store.keys import fingerprint
from gateway.store.uses import Uses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from gateway.contract.names import ClientId
    from gateway.store.connection import Store

WRITTEN_EVERY_SECONDS: Final = 60.0
NOTED_AT_MOST: Final = 16_384
"""How many credentials are noted between two writes; further ones are left out."""

WRITTEN_AT_ONCE: Final = 500

_log = structlog.get_logger(__name__)


class LastUses:
    """The last uses of all credentials, as one of any number of processes notes and reads them."""

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        self._uses = Uses(store)
        self._now_ms = now_ms
        self._noted: dict[CredentialId, int] = {}
        self._is_closing = asyncio.Event()

    def note(self, credential_id: CredentialId) -> None:
        """A credential is being used. Never waits, never raises."""
        if len(self._noted) < NOTED_AT_MOST or credential_id in self._noted:
            self._noted[credential_id] = self._now_ms()

    async def of(self, client_id: ClientId) -> Mapping[CredentialId, int]:
        """When each credential of a client was last used (epoch ms), where it is known.

        What other processes have noted in the last minute is missing. There may be one that the
        client has no more.

        Raises:
            StoreUnavailable, StoreRefused: nobody can tell.
        """
        return (await self.of_each([client_id]))[client_id]

    async def of_each(
        self, client_ids: Sequence[ClientId]
    ) -> dict[ClientId, Mapping[CredentialId, int]]:
        """The same of several clients, asked for at once."""
        uses: dict[str, dict[CredentialId, int]] = {}
        marks = [fingerprint(client_id) for client_id in client_ids]
        for mark, found in zip(marks, await self._uses.of_each(marks), strict=True):
            uses[mark] = {CredentialId(name): at_ms for name, at_ms in found.items()}
        for credential_id, at_ms in self._noted.items():
            of_client = uses.get(fingerprint_in(credential_id))
            if of_client is not None:
                of_client[credential_id] = max(at_ms, of_client.get(credential_id, 0))
        return {client_id: uses[mark] for client_id, mark in zip(client_ids, marks, strict=True)}

    @asynccontextmanager
    async def writing(
        self, patience_seconds: float, every_seconds: float = WRITTEN_EVERY_SECONDS
    ) -> AsyncIterator[None]:
        """Write what is noted; at the end what is left, as far as patience goes."""
        task = asyncio.create_task(self._write_on(every_seconds), name="last-uses")
        try:
            yield
        finally:
            self._is_closing.set()
            await asyncio.wait({task}, timeout=patience_seconds)
            await end(task)

    async def _write_on(self, every_seconds: float) -> None:
        is_last = False
        while not is_last:
            with suppress(TimeoutError):
                async with asyncio.timeout(every_seconds):
                    await self._is_closing.wait()
            is_last = self._is_closing.is_set()
            try:
                await self._write()
            except StoreUnavailable:
                pass  # they wait for the next time
            except Exception:  # noqa: BLE001 (a note is not worth the process)
                _log.exception("last uses broke")

    async def _write(self) -> None:
        """Write what is noted by now, some at once."""
        waiting = list(self._noted)
        for start in range(0, len(waiting), WRITTEN_AT_ONCE):
            some = {each: self._noted[each] for each in waiting[start : start + WRITTEN_AT_ONCE]}
            by_client: dict[str, list[tuple[str, int]]] = defaultdict(list)
            for credential_id, at_ms in some.items():
                by_client[fingerprint_in(credential_id)].append((credential_id, at_ms))
            try:
                await self._uses.note(by_client, self._now_ms())
            except StoreRefused as refused:
                # It would be refused again.
                _log.warning("last uses of credentials are not kept", error=str(refused))
            for credential_id, at_ms in some.items():
                # What was used meanwhile is for the next time.
                if self._noted[credential_id] == at_ms:
                    del self._noted[credential_id]
