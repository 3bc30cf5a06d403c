"""Runs the deploy hook: the command that makes a server load its new certificate.

Responsible for one run of it: its time, its end told in one sentence, and the last of its output;
and for how it is named. Must not: decide when it runs, or try again. Called by `deployer`.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.agent.process import ending, inherited, last_line, started, within
from gateway.agent.starting import LAST_WORDS_SECONDS, NotStarted
from gateway.contract.faults import plain, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.agent.process import Process

SHELL: Final = ("/bin/sh", "-c")
"""What runs a hook that is given as a text."""

OUTPUT_BYTES: Final = 2048
"""How much of the end of a hook's output is kept."""

_LAST_LINE_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class HookResult:
    """What became of a run. `output` is the end of what was printed, control characters masked."""

    succeeded: bool
    sentence: str
    output: str

    @property
    def with_last_line(self) -> str:
        """The sentence, and the last line of the output, where programs say why."""
        last = last_line(self.output)
        if last is None:
            return self.sentence
        return f"{self.sentence}; it said: {plain(last, _LAST_LINE_CHARACTERS)}"


@dataclass(frozen=True, slots=True)
class Hook:
    """A command, found in the PATH or by its path, and the seconds that it may take.

    `withheld` names variables of the agent's own environment that hold a secret of its own;
    `grace_seconds` is what the hook has for its cleanup between SIGTERM and SIGKILL.
    """

    command: tuple[str, ...]
    timeout_seconds: float
    withheld: tuple[str, ...] = ()
    grace_seconds: float = 5.0

    @property
    def is_text(self) -> bool:
        """Whether it is a text for a shell, so that its program says nothing of what it does."""
        return self.command[:-1] == SHELL

    @property
    def name(self) -> str:
        """What it is called: by its program, or by the beginning of its text."""
        return quoted(" ".join(self.command[-1].split())) if self.is_text else self.command[0]

    async def run(self, environment: Mapping[str, str]) -> HookResult:
        """Run it once, in the agent's environment with `environment` added; repeatable.

        At the timeout its whole group is ended, politely at first. When this is cancelled the
        group is killed at once. What a hook leaves running when it ends in time is not touched: it
        may have started a server, which must print elsewhere, since nobody reads on.
        """
        named, tail = f"the deploy hook {self.name}", _Tail()
        whole = {**inherited(self.withheld), **environment}
        try:
            process = await started(self.command, whole, self.timeout_seconds, tail.take)
        except NotStarted as reason:
            return HookResult(False, f"{named} cannot be started: {reason}", "")
        try:
            code = await self._ended(process)
        finally:
            process.close()
        if code is not None:
            return HookResult(code == 0, f"{named} {ending(code)}", tail.text)
        limit = f"{self.timeout_seconds:g} seconds"
        return HookResult(False, f"{named} was killed: it had not ended within {limit}", tail.text)

    async def _ended(self, process: Process) -> int | None:
        """Wait for the end: the exit code (-N when signal N ended it), None when it was killed."""
        if await within(self.timeout_seconds, process.has_exited):
            # Reaped at once: from here on nothing that it left is killed.
            code = process.reap()
            # What it left running may hold its output open.
            await within(LAST_WORDS_SECONDS, process.is_silent)
            return code
        process.signal(signal.SIGTERM)
        # Its group has ended when nobody holds its output.
        await within(self.grace_seconds, process.has_exited, process.is_silent)
        process.signal(signal.SIGKILL)
        await within(LAST_WORDS_SECONDS, process.has_exited)
        return None


class _Tail:
    """The end of what is printed."""

    def __init__(self) -> None:
        self._kept = b""

    def take(self, chunk: bytes) -> None:
        self._kept = (self._kept + chunk)[-OUTPUT_BYTES:]

    @property
    def text(self) -> str:
        """Fit for a terminal."""
        text = self._kept.decode("utf-8", "replace")
        return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)
