"""What the keepers of one hostname remember, in memory and on disk.

Responsible for writing changes down soon, so that the record's keeper, the certificate's and the
hook's share one file without overwriting one another, and for since when a fault has lasted. It is
written in a thread, and what changes meanwhile is written together. A disk that takes no writes, or
hangs, loses what the next run would know; the present one goes on by what it knows itself. Must
not: decide anything. Shared by the keepers; `service` and `once` wait for the last writing.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import structlog

from gateway.agent.disk import NOTES
from gateway.agent.durable import DiskFault
from gateway.agent.telling import Telling, Word

if TYPE_CHECKING:
    from gateway.agent.clocks import Clocks
    from gateway.agent.memory import Memories, Memory
    from gateway.agent.rounds import Fault
    from gateway.contract import Hostname

WRITING_SECONDS: Final = 5.0
"""How long somebody waits until what is remembered is on the disk."""

_log = structlog.get_logger(__name__)


class Notebook:
    """The memory of one hostname. May be used from one event loop only."""

    def __init__(self, memories: Memories, hostname: Hostname, clocks: Clocks) -> None:
        self._memories = memories
        self._hostname = hostname
        self._clocks = clocks
        self._telling = Telling()
        self._writing: asyncio.Task[None] | None = None
        self._noted: dict[str, Fault] = {}
        recalled = memories.read(hostname)
        self.memory = recalled.memory
        self.write_fault: str | None = None
        if recalled.forgotten is not None:
            _log.warning("memory not read", hostname=hostname, why=recalled.forgotten)

    def change(self, **fields: Any) -> None:
        """Remember other values for these fields of the memory; writes soon if any is new."""
        changed = replace(self.memory, **fields)
        if changed != self.memory or self.write_fault is not None:
            self.memory = changed
            if self._writing is None:
                self._writing = asyncio.create_task(self._write())

    def count_for(self, app_id: str, url: str) -> None:
        """Forget what was answered for another application, or by another gateway."""
        self.change(**vars(self.memory.counting_for(app_id, url)))

    async def written(self) -> None:
        """Wait until all that is remembered is on the disk, or does not get there in time."""
        if self._writing is not None:
            _, unfinished = await asyncio.wait({self._writing}, timeout=WRITING_SECONDS)
            if unfinished:
                self.write_fault = f"what is remembered of {self._hostname} could not be written"

    def note_record_fault(self, fault: Fault | None) -> None:
        """Remember what is wrong with the record, and since when; or that nothing is."""
        if self._is_news("record", fault):
            sentence, since_ms = self._since(fault, self.memory.record_fault_since_ms)
            self.change(record_fault=sentence, record_fault_since_ms=since_ms)

    def note_certificate_fault(self, fault: Fault | None) -> None:
        """The same for the certificate."""
        if self._is_news("certificate", fault):
            sentence, since_ms = self._since(fault, self.memory.certificate_fault_since_ms)
            self.change(certificate_fault=sentence, certificate_fault_since_ms=since_ms)

    def note_hook_failure(self, fault: Fault, version: str) -> int:
        """Remember that the deploy hook failed for a version; answers how often it has in a row."""
        memory = self.memory
        is_again = memory.hook_failed_version == version
        sentence, since_ms = self._since(fault, memory.hook_fault_since_ms if is_again else None)
        tries = memory.hook_tries + 1 if is_again else 1
        self.change(
            hook_fault=sentence,
            hook_fault_since_ms=since_ms,
            hook_failed_version=version,
            hook_tries=tries,
        )
        return tries

    def note_deployed(self, version: str | None) -> None:
        """Remember that the hook has succeeded for what is live, or that nothing is."""
        self.change(
            deployed_version=version,
            hook_fault=None,
            hook_fault_since_ms=None,
            hook_failed_version=None,
            hook_tries=0,
        )

    def _is_news(self, what: str, fault: Fault | None) -> bool:
        """Whether this is another fault than the last; one like it keeps its first incident."""
        if fault is None:
            self._noted.pop(what, None)
            return True
        is_news = self._noted.get(what) != fault
        self._noted[what] = fault
        return is_news

    def _since(self, fault: Fault | None, known_ms: int | None) -> tuple[str | None, int | None]:
        if fault is None:
            return None, None
        return str(fault), self._clocks.now_ms() if known_ms is None else known_ms

    async def _write(self) -> None:
        memory = None
        try:
            while memory != self.memory:
                memory = self.memory
                self.write_fault = await self._write_once(memory)
        finally:
            self._writing = None
        self._tell()

    async def _write_once(self, memory: Memory) -> str | None:
        """Why that could not be; None when it is written."""
        try:
            await NOTES.run(self._memories.write, self._hostname, memory)
        except DiskFault as fault:
            return str(fault)
        return None

    def _tell(self) -> None:
        now_ms, steady_ms = self._clocks.now_ms(), self._clocks.steady_ms()
        self._telling, word = self._telling.note(self.write_fault, now_ms, steady_ms)
        if word is Word.OVER:
            _log.info("what is remembered can be written again", hostname=self._hostname)
        elif word is not None:
            _log.error("memory not written", hostname=self._hostname, why=self.write_fault)
