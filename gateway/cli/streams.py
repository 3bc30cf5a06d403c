"""Standard input, output and error, whatever a program was started with.

Responsible for: all three being there, since what is closed is opened anew by whatever is opened
next; for text that a terminal's encoding does not have; and for a standard error or output that
takes nothing. Must not: decide what is said. Used by `cli`, `cli.session`, `cli.client_progress`.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Final

import click

_FILES: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
_STANDARD_OUTPUT: Final = 1
_STANDARD_ERROR: Final = 2


def open_standard_files() -> None:
    """Have all three, for what was closed an empty one; and print what cannot be shown escaped.

    In their order: each open file takes the lowest number that is free.
    """
    for name, mode in _FILES:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say_error(line: str) -> None:
    """Print a line on standard error. Whoever read it may have gone: that is no reason to stop."""
    try:
        click.echo(line, err=True)
    except OSError:
        silence_error()


def silence_error() -> None:
    """Let standard error go nowhere from now on, with what is still buffered for it."""
    _silence(_STANDARD_ERROR)


def silence_output() -> None:
    """Let standard output go nowhere from now on, with what is still buffered for it."""
    _silence(_STANDARD_OUTPUT)


def has_no_reader(descriptor: int) -> bool:
    """Whether whoever read standard output (1) or error (2) through a pipe has gone."""
    asked = select.poll()
    asked.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in asked.poll(0))


def is_of_output(error: BaseException) -> bool:
    """Whether an error is of what was to be printed, and of no other file."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_of_output, error.exceptions))
    trace = error.__traceback__
    while isinstance(error, OSError) and trace is not None:
        if trace.tb_frame.f_code is click.echo.__code__:
            return True
        trace = trace.tb_next
    return False


def fault_words(error: BaseException) -> str:
    """What the system said of it."""
    while isinstance(error, BaseExceptionGroup):
        error = next(filter(is_of_output, error.exceptions))
    return getattr(error, "strerror", None) or type(error).__name__


def _silence(descriptor: int) -> None:
    # Else the interpreter would complain when it flushes at its end, and end with another code.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
