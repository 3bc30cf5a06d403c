"""Keeps one address record published: looks at its source, and asks the gateway when it is time.

Responsible for: publishing when address, type or TTL have changed, and every so often though
nothing has, so that a zone edited by hand heals. Must not: withdraw anything. While the source
fails, what is published stays as it is; an agent that stops leaves its record, too.

The functions decide and are pure; `RecordKeeper` does. Called by `service` and `once`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.agent.addresses import AddressUnknown, address
from gateway.agent.clocks import SECOND_MS
from gateway.agent.contact import CallFailed
from gateway.agent.rounds import (
    OPERATOR_PAUSE_MS,
    SHORTEST_PAUSE_MS,
    Fault,
    Round,
    backoff_ms,
    held_ms,
    told_pause_ms,
)
from gateway.contract import PUBLISHED, DnsRecord

if TYPE_CHECKING:
    import asyncio

    from gateway.agent.clocks import Clocks
    from gateway.agent.config import RecordSettings
    from gateway.agent.contact import Contact
    from gateway.agent.memory import Memory
    from gateway.agent.notebook import Notebook
    from gateway.client import AsyncGatewayClient, Ownership, SyncDnsRecordResponse

_SHOWN_CONFLICTS: Final = 5

_MARKER: Final = "gateway-owner="
"""How the TXT record begins that a gateway puts beside what it publishes."""

_MARKED: Final = (
    "A gateway published there: most likely for another app_id, or another client, of this one; or"
    " for this app_id, and somebody has edited the address since."
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last time that the record was asked for: what for, and what came of it.

    After a fault the same is not asked for again before `again_ms` (steady); `failures` are in a
    row. Before `held_until_ms` (steady) nothing is, by the gateway's own word.
    """

    record: DnsRecord | None
    fault: Fault | None
    again_ms: int = 0
    failures: int = 0
    held_until_ms: int = 0


def remembered(memory: Memory, now_ms: int, steady_ms: int) -> Attempt | None:
    """The last attempt of an earlier run; None when it is no reason not to ask at once."""
    left_ms = held_ms(memory.record_held_until_ms, now_ms)
    if left_ms:
        fault = Fault(memory.record_fault or "the gateway asked to wait", mends=True)
        again_ms = steady_ms + left_ms
        return Attempt(memory.wanted, fault, again_ms, held_until_ms=again_ms)
    if memory.published is None or memory.record_fault is not None:
        return None
    return Attempt(memory.published, None)


def is_due(
    wanted: DnsRecord,
    attempt: Attempt | None,
    *,
    published_ago_ms: int,
    republish_ms: int,
    steady_ms: int,
) -> bool:
    """Whether the gateway is to be asked for the record now.

    `published_ago_ms` is below 0 when the clock was set back meanwhile: then nobody knows how long
    ago it was, so it is time.
    """
    if attempt is None:
        return True
    if steady_ms < attempt.held_until_ms:
        return False
    if attempt.record != wanted:
        return True
    if attempt.fault is not None:
        # For a fault that all ownerships share, the gate knows better.
        return attempt.fault.is_shared or steady_ms >= attempt.again_ms
    return not 0 <= published_ago_ms < republish_ms


def fault_of_answer(answer: SyncDnsRecordResponse) -> Fault | None:
    """What is wrong by the gateway's answer; None when the record is published."""
    if answer.status in PUBLISHED:
        return None
    sentence = f"{answer.status}: {answer.message}"
    if answer.conflicting_records:
        texts = [each.value for each in answer.conflicting_records if each.type == "TXT"]
        if any(text.removeprefix('"').startswith(_MARKER) for text in texts):
            sentence = f"{sentence} {_MARKED}"
        found = [f"{each.type} {each.value}" for each in answer.conflicting_records]
        more = len(found) - _SHOWN_CONFLICTS
        tail = f" and {more} more" if more > 0 else ""
        sentence = f"{sentence} Found: {', '.join(found[:_SHOWN_CONFLICTS])}{tail}."
    return Fault(sentence, mends=_mends(answer))


def pause_ms(answer: SyncDnsRecordResponse, failures: int, jitter: float, first_ms: int) -> int:
    """How long not to ask again after an answer that is a fault, the `failures`th in a row."""
    if answer.retry_after_ms is not None:
        return told_pause_ms(answer.retry_after_ms)
    return backoff_ms(failures, jitter, first_ms=first_ms) if _mends(answer) else OPERATOR_PAUSE_MS


def _mends(answer: SyncDnsRecordResponse) -> bool:
    if answer.status == "mutation-failed":
        return True  # asking again is what settles it
    return answer.status == "zone-unavailable" and answer.retry_after_ms is not None


