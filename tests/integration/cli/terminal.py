"""A `gateway` command at a terminal of its own: a real process, with a pty that controls it.

Used by the tests of prompts, progress and interrupts. What the program prints is what the screen
got, with the control characters. Standard output is kept apart, as it is in `gateway … | less`.
"""

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.lab.process import find_program

LIMIT_SECONDS = 30.0
AGAIN_SECONDS = 3.0

_COMMAND = str(Path(sys.executable).with_name("gateway"))


class Terminal:
    """The command has begun; standard input and standard error are the terminal."""

    def __init__(
        self, arguments: Sequence[str], environ: Mapping[str, str], columns: int = 80
    ) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        setpriv, setsid = (find_program(name, "util-linux") for name in ("setpriv", "setsid"))
        self._process = subprocess.Popen(
            [setpriv, "--pdeathsig", "KILL", "--", setsid, "--ctty", _COMMAND, *arguments],
            env={"TERM": "xterm", "LANG": "C.UTF-8", **environ},
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=slave,
        )
        os.close(slave)
        self.screen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        os.close(self._master)

    @property
    def command_line(self) -> str:
        """What every user of the machine can see of the process."""
        return Path(f"/proc/{self._process.pid}/cmdline").read_text()

    def read_until(self, shows: Callable[[str], bool]) -> None:
        """Read the screen until it shows what is waited for."""
        end = time.monotonic() + LIMIT_SECONDS
        while not shows(self.screen):
            assert time.monotonic() < end, self.screen[-1000:]
            assert self._read(), self.screen[-1000:]

    def type(self, text: str) -> None:
        """Type at the keyboard; a line ends with a line feed, ^C is its control character."""
        os.write(self._master, text.encode())

    def interrupted(self) -> tuple[int, str]:
        """Type ^C at a question; as `ended`.

        Once more where nothing comes of it: one that comes just before Python waits for a line is
        heard only after the line.
        """
        return self.ended(typed_again="\x03")

    def ended(self, typed_again: str = "") -> tuple[int, str]:
        """Read on until the command ends; its exit code and standard output."""
        now = time.monotonic()
        end, due = now + LIMIT_SECONDS, now
        while self._read():
            now = time.monotonic()
            assert now < end, self.screen[-1000:]
            if typed_again and now >= due:
                self.type(typed_again)
                due = now + AGAIN_SECONDS
        output, _ = self._process.communicate(timeout=LIMIT_SECONDS)
        return self._process.returncode, output.decode()

    def _read(self) -> bool:
        """Read a little, if there is any; false when no program has the terminal open."""
        if not select.select([self._master], [], [], 0.1)[0]:
            return True
        try:
            self.screen += os.read(self._master, 4096).decode(errors="replace")
        except OSError:  # EIO: the last program has closed it
            return False
        return True
