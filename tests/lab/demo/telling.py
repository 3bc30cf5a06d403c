"""Tells the story at the terminal, and ends it when something is not as it must be.

Responsible for: headings, indentation, colours (only where the caller wants them), and `check`,
which prints what holds and raises for what does not.
Must not: know what the story is about; nor be given a secret, everything here is printed.
Called by: the other modules of `tests.lab.demo`.
"""

import sys
import textwrap
from collections.abc import Iterable
from enum import StrEnum

_INDENT = "   "
_WRAPPER = textwrap.TextWrapper(92, break_long_words=False, break_on_hyphens=False)


class StoryFault(Exception):
    """Something was not as the story says; the text is for the person at the terminal."""


class _Ink(StrEnum):
    """SGR codes (ECMA-48) by what they are used for."""

    HEADING = "1"
    ASIDE = "2"
    OK = "32"
    OUT = "36"
    BACK = "35"
    BAD = "1;31"


class Teller:
    """Writes to standard output, line by line, so that a pipe sees each as it happens."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours
        self._acts = 0
        self.checks = 0

    def title(self, text: str) -> None:
        """The name of the whole."""
        self._write(self._in(_Ink.HEADING, text))

    def act(self, heading: str, why: str) -> None:
        """Begin a part of the story: what happens, and why."""
        self._acts += 1
        self._write("", self._in(_Ink.HEADING, f"{self._acts:>2} {heading}"))
        self.aside(why)

    def aside(self, text: str) -> None:
        """A sentence or more for the reader."""
        for line in _WRAPPER.wrap(text):
            self._write(f"{_INDENT}{self._in(_Ink.ASIDE, line)}")

    def sent(self, text: str, lines: Iterable[str]) -> None:
        """Something that goes to a server, with its details."""
        self._block(f"{self._in(_Ink.OUT, '->')} {text}", lines)

    def received(self, text: str, lines: Iterable[str]) -> None:
        """What came back."""
        self._block(f"{self._in(_Ink.BACK, '<-')} {text}", lines)

    def command(self, text: str, typed: Iterable[str], printed: Iterable[str]) -> None:
        """A program that was run, its standard input, and what it said."""
        self._block(f"{self._in(_Ink.OUT, '$')} {text}", (f"> {line}" for line in typed))
        self.details(f"  {line}" for line in printed)

    def details(self, lines: Iterable[str]) -> None:
        """Lines that belong to what was told last."""
        for line in lines:
            self._write(f"{_INDENT}{line}".rstrip())

    def plain(self, line: str) -> None:
        """A line for copying: as it is."""
        self._write(line)

    def check(self, what: str, seen: object, wanted: object) -> None:
        """Say that `what` holds, which it does when the two are equal.

        Raises: StoryFault with both.
        """
        if seen != wanted:
            raise StoryFault(f"{what}\n  expected  {wanted}\n  seen      {seen}")
        self.checks += 1
        self._write(f"{_INDENT}{self._in(_Ink.OK, 'ok')} {what}")

    def failed(self, text: str) -> None:
        """The end of a story that went wrong; on standard error."""
        where = f"FAILED in part {self._acts}:" if self._acts else "FAILED:"
        sys.stdout.flush()
        sys.stderr.write(f"\n{self._in(_Ink.BAD, where)} {text}\n")

    def _block(self, first: str, lines: Iterable[str]) -> None:
        self._write("", f"{_INDENT}{first}")
        for line in lines:
            self._write(f"{_INDENT}{' ' * len('-> ')}{line}")

    def _write(self, *lines: str) -> None:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def _in(self, ink: _Ink, text: str) -> str:
        return f"\x1b[{ink}m{text}\x1b[0m" if self._colours else text