class RecordKeeper:
    """Keeps the record of one ownership. `looks` bounds the sources looked at at once."""

    what = "record"

    def __init__(
        self,
        ownership: Ownership,
        settings: RecordSettings,
        contact: Contact,
        notebook: Notebook,
        clocks: Clocks,
        looks: asyncio.Semaphore,
    ) -> None:
        self.hostname = ownership.hostname
        self._ownership = ownership
        self._settings = settings
        self._contact = contact
        self._notebook = notebook
        self._clocks = clocks
        self._looks = looks
        self._attempt = remembered(notebook.memory, clocks.now_ms(), clocks.steady_ms())
        self._seen: DnsRecord | None = None
        self._look_at_ms = 0
        self._fruitless_looks = 0

    async def round(self) -> Round:
        """Look at the source, and publish if it is time. Never raises what it can tell."""
        try:
            wanted = await self._look()
        except AddressUnknown as unknown:
            return self._come_back((), Fault(str(unknown), unknown.mends))
        self._notebook.change(wanted=wanted)
        done = await self._publish(wanted) if self._is_due(wanted) else ()
        return self._come_back(done, None if self._attempt is None else self._attempt.fault)

    def note_fault(self, fault: Fault) -> None:
        """Remember what is wrong, since when, for those who ask."""
        self._notebook.note_record_fault(fault)

    async def _look(self) -> DnsRecord:
        """What the source gives. Rounds that come sooner go by what it gave the last time."""
        if self._seen is None or self._clocks.steady_ms() >= self._look_at_ms:
            pause_ms = self._settings.check_seconds * SECOND_MS
            try:
                self._seen = await self._ask_source()
                self._fruitless_looks = 0
            except AddressUnknown:
                self._seen = None
                self._fruitless_looks += 1
                pause_ms = min(self._backoff_ms(self._fruitless_looks), pause_ms)
                raise
            finally:
                self._look_at_ms = self._clocks.steady_ms() + pause_ms
        return self._seen

    async def _ask_source(self) -> DnsRecord:
        published = self._notebook.memory.published
        async with self._looks:
            value = await address(
                self._settings.source, None if published is None else published.value
            )
        return DnsRecord.of(value, self._settings.ttl)

    def _is_due(self, wanted: DnsRecord) -> bool:
        published_at_ms = self._notebook.memory.published_at_ms or 0
        return is_due(
            wanted,
            self._attempt,
            published_ago_ms=self._clocks.now_ms() - published_at_ms,
            republish_ms=self._settings.republish_seconds * SECOND_MS,
            steady_ms=self._clocks.steady_ms(),
        )

    async def _publish(self, wanted: DnsRecord) -> tuple[str, ...]:
        before = self._attempt
        failures = 0 if before is None or before.record != wanted else before.failures

        async def ask(client: AsyncGatewayClient) -> SyncDnsRecordResponse:
            return await client.sync_dns_record(self._ownership, wanted)

        try:
            answer = await self._contact.call(self.hostname, ask, failures)
        except CallFailed as failed:
            failures += failed.was_made
            self._fail(wanted, failed.fault, failed.pause_ms, failures, failed.told_ms)
            return ()
        fault = fault_of_answer(answer)
        if fault is not None:
            pace, jitter = self._clocks.pace, self._clocks.jitter()
            pause = pause_ms(answer, failures + 1, jitter, pace.first_pause_ms)
            told = 0 if answer.retry_after_ms is None else pause
            self._fail(wanted, fault, pause, failures + 1, told)
            return ()
        self._attempt = Attempt(wanted, None)
        now_ms = self._clocks.now_ms()
        self._notebook.change(published=wanted, published_at_ms=now_ms, record_held_until_ms=None)
        if answer.status == "managed-unchanged":
            return ()
        verb = "published" if answer.status == "managed-created" else "changed"
        return (f"record {verb}: {wanted.type} {wanted.value}, TTL {wanted.ttl} s",)

    def _fail(
        self, wanted: DnsRecord, fault: Fault, pause_ms: int, failures: int, told_ms: int
    ) -> None:
        steady_ms = self._clocks.steady_ms()
        held_until_ms = steady_ms + told_ms if told_ms else 0
        self._attempt = Attempt(wanted, fault, steady_ms + pause_ms, failures, held_until_ms)
        until_ms = self._clocks.now_ms() + told_ms if told_ms else None
        self._notebook.change(record_held_until_ms=until_ms)

    def _backoff_ms(self, failures: int) -> int:
        first_ms = self._clocks.pace.first_pause_ms
        return backoff_ms(failures, self._clocks.jitter(), first_ms=first_ms)

    def _come_back(self, done: tuple[str, ...], fault: Fault | None) -> Round:
        self._notebook.note_record_fault(fault)
        steady_ms, attempt = self._clocks.steady_ms(), self._attempt
        pause = self._look_at_ms - steady_ms
        if attempt is not None and fault is not None and fault is attempt.fault:
            pause = min(attempt.again_ms - steady_ms, pause)
        return Round(max(pause, SHORTEST_PAUSE_MS), done, fault=fault)
