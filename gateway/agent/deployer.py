"""Runs the deploy hook of one hostname, once for each change of its files, until it succeeds.

Responsible for knowing whether that is still to be done: the version that is live is compared with
the one for which the hook has succeeded, and both are on disk. So a hook is run also when the agent
was killed after the installation, and a newer version takes the place of one whose hook keeps
failing. From before a hook starts until it has succeeded none counts as deployed: it may have
reloaded the server and failed after that, and then going back to an older version by hand needs a
run too. Hooks of all hostnames are run one at a time: most reload the same server. Must not:
install anything. Called by `service` and `once`, woken by `certificate_keeper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from gateway.agent.clocks import MINUTE_MS
from gateway.agent.disk import FILES
from gateway.agent.lineage import Unusable
from gateway.agent.rounds import SHORTEST_PAUSE_MS, Fault, Round, backoff_ms

if TYPE_CHECKING:
    import asyncio

    from gateway.agent.clocks import Clocks
    from gateway.agent.hook import Hook
    from gateway.agent.lineage import Lineage
    from gateway.agent.notebook import Notebook
    from gateway.contract import Hostname

_LONGEST_PAUSE_MS: Final = 10 * MINUTE_MS

_log = structlog.get_logger(__name__)


def pause_after_failure_ms(tries: int, jitter: float, first_ms: int) -> int:
    """The pause after a hook failed `tries` times in a row for one version."""
    return backoff_ms(tries, jitter, first_ms=first_ms, longest_ms=_LONGEST_PAUSE_MS)


@dataclass(frozen=True, slots=True)
class _Rest:
    """For this version the hook is not run again before `again_ms` (steady)."""

    version: str
    again_ms: int
    fault: Fault
    tries: int


class Deployer:
    """Runs the hook of one hostname. `turn` is held by whoever runs a hook."""

    what = "deploy hook"

    def __init__(
        self,
        hostname: Hostname,
        hook: Hook,
        lineage: Lineage,
        notebook: Notebook,
        clocks: Clocks,
        turn: asyncio.Lock,
    ) -> None:
        self.hostname = hostname
        self._hook = hook
        self._lineage = lineage
        self._notebook = notebook
        self._clocks = clocks
        self._pace = clocks.pace
        self._turn = turn
        self._rest: _Rest | None = None
        self._seen: str | None = None
        self.is_running = False

    async def round(self) -> Round:
        """Run the hook if the installed version is still to be deployed and it is time."""
        version = await self._version_to_deploy()
        if version is None:
            return Round(self._pace.look_ms)
        rest = self._rest
        if rest is not None and rest.version == version:
            rest_ms = rest.again_ms - self._clocks.steady_ms()
            if rest_ms > 0:
                pause_ms = min(max(rest_ms, SHORTEST_PAUSE_MS), self._pace.look_ms)
                return Round(pause_ms, fault=rest.fault, tries=rest.tries)
        async with self._turn:
            # Another one may have been installed while hooks of other hostnames were run.
            version = await self._version_to_deploy()
            return Round(self._pace.look_ms) if version is None else await self._deploy(version)

    def note_fault(self, fault: Fault) -> None:
        """Remember what is wrong, since when, for those who ask."""
        if self._seen is not None:
            self._notebook.note_hook_failure(fault, self._seen)

    async def _version_to_deploy(self) -> str | None:
        version = self._seen = await FILES.run(lambda: self._lineage.version)
        if version is None or version == self._notebook.memory.deployed_version:
            self._notebook.note_deployed(version)
            return None
        # A server must not be told to load a pair that was broken by hand meanwhile.
        found = await FILES.run(self._lineage.read)
        return None if isinstance(found, Unusable) else version

    async def _deploy(self, version: str) -> Round:
        environment = {
            "RENEWED_LINEAGE": str(self._lineage.live),
            "RENEWED_DOMAINS": self.hostname,
        }
        self._notebook.change(deployed_version=None)
        # Before: a killed agent does not know how far the hook came.
        await self._notebook.written()
        self.is_running = True
        try:
            result = await self._hook.run(environment)
        finally:
            self.is_running = False
        said = {"hostname": self.hostname, "version": version, "output": result.output}
        if result.succeeded:
            if result.output:
                _log.info("what the deploy hook said", **said)
            self._rest = None
            self._notebook.note_deployed(version)
            return Round(self._pace.look_ms, (result.sentence,))
        _log.error("deploy hook failed", why=result.sentence, **said)
        fault = Fault(result.with_last_line, mends=False, is_logged=True)
        tries = self._notebook.note_hook_failure(fault, version)
        first_ms = self._pace.first_hook_pause_ms
        pause_ms = pause_after_failure_ms(tries, self._clocks.jitter(), first_ms)
        self._rest = _Rest(version, self._clocks.steady_ms() + pause_ms, fault, tries)
        return Round(min(pause_ms, self._pace.look_ms), fault=fault, tries=tries)
