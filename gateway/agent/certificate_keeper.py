"""Keeps the certificate files of one hostname current: asks the gateway, judges, installs.

Responsible for when to ask (nothing usable on disk, renewal due, an hour since the last answer),
and for installing nothing but what is judged good by this machine's own clock. Must not: remove or
touch what is on disk for any other reason, however long the gateway is away; or run the deploy
hook, which `deployer` does by comparing versions, so that none is forgotten when the agent is
killed in between.

The functions decide and are pure; `CertificateKeeper` does. Called by `service` and `once`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog

from gateway.agent.clocks import HOUR_MS, SECOND_MS, moment
from gateway.agent.contact import CallFailed
from gateway.agent.disk import FILES
from gateway.agent.lineage import InstallFailed, Unusable
from gateway.agent.rounds import (
    OPERATOR_PAUSE_MS,
    SHORTEST_PAUSE_MS,
    Fault,
    Round,
    backoff_ms,
    held_ms,
    told_pause_ms,
)
from gateway.client import AnswerInvalid, Pending, Ready, Refused, judge_certificate

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.agent.clocks import Clocks
    from gateway.agent.contact import Contact
    from gateway.agent.lineage import Lineage
    from gateway.agent.memory import Memory
    from gateway.agent.notebook import Notebook
    from gateway.client import AsyncGatewayClient, Bundle, Certificate, Ownership

ASK_AGAIN_MS: Final = HOUR_MS
"""How often to ask though nothing is due. It finds a certificate that was revoked and issued anew;
and a gateway that is away, or takes the token no more, long before a renewal needs it."""

_LATE_SHORTEST_MS: Final = 10 * SECOND_MS
_LATE_LONGEST_MS: Final = HOUR_MS
_LATE_SHARE: Final = 20

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before a round. Times are epoch milliseconds.

    `not_after_ms` is None when nothing usable is on disk, and `unusable` then says why.
    `renew_after_ms` and `answered_at_ms` are of the last `ready`.
    """

    not_after_ms: int | None
    unusable: str | None
    renew_after_ms: int | None
    answered_at_ms: int | None


def reason_to_ask(known: Known, now_ms: int) -> str | None:
    """Why the gateway is to be asked now; None when what is on disk is current."""
    if known.not_after_ms is None:
        return known.unusable or "there is no certificate yet"
    if known.renew_after_ms is None or known.answered_at_ms is None:
        return "nothing is remembered of the certificate"
    if now_ms >= known.not_after_ms:
        return "the certificate has expired"
    if now_ms >= known.renew_after_ms:
        return "the renewal is due"
    if not 0 <= now_ms - known.answered_at_ms < ASK_AGAIN_MS:
        # Below 0 the clock was set back, and nobody knows how long ago it was.
        return "the last answer is an hour old"
    return None


def next_look_ms(known: Known, now_ms: int) -> int:
    """When the gateway will be asked next, in epoch milliseconds, if nothing else happens."""
    if reason_to_ask(known, now_ms) is not None:
        return now_ms
    dates = (known.not_after_ms, known.renew_after_ms, (known.answered_at_ms or 0) + ASK_AGAIN_MS)
    return min(date for date in dates if date is not None)


def pause_when_late_ms(not_after_ms: int, now_ms: int) -> int:
    """The pause when the renewal is due and the gateway has none yet.

    It renews by itself and before that date, so it is late already. A twentieth of what is left, so
    that certificates of minutes and of months are both in time.
    """
    share = (not_after_ms - now_ms) // _LATE_SHARE
    return min(max(share, _LATE_SHORTEST_MS), _LATE_LONGEST_MS)


def fault_of_refusal(refused: Refused) -> Fault:
    """What a refusal means."""
    return Fault(f"{refused.reason}: {refused.message}", mends=refused.retry_after_ms is not None)


def pause_after_refusal_ms(refused: Refused) -> int:
    """When to ask again after a refusal; slowly where the gateway expects nothing from waiting."""
    if refused.retry_after_ms is None:
        return OPERATOR_PAUSE_MS
    return told_pause_ms(refused.retry_after_ms)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the last answer left: nothing is asked again before `again_ms` (steady)."""

    again_ms: int = 0
    failures: int = 0
    awaits: str | None = None
    fault: Fault | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the dates alone say when to ask."""
        return self.again_ms == 0

    @property
    def is_calm(self) -> bool:
        """Whether all was well: then files that are lost meanwhile are asked for at once."""
        return self.awaits is None and self.fault is None

    def is_over(self, steady_ms: int) -> bool:
        """Whether it is time again. For a fault that all share, the gate knows better."""
        is_shared = self.fault is not None and self.fault.is_shared
        return is_shared or steady_ms >= self.again_ms


