"""What every command shares: finding the configuration, running, and failing in one sentence.

Exit codes: 0 done, 1 refused or failed, 2 the command line or the configuration is wrong.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from gateway.config import Settings

REFUSED = 1
WRONG = 2

_T = TypeVar("_T")
_Command = TypeVar("_Command", bound="Callable[..., Any]")


def config_option(command: _Command) -> _Command:
    """Add `--config FILE`."""
    option = click.option(
        "--config",
        "config_path",
        metavar="FILE",
        help="The configuration file; else $GATEWAY_CONFIG, else ./gateway.toml.",
    )
    return option(command)


def read_settings(config_path: str | None) -> Settings:
    """The settings; ends the command with every fault when there is one."""
    from gateway.config import ConfigInvalid, find_file, load_settings
    from gateway.logs import configure_logging

    try:
        given = None if config_path is None else Path(config_path)
        settings = load_settings(find_file(given, os.environ), os.environ)
    except ConfigInvalid as invalid:
        end_with(invalid.faults, WRONG)
    # A command says itself what it did; `serve` and `worker` set their own level afterwards.
    configure_logging("error", settings.log.format)
    return settings


def carry_out(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a command's work, and turn every foreseen failure into one sentence."""
    import uvloop

    from gateway.certificates.sealing import KeyringInvalid, SealBroken
    from gateway.contract import CallError, RequestInvalid
    from gateway.running import AddressTaken
    from gateway.store.connection import StoreRefused, StoreUnavailable
    from gateway.store.documents import Contended, Unreadable
    from gateway.store.embedded import EmbeddedRedisFault

    try:
        return uvloop.run(work)
    except KeyringInvalid as invalid:
        end_with(invalid.faults, WRONG)
    except (AddressTaken, EmbeddedRedisFault) as fault:
        end_with(str(fault), WRONG)
    except RequestInvalid as refused:
        end_with(refused.violations, REFUSED)
    except CallError as refused:
        end_with(refused.text, REFUSED)
    except (Contended, SealBroken, StoreRefused, StoreUnavailable, Unreadable) as fault:
        end_with(f"{fault}.", REFUSED)


def end_with(message: str | Iterable[str], code: int) -> NoReturn:
    """Say why on standard error, in a line or several, and end."""
    for line in [message] if isinstance(message, str) else message:
        say(line, err=True)
    sys.exit(code)


def say(line: str, *, err: bool = False) -> None:
    """Print one line for a person. What it quotes of a zone or of Redis can't steer the terminal.

    Nor can it begin a line of its own. JSON needs none of this: it is ASCII, and escaped.
    """
    click.echo(printable(line), err=err)


def printable(text: str) -> str:
    """The text with each character that is not for printing as Python would escape it."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
