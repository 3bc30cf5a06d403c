"""Runs a command for what it prints: bounded in time and output.

Responsible for: the end of the command with its time, however many children it has made; the
beginning of what it prints; why it failed, with the last line that it complained in. Must not: know
what is printed. Called by `gateway.agent.addresses`.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from gateway.agent.process import ending, inherited, last_line, started, within
from gateway.agent.starting import NotStarted
from gateway.contract.faults import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.agent.process import Process

MAX_PRINTED_BYTES: Final = 4096


class CommandFailed(Exception):
    """It came to nothing; the text goes on after the command: "did not end within 10 s".

    `mends`: whether it may do better later by itself, as one does that needs the network.
    """

    def __init__(self, text: str, *, mends: bool = False) -> None:
        super().__init__(text)
        self.mends = mends


async def printed_by(
    command: Sequence[str], timeout_seconds: float, withheld: Sequence[str] = ()
) -> str:
    """What a command prints, without the white space around it.

    It inherits the agent's environment but for what is systemd's word to the agent alone, and the
    `withheld` variables. It is over when it has ended and nobody holds its output open. Cancelling
    ends it with its group.

    Raises:
        CommandFailed: it cannot be run, fails, takes too long or prints too much.

    """
    kept = _Kept()
    try:
        process = await started(
            command, inherited(withheld), timeout_seconds, kept.take, kept.take_complaint
        )
    except NotStarted as reason:
        raise CommandFailed(f"cannot be run: {reason}") from None
    kept.source = process
    try:
        is_over = await within(timeout_seconds, process.has_exited, process.is_silent)
        if kept.is_too_much:
            raise CommandFailed(f"printed more than {MAX_PRINTED_BYTES} bytes")
        if not is_over:
            raise CommandFailed(f"did not end within {timeout_seconds:g} s", mends=True)
        code = process.reap()
    finally:
        process.close()
    if code != 0:
        raise CommandFailed(f"{ending(code)}{kept.last_complaint}", mends=True)
    return kept.printed.decode("utf-8", "replace").strip()


class _Kept:
    """The beginning of what is printed, and the end of what is complained about."""

    def __init__(self) -> None:
        self.source: Process | None = None
        self.printed = self._complaints = b""

    @property
    def is_too_much(self) -> bool:
        return len(self.printed) > MAX_PRINTED_BYTES

    def take(self, chunk: bytes) -> None:
        self.printed = (self.printed + chunk)[: MAX_PRINTED_BYTES + 1]
        if self.is_too_much and self.source is not None:
            # No more of it can make an address.
            self.source.signal(signal.SIGKILL)

    def take_complaint(self, chunk: bytes) -> None:
        self._complaints = (self._complaints + chunk)[-MAX_PRINTED_BYTES:]

    @property
    def last_complaint(self) -> str:
        """The last line, to go on after how the command ended; empty without any."""
        last = last_line(self._complaints.decode("utf-8", "replace"))
        return "" if last is None else f": {quoted(last)}"
