"""Programs whose start waits for the disk: the kernel holds up who opens a file that is leased."""

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.agent.addresses import AddressUnknown, CommandAddress, address
from gateway.agent.hook import Hook
from tests.lab.process import read_until, wait_until

_LONG = 60.0
_SHORT = 0.3


class Slow:
    """A program that cannot be started until it is let go, and then runs for long."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "program"
        self.path.write_text("#!/bin/sh\nsleep 600\n")
        self.path.chmod(0o755)
        self._file: int | None = os.open(self.path, os.O_RDONLY)
        fcntl.fcntl(self._file, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody begins to start it."""
        assert self._file is not None
        return fcntl.fcntl(self._file, fcntl.F_GETLEASE) != fcntl.F_WRLCK

    @property
    def is_running(self) -> bool:
        """Whether a process is one of this program."""
        lines = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                lines.append((process / "cmdline").read_bytes())
        return any(str(self.path).encode() in line for line in lines)

    def let_go(self) -> None:
        """May be repeated."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Slow]:
    # The kernel tells who holds a lease that somebody waits; unheard, that would end the process.
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    program = Slow(tmp_path)
    try:
        yield program
    finally:
        program.let_go()
        signal.signal(signal.SIGIO, before)


async def _cancelled_while_it_is_started(slow: Slow) -> None:
    running = asyncio.create_task(Hook((str(slow.path),), _LONG).run({}))
    await asyncio.to_thread(wait_until, lambda: slow.is_waited_for, "it is being started")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def _until_it_can_be_tried_again(slow: Slow) -> None:
    """Let go of it, and wait until the start that waited for it has ended."""

    async def said() -> str:
        return (await Hook((str(slow.path),), 0.1).run({})).sentence

    slow.let_go()
    await read_until(said, lambda sentence: "earlier start" not in sentence, _LONG)


async def test_hook_whose_program_cannot_be_read_is_told_and_holds_nothing_else_up(
    slow: Slow,
) -> None:
    result, other = await asyncio.gather(
        Hook((str(slow.path),), _SHORT).run({}), Hook(("echo", "meanwhile"), _LONG).run({})
    )
    assert result.sentence == (
        f"the deploy hook {slow.path} cannot be started: it had not begun within 0.3 seconds"
    )
    assert other.output == "meanwhile\n"


async def test_hook_is_not_started_again_while_an_earlier_start_waits(slow: Slow) -> None:
    await _cancelled_while_it_is_started(slow)
    again = await Hook((str(slow.path),), _LONG).run({})
    assert again.sentence.endswith("an earlier start of this program still waits for the disk")
    await _until_it_can_be_tried_again(slow)


async def test_hook_that_comes_to_run_too_late_is_killed(slow: Slow) -> None:
    await Hook((str(slow.path),), _SHORT).run({})
    await _until_it_can_be_tried_again(slow)
    await asyncio.to_thread(wait_until, lambda: not slow.is_running, "nothing of it runs")


async def test_hook_that_is_cancelled_while_it_is_started_is_killed_when_it_runs(
    slow: Slow,
) -> None:
    await _cancelled_while_it_is_started(slow)
    await _until_it_can_be_tried_again(slow)
    await asyncio.to_thread(wait_until, lambda: not slow.is_running, "nothing of it runs")


async def test_command_that_cannot_be_read_gives_no_address(slow: Slow) -> None:
    with pytest.raises(AddressUnknown, match="cannot be run: it had not begun within"):
        await address(CommandAddress((str(slow.path),), 1, None))