IDLE: Final = Standing()


def remembered(memory: Memory, now_ms: int, steady_ms: int) -> Standing:
    """What an earlier run was told to wait for, if that is not over."""
    left_ms = held_ms(memory.certificate_held_until_ms, now_ms)
    if not left_ms:
        return IDLE
    again_ms, sentence = steady_ms + left_ms, memory.certificate_fault
    if sentence is not None:
        return Standing(again_ms, fault=Fault(sentence, mends=True))
    return Standing(again_ms, awaits=memory.certificate_awaits or "the gateway asked to wait")


class CertificateKeeper:
    """Keeps the files of one ownership. `changed` is called after each installation."""

    what = "certificate"

    def __init__(
        self,
        ownership: Ownership,
        lineage: Lineage,
        contact: Contact,
        notebook: Notebook,
        clocks: Clocks,
        changed: Callable[[], None],
    ) -> None:
        self.hostname = ownership.hostname
        self._ownership = ownership
        self._lineage = lineage
        self._contact = contact
        self._notebook = notebook
        self._clocks = clocks
        self._changed = changed
        self._standing = remembered(notebook.memory, clocks.now_ms(), clocks.steady_ms())
        self._is_tidy = False
        self._hindered: Standing | None = None
        self.has_looked = False
        self.not_after_ms: int | None = None
        """Until when what was last seen on disk is good, in epoch milliseconds."""

    async def round(self) -> Round:
        """Look at the files, and ask the gateway if it is time.

        Whatever is on disk and good stays until something that is judged good takes its place.
        """
        known = await self._look()
        done = () if self._is_tidy else await self._tidy()
        if self._is_tidy and self._may_ask(known):
            done += await self._ask_if_due(known)
        if done:
            known = await self._look()
        return self._come_back(known, done)

    def note_fault(self, fault: Fault) -> None:
        """Remember what is wrong, since when, for those who ask."""
        self._notebook.note_certificate_fault(fault)

    async def _tidy(self) -> tuple[str, ...]:
        """Sweep what a killed run left, and give the files the access that is configured.

        Once in a run, and each time that the files are seen to have another one.
        """
        try:
            untidy, is_new = await FILES.run(self._sweep)
        except InstallFailed as failed:
            self._fail(Fault(str(failed), mends=False))
            self._hindered = self._standing
            return ()
        self._is_tidy = True
        if self._standing is self._hindered:
            self._standing = IDLE
        if untidy is not None:
            _log.warning("not swept", hostname=self.hostname, why=untidy)
        if not is_new:
            return ()
        self._changed()
        return ("certificate files written anew, as owner, group, mode or combined was another",)

    def _sweep(self) -> tuple[str | None, bool]:
        """What could not be swept, and whether there is a new version; waits for the disk."""
        untidy, found = self._lineage.sweep(), self._lineage.read()
        return untidy, not isinstance(found, Unusable) and self._install(found)

    def _install(self, bundle: Bundle) -> bool:
        """Whether that made a new version; waits for the disk."""
        before = self._lineage.version
        return self._lineage.install(bundle) != before

    async def _look(self) -> Known:
        found, memory = await FILES.run(self._lineage.look), self._notebook.memory
        self.has_looked = True
        if isinstance(found, Unusable):
            self.not_after_ms, unusable = None, found.reason
        else:
            self.not_after_ms, unusable = int(found.bundle.not_after.timestamp() * 1000), None
            self._is_tidy = self._is_tidy and found.has_access
        return Known(self.not_after_ms, unusable, memory.renew_after_ms, memory.asked_at_ms)

    def _may_ask(self, known: Known) -> bool:
        is_lost = known.not_after_ms is None and self._standing.is_calm
        return is_lost or self._standing.is_over(self._clocks.steady_ms())

    async def _ask_if_due(self, known: Known) -> tuple[str, ...]:
        why = reason_to_ask(known, self._clocks.now_ms())
        if why is not None:
            return await self._ask(why)
        self._standing = IDLE
        return ()

    async def _ask(self, why: str) -> tuple[str, ...]:
        async def ask(client: AsyncGatewayClient) -> Ready | Pending | Refused:
            return await client.get_certificate(self._ownership)

        before = self._standing.failures
        try:
            answer = await self._contact.call(self.hostname, ask, before)
        except CallFailed as failed:
            failures = before + failed.was_made
            fault, told_ms = failed.fault, failed.told_ms
            self._rest(failed.pause_ms, fault=fault, failures=failures, told_ms=told_ms)
            return ()
        if isinstance(answer, Ready):
            return await self._take(answer.certificate)
        if isinstance(answer, Pending):
            pause_ms = told_pause_ms(answer.retry_after_ms)
            awaits = f"the gateway obtains a certificate ({why})"
            self._rest(pause_ms, awaits=awaits, told_ms=pause_ms)
        else:
            pause_ms = pause_after_refusal_ms(answer)
            told_ms = 0 if answer.retry_after_ms is None else pause_ms
            self._rest(pause_ms, fault=fault_of_refusal(answer), told_ms=told_ms)
        return ()

    async def _take(self, certificate: Certificate) -> tuple[str, ...]:
        """Install what the gateway answered, if it is good by this agent's own clock.

        It may end sooner than the one it replaces, as one does that was issued anew after a
        revocation, or by another authority: the gateway's word is the present one, and a
        certificate that is valid now is no worse for ending earlier.
        """
        now = datetime.fromtimestamp(self._clocks.now_ms() / 1000, UTC)
        try:
            bundle = judge_certificate(certificate, self.hostname, now)
            is_new = await FILES.run(self._install, bundle)
        except (AnswerInvalid, InstallFailed) as failed:
            self._fail(Fault(str(failed), mends=False))
            return ()
        self._note_installed(certificate)
        if not is_new:
            return ()
        self._changed()
        return (f"certificate installed: valid until {moment(certificate.valid_until)}",)

    def _note_installed(self, certificate: Certificate) -> None:
        now_ms = self._clocks.now_ms()
        self._standing = IDLE
        if now_ms >= certificate.renew_after:
            self._rest(pause_when_late_ms(certificate.valid_until, now_ms))
        # No later than its end, whatever the answer says.
        renew_after_ms = min(certificate.renew_after, certificate.valid_until)
        self._notebook.change(asked_at_ms=now_ms, renew_after_ms=renew_after_ms)

    def _fail(self, fault: Fault) -> None:
        failures, first_ms = self._standing.failures + 1, self._clocks.pace.first_pause_ms
        pause_ms = backoff_ms(failures, self._clocks.jitter(), first_ms=first_ms)
        self._rest(pause_ms, fault=fault, failures=failures)

    def _rest(
        self,
        pause_ms: int,
        *,
        awaits: str | None = None,
        fault: Fault | None = None,
        failures: int = 0,
        told_ms: int = 0,
    ) -> None:
        """Ask no more for a while; `told_ms` of it, if any, is the gateway's own word."""
        now_ms, again_ms = self._clocks.now_ms(), self._clocks.steady_ms() + pause_ms
        self._standing = Standing(again_ms, failures, awaits, fault)
        # When all wait for the gateway, nobody knows; and each look would be a write to the disk.
        is_known = fault is None or not fault.is_shared
        self._notebook.change(
            next_ask_ms=now_ms + pause_ms if is_known else None,
            certificate_held_until_ms=now_ms + told_ms if told_ms else None,
        )

    def _come_back(self, known: Known, done: tuple[str, ...]) -> Round:
        now_ms, standing = self._clocks.now_ms(), self._standing
        self._notebook.note_certificate_fault(standing.fault)
        self._notebook.change(certificate_awaits=standing.awaits)
        rest_ms = standing.again_ms - self._clocks.steady_ms()
        if standing.is_idle:
            next_ms = next_look_ms(known, now_ms)
            self._notebook.change(next_ask_ms=next_ms, certificate_held_until_ms=None)
            rest_ms = next_ms - now_ms
        pause_ms = min(max(rest_ms, SHORTEST_PAUSE_MS), self._clocks.pace.look_ms)
        return Round(pause_ms, done, standing.awaits, standing.fault)
