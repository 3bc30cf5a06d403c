"""The agent that ends: every ownership once, for cron, and for a machine's first start.

Responsible for waiting as long as waiting helps and there is time, for running the deploy hooks
that are due, and for what came of it as sentences and an exit code. Quiet when nothing changed.
Must not: know what a keeper does. Called by `gateway.cli.agent`, which holds the lock.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gateway.agent.contact import OUT_OF_TIME, Contact
from gateway.agent.disk import FILES
from gateway.agent.keepers import (
    carry_out,
    end_all,
    outlook,
    put_together,
    rest,
    told_to_stop,
    within,
)
from gateway.agent.reporting import Reporter
from gateway.agent.rounds import Fault, Round

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gateway.agent.clocks import Clocks
    from gateway.agent.config import AgentSettings
    from gateway.agent.deployer import Deployer
    from gateway.agent.keepers import Household, Keeper

CURRENT: Final = 0
FAILED: Final = 1
NOT_YET: Final = 3

_REPORT_SECONDS: Final = 10.0

_TOLD_TO_STOP: Final = Fault("told to stop before it was finished", mends=True)


async def keep_once(
    settings: AgentSettings,
    clocks: Clocks,
    timeout_seconds: float,
    say: Callable[[str], None],
    complain: Callable[[str], None],
    *,
    renew: bool = False,
) -> int:
    """Bring everything up to date, and say what changed and what is wrong.

    `renew` publishes each record and asks for each certificate, though what is there is current,
    and though the gateway asked to wait; what it answers is up to the gateway. If it cannot be
    asked now, the next run asks.

    `timeout_seconds` bounds the waiting for the gateway, not the commands, which have limits of
    their own, nor an installation that is under way. Answers the exit code: 0 all is current; 1
    something failed that waiting does not mend; 3 something is under way, or the gateway was not
    reached in time.

    Raises:
        ContactInvalid: the gateway's URL or the CA file cannot be used.

    """
    async with Contact(settings.gateway, clocks, limit_seconds=timeout_seconds) as contact:
        household = put_together(settings, contact, clocks, anew=renew)
        once = _Once(household, contact, clocks, timeout_seconds)
        await once.run()
        reporter = Reporter(settings, clocks)
        await within(_REPORT_SECONDS, FILES.run(reporter.report, household.remembered))
        for line in once.changes():
            say(line)
        for line in once.complaints():
            complain(line)
        if reporter.fault is not None:
            complain(reporter.fault)
        has_failed = once.forgets or reporter.fault is not None
        return FAILED if has_failed else exit_code(once.came_to.values())


def exit_code(rounds: Iterable[Round]) -> int:
    """What all of these rounds amount to."""
    rounds = list(rounds)
    if any(each.needs_a_person for each in rounds):
        return FAILED
    return CURRENT if all(each.is_current for each in rounds) else NOT_YET


class _Once:
    def __init__(
        self, household: Household, contact: Contact, clocks: Clocks, timeout_seconds: float
    ) -> None:
        self._household = household
        self._contact = contact
        self._clocks = clocks
        self._end_ms = clocks.steady_ms() + round(timeout_seconds * 1000)
        self.came_to: dict[Keeper, Round] = {}

    async def run(self) -> None:
        """Make every round that is to be made, or as many as there are before a signal."""
        stop = asyncio.create_task(told_to_stop().wait())
        asking: list[asyncio.Task[None]] = []
        hooks: dict[Deployer, asyncio.Task[None]] = {}
        for each in self._household.kept:
            self._expect(each.askers)
            asks = {one: asyncio.create_task(self._finish(one)) for one in each.askers}
            asking += asks.values()
            if each.deployer is not None and each.certificate is not None:
                self._expect([each.deployer])
                # Not for the record's: a server must not wait for a zone that is out of order.
                installs = asks[each.certificate]
                hooks[each.deployer] = asyncio.create_task(self._deploy(each.deployer, installs))
        work = asyncio.create_task(asyncio.wait({*asking, *hooks.values()}))
        try:
            await asyncio.wait({stop, work}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            grace_seconds = self._clocks.pace.hook_grace_seconds
            await end_all([stop, work, *asking], hooks, self._household, grace_seconds)
        for task in (*asking, *hooks.values()):
            if not task.cancelled():
                task.result()

    @property
    def forgets(self) -> bool:
        """Whether the next run will not know what this one has done."""
        return any(each.notebook.write_fault is not None for each in self._household.kept)

    def changes(self) -> Iterator[str]:
        """A line for each change that was made."""
        for keeper, came_to in self.came_to.items():
            for sentence in came_to.done:
                yield f"{keeper.hostname}: {sentence}"

    def complaints(self) -> Iterator[str]:
        """A line for everything that is not current; one for what all of them have."""
        shared: dict[str, list[str]] = {}
        for keeper, came_to in self.came_to.items():
            if came_to.fault is not None and came_to.fault.is_shared:
                shared.setdefault(came_to.fault.sentence, []).append(keeper.hostname)
            elif came_to.fault is not None:
                yield f"{keeper.hostname}: {keeper.what}: {came_to.fault}"
            elif came_to.awaits is not None:
                yield f"{keeper.hostname}: not yet: {came_to.awaits}"
        good = outlook(self._household.kept, self._clocks.now_ms())
        for sentence, hostnames in shared.items():
            yield f"{sentence} Meanwhile: {good}." if good else sentence
            yield f"Not brought up to date: {', '.join(sorted(set(hostnames)))}"
        for each in self._household.kept:
            if each.notebook.write_fault is not None:
                yield f"{each.hostname}: {each.notebook.write_fault}"

    def _expect(self, keepers: Iterable[Keeper]) -> None:
        """What a signal leaves undone is told as well."""
        self.came_to |= {keeper: Round(0, fault=_TOLD_TO_STOP) for keeper in keepers}

    async def _finish(self, keeper: Keeper) -> None:
        """Rounds until all is current, or waiting no longer helps or fits."""
        done: tuple[str, ...] = ()
        while True:
            came_to = await carry_out(keeper)
            done += came_to.done
            last = self.came_to[keeper]
            if came_to.fault == OUT_OF_TIME and last.fault is not _TOLD_TO_STOP:
                # What an earlier round told says more.
                came_to = replace(last, pause_ms=came_to.pause_ms)
            self.came_to[keeper] = replace(came_to, done=done)
            left_ms = self._end_ms - self._clocks.steady_ms()
            if came_to.is_current or came_to.needs_a_person or came_to.pause_ms >= left_ms:
                return
            await rest(came_to, self._contact)

    async def _deploy(self, deployer: Deployer, asked: asyncio.Task[None]) -> None:
        await asked
        self.came_to[deployer] = await carry_out(deployer)
