"""What others are told of the agent as a whole: the metrics' file, and a line for systemd.

Responsible for joining the statuses with those who are told. They are those of what the agent knows
now, and not of its notes on the disk: these are written in a thread of their own, maybe later,
maybe never. A file that cannot be written is said as other faults are, not each time, and is no
reason not to go on. Must not: judge; `status` does. Called by `service` and `once`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from gateway.agent.durable import DiskFault
from gateway.agent.memory import Recalled
from gateway.agent.metrics import write_textfile
from gateway.agent.status import read_statuses, summary
from gateway.agent.telling import Telling, Word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.agent.clocks import Clocks
    from gateway.agent.config import AgentSettings
    from gateway.agent.memory import Memory
    from gateway.contract import Hostname

_log = structlog.get_logger(__name__)


class Reporter:
    """Tells how everything stands. May be used from any thread, but from one at a time."""

    def __init__(self, settings: AgentSettings, clocks: Clocks) -> None:
        self._settings = settings
        self._clocks = clocks
        self._telling = Telling()
        self.fault: str | None = None
        """Why the metrics are not on the disk, though they are wanted."""
        if settings.textfile is not None:
            self.fault = f"the metrics were not written in time: {settings.textfile}"

    def report(self, remembered: Mapping[Hostname, Memory]) -> str:
        """Write the metrics, if they are wanted; answers how everything stands in a few words.

        `remembered` has every hostname of the configuration. Reads files and may be repeated.
        """
        settings, now_ms = self._settings, self._clocks.now_ms()
        statuses = read_statuses(settings, lambda name: Recalled(remembered[name]), now_ms)
        if settings.textfile is not None:
            try:
                write_textfile(settings.textfile, statuses, now_ms)
                self.fault = None
            except DiskFault as raised:
                self.fault = str(raised)
        self._tell(self.fault)
        return summary(statuses)

    def _tell(self, fault: str | None) -> None:
        now_ms, steady_ms = self._clocks.now_ms(), self._clocks.steady_ms()
        self._telling, word = self._telling.note(fault, now_ms, steady_ms)
        if word is Word.OVER:
            _log.info("metrics can be written again")
        elif word is not None:
            _log.warning("metrics not written", why=fault)
