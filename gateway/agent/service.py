"""The agent that stays: rounds of every keeper, until a signal comes.

Responsible for: each keeper's loop; the log lines of what changed and what is wrong; telling
systemd and Prometheus; ending within seconds of SIGTERM or SIGINT without cutting a deploy hook in
half. The configuration is read at the start only; SIGHUP says so and changes nothing.

Must not: know what a keeper does. Called by `gateway.cli.agent`, which holds the lock.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from gateway.agent.clocks import MINUTE_MS, moment
from gateway.agent.contact import Contact
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
from gateway.agent.telling import Telling, Word
from gateway.notify import Notifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gateway.agent.clocks import Clocks
    from gateway.agent.config import AgentSettings
    from gateway.agent.deployer import Deployer
    from gateway.agent.keepers import Household, Keeper, Kept
    from gateway.agent.rounds import Round

READY_AT_LATEST_SECONDS: Final = 60.0
REPORT_SECONDS: Final = 60.0
REPORT_PAUSE_SECONDS: Final = 1.0
"""Changes that come together are reported together."""

LAST_REPORT_SECONDS: Final = 2.0
"""A disk that hangs must not keep the agent from ending."""

STUCK_MS: Final = 10 * MINUTE_MS
"""Longer than any round takes: an address command has five minutes at most, a call 20 seconds."""

SPREAD_SECONDS: Final = 0.02
"""Between the starts of two ownerships; it spreads everything that is done at intervals."""

_log = structlog.get_logger(__name__)


async def serve(
    settings: AgentSettings,
    environ: Mapping[str, str],
    clocks: Clocks,
    demand_lock: Callable[[], None],
) -> None:
    """Keep everything current until SIGTERM or SIGINT.

    `demand_lock` is called every minute, from a thread; what it raises ends the agent.

    Raises:
        ContactInvalid: the gateway's URL or the CA file cannot be used.
        LockLost: by `demand_lock`.

    """
    kept: list[Kept] = []
    contact = Contact(settings.gateway, clocks, lambda: outlook(kept, clocks.now_ms()))
    async with contact:
        household = put_together(settings, contact, clocks)
        kept += household.kept
        service = _Service(settings, household, contact, Notifier(environ), clocks)
        await service.run(demand_lock)


class _Service:
    def __init__(
        self,
        settings: AgentSettings,
        household: Household,
        contact: Contact,
        notifier: Notifier,
        clocks: Clocks,
    ) -> None:
        self._settings = settings
        self._household = household
        self._contact = contact
        self._notifier = notifier
        self._clocks = clocks
        self._reporter = Reporter(settings, clocks)
        self._progress = Progress()
        self._last: dict[Keeper, Round] = {}
        self._told: dict[Keeper, Telling] = {}
        self._untried: set[Keeper] = {keeper for each in household.kept for keeper in each.askers}
        self._all_tried = asyncio.Event()
        self._report_due = asyncio.Event()

    async def run(self, demand_lock: Callable[[], None]) -> None:
        stopping = told_to_stop()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _say_not_reloaded)
        begin = asyncio.create_task
        stop = begin(stopping.wait())
        tasks = [begin(self._ready()), begin(self._report()), begin(self._beat())]
        tasks.append(begin(self._watch(demand_lock)))
        hooks: dict[Deployer, asyncio.Task[None]] = {}
        for number, each in enumerate(self._household.kept):
            delay = number * SPREAD_SECONDS
            tasks += [begin(self._keep(one, delay, each)) for one in each.askers]
            if each.deployer is not None:
                hooks[each.deployer] = begin(self._keep(each.deployer, delay, each))
        _log.info("agent started", hostnames=len(self._household.kept))
        everything = {stop, *tasks, *hooks.values()}
        try:
            ended, _ = await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._notifier.stopping()
            _log.info("agent stopping")
            grace_seconds = self._clocks.pace.hook_grace_seconds
            await end_all([stop, *tasks], hooks, self._household, grace_seconds)
            await within(LAST_REPORT_SECONDS, self._tell_others())
        # None but `stop` ends by itself; one that does has failed, and takes the agent down.
        for task in ended - {stop}:
            task.result()

    async def _keep(self, keeper: Keeper, delay_seconds: float, kept: Kept) -> None:
        await asyncio.sleep(delay_seconds)
        while True:
            if keeper is kept.deployer:
                kept.changed.clear()
                came_to = await carry_out(keeper)
                self._take_note(keeper, came_to)
                await within(came_to.pause_ms / 1000, kept.changed.wait())
            else:
                with self._progress.of_a_round(self._clocks.steady_ms):
                    came_to = await carry_out(keeper)
                self._take_note(keeper, came_to)
                await rest(came_to, self._contact)

    def _take_note(self, keeper: Keeper, came_to: Round) -> None:
        if came_to.differs_from(self._last.get(keeper)):
            self._report_due.set()
        self._last[keeper] = came_to
        self._untried.discard(keeper)
        if not self._untried:
            self._all_tried.set()
        for sentence in came_to.done:
            _log.info("changed", hostname=keeper.hostname, what=sentence)
        self._tell(keeper, came_to)

    def _tell(self, keeper: Keeper, came_to: Round) -> None:
        fault = came_to.fault
        if fault is not None and fault.is_shared:
            return  # the contact tells it, once for all
        sentence = None if fault is None else fault.sentence
        why = str(fault)
        told = self._told.get(keeper, Telling())
        now_ms, steady_ms = self._clocks.now_ms(), self._clocks.steady_ms()
        self._told[keeper], word = told.note(sentence, now_ms, steady_ms)
        said = {"hostname": keeper.hostname, "keeper": keeper.what}
        if fault is not None and fault.is_logged:
            return  # a second line would say less
        if word is Word.BEGUN:
            _log.warning("not current", **said, why=why)
        elif told.since_ms is not None and word is Word.STILL:
            _log.warning("not current still", **said, why=why, since=moment(told.since_ms))
        elif told.since_ms is not None and word is Word.OVER:
            _log.info("that is over", **said, lasted_since=moment(told.since_ms))

    async def _ready(self) -> None:
        """Say that the agent is up once every ownership has been tried, whatever came of it.

        Not the hooks: one may wait for a unit that is started after this one.
        """
        await within(READY_AT_LATEST_SECONDS, self._all_tried.wait())
        self._notifier.ready()
        _log.info("agent ready")
        await asyncio.Event().wait()

    async def _beat(self) -> None:
        """Tell the watchdog, while rounds come to an end or none is due."""
        seconds = self._notifier.beat_seconds
        while seconds is not None:
            if not self._progress.is_stuck(self._clocks.steady_ms()):
                self._notifier.alive()
            await asyncio.sleep(seconds)
        await asyncio.Event().wait()

    async def _watch(self, demand_lock: Callable[[], None]) -> None:
        """Look whether the folders are still this agent's, as often as at the files."""
        while True:
            await asyncio.sleep(self._clocks.pace.look_ms / 1000)
            await FILES.run(demand_lock)

    async def _report(self) -> None:
        while True:
            self._report_due.clear()
            await self._tell_others()
            await asyncio.sleep(REPORT_PAUSE_SECONDS)
            await within(REPORT_SECONDS, self._report_due.wait())

    async def _tell_others(self) -> None:
        words = await FILES.run(self._reporter.report, self._household.remembered)
        fault = self._contact.fault
        self._notifier.status(words if fault is None else f"{words}; {fault}")


class Progress:
    """Whether rounds come to an end. Hooks are left out: one may take as long as it is allowed."""

    def __init__(self) -> None:
        self._under_way = 0
        self._last_ms = 0

    @contextmanager
    def of_a_round(self, steady_ms: Callable[[], int]) -> Iterator[None]:
        """Around each round."""
        if not self._under_way:
            self._last_ms = steady_ms()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._last_ms = steady_ms()

    def is_stuck(self, steady_ms: int) -> bool:
        """Whether rounds are under way and none has ended for longer than any takes."""
        return self._under_way > 0 and steady_ms - self._last_ms > STUCK_MS


def _say_not_reloaded() -> None:
    _log.warning("SIGHUP changes nothing: the configuration is read at a start, so restart")
