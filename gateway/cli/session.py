"""What every command shares: finding the configuration, running, and failing in one sentence.

Exit codes: 0 done, 1 refused or failed, 2 the command line or the configuration is wrong. systemd
tries a start anew after a 1, and not after a 2, which would come to the same.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from gateway.cli.streams import say_error
from gateway.hardening import forbid_dumps
from gateway.printable import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from gateway.config import Settings
    from gateway.contract.names import Hostname
    from gateway.dns.owner import Owner
    from gateway.holdings.operator_deeds import OperatorDeeds
    from gateway.wiring import Gateway

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
    """The settings; ends the command with every fault when there is one.

    They hold secrets, as does what is read later: from now on no core file is written.
    """
    from gateway.config import ConfigInvalid
    from gateway.logs import configure_logging

    forbid_dumps()
    try:
        settings = load_configuration(config_path)
    except ConfigInvalid as invalid:
        end_with(invalid.faults, WRONG)
    # A command says itself what it did; `serve` and `worker` set their own level afterwards.
    configure_logging("error", settings.log.format)
    return settings


def load_configuration(config_path: str | None) -> Settings:
    """The settings of `--config`, or of where else they are to be found. Raises ConfigInvalid."""
    from gateway.config import find_file, load_settings

    given = None if config_path is None else Path(config_path)
    return load_settings(find_file(given, os.environ), os.environ)


def carry_out(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a command's work, and turn every foreseen failure into one sentence."""
    import uvloop

    from gateway.access.clients import ClientUnreadable
    from gateway.certificates.sealing import KeyringInvalid, SealBroken
    from gateway.contract import CallError, RequestInvalid
    from gateway.http.listener.binding import AddressTaken
    from gateway.http.listener.contexts import TlsInvalid
    from gateway.store.connection import StoreRefused, StoreUnavailable
    from gateway.store.documents import Contended, Unreadable
    from gateway.store.embedded import EmbeddedRedisFault, StateDirWrong
    from gateway.store.schema_version import StateRefused

    try:
        return uvloop.run(work)
    except KeyringInvalid as invalid:
        end_with(invalid.faults, WRONG)
    except (StateDirWrong, StateRefused, TlsInvalid) as fault:
        end_with(str(fault), WRONG)
    except (AddressTaken, EmbeddedRedisFault) as fault:
        # What this machine has and does may be otherwise in a moment: systemd is to try again.
        end_with(str(fault), REFUSED)
    except RequestInvalid as refused:
        end_with(refused.violations, REFUSED)
    except CallError as refused:
        end_with(refused.text, REFUSED)
    except (
        *(ClientUnreadable, Contended, SealBroken),
        *(StoreRefused, StoreUnavailable, Unreadable),
    ) as fault:
        end_with(f"{fault}.", REFUSED)


def with_gateway(settings: Settings, work: Callable[[Gateway], Awaitable[_T]]) -> _T:
    """Carry out a command's work on the parts of a process, which are closed after it."""
    from gateway.wiring import open_gateway

    async def run() -> _T:
        async with open_gateway(settings) as gateway:
            return await work(gateway)

    return carry_out(run())


def with_deeds(settings: Settings, work: Callable[[OperatorDeeds], Awaitable[_T]]) -> _T:
    """Carry out what an operator does by hand; one that is refused ends the command with why."""
    from gateway.holdings.operator_deeds import DeedRefused
    from gateway.interventions import build_deeds

    try:
        return with_gateway(settings, lambda gateway: work(build_deeds(gateway)))
    except DeedRefused as refused:
        end_with(str(refused), REFUSED)


def hostname_argument(text: str) -> Hostname:
    """The HOSTNAME of a command line; ends the command where it is none."""
    from gateway.contract.hostnames import hostname_fault
    from gateway.contract.names import Hostname

    fault = hostname_fault(text)
    if fault is not None:
        end_with(f"HOSTNAME {fault}", WRONG)
    return Hostname(text)


def ownership_option(text: str, option: str, hostname: Hostname) -> Owner:
    """The ownership of `CLIENT:APPID`; ends the command where it is none.

    An `appId` may have colons of its own.
    """
    from gateway.contract.identifiers import app_id_fault, client_id_fault
    from gateway.contract.names import AppId, ClientId
    from gateway.dns.owner import Owner

    client_id, _, app_id = text.partition(":")
    fault = client_id_fault(client_id) or app_id_fault(app_id)
    if fault is not None:
        end_with(f"{option} must be CLIENT:APPID, each of printable ASCII, not {text!r}.", WRONG)
    return Owner(ClientId(client_id), AppId(app_id), hostname)


def cancel_at_sigterm() -> None:
    """Have SIGTERM cancel this command's work, as ^C does, so that it ends what it has begun.

    `carry_out` raises `asyncio.CancelledError` then.
    """
    import asyncio

    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def end_with(message: str | Iterable[str], code: int) -> NoReturn:
    """Say why on standard error, in a line or several, and end."""
    for line in [message] if isinstance(message, str) else message:
        say(line, err=True)
    sys.exit(code)


def say(line: str, *, err: bool = False) -> None:
    """Print one line for a person. What it quotes of a zone or of Redis can't steer the terminal.

    Nor can it begin a line of its own. JSON needs none of this: it is ASCII, and escaped. That
    standard error takes nothing any more is no failure.
    """
    if err:
        say_error(printable(line))
    else:
        click.echo(printable(line))
