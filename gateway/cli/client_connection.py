"""How `gateway client` reaches a gateway: its common options, one call, and how a failure ends it.

Responsible for: the options that every command of the group has, a client of the SDK for one call,
and the exit codes. Must not: show a token, or load the SDK before a call is made. Used by
`cli.client`, `cli.client_record` and `cli.client_certificate`.

Exit codes: 0 done, 1 the gateway said no, 2 the command line or the set-up is wrong, 3 not yet:
the same command makes sense again later; 130 after ^C.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

import click

from gateway import variables
from gateway.cli.client_token import find_token
from gateway.cli.session import WRONG, end_with, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.client import GatewayClient, GatewayError

NOT_YET: Final = 3
USAGE: Final = "usage"
"""The code, in JSON, of what the gateway was never asked: the command line or the set-up."""
INTERRUPTED: Final = 130  # what a shell calls a program that ^C ended

LONGEST_SECONDS: Final = 31_536_000

_MAY_BE_DONE: Final = "Interrupted; what was asked for may be done all the same."
_NO_URL: Final = f"Say which gateway to call: --url URL, or ${variables.URL}."
_URL_WITH_USER: Final = (
    "The URL must not hold a user name or a password: the gateway knows its callers by their token."
)

_T = TypeVar("_T")


class Seconds(click.ParamType[float]):
    """A number of seconds above 0, and up to a year: more would be no limit."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number, or refuse it in one sentence."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not seconds > 0:
            self.fail(f"{value!r} is not a number of seconds above 0.", param, ctx)
        if seconds > LONGEST_SECONDS:
            self.fail(f"{value!r} is more than {LONGEST_SECONDS} seconds, a year.", param, ctx)
        return seconds


_OPTIONS: Final = (
    click.option(
        "--url",
        metavar="URL",
        envvar=variables.URL,
        show_envvar=True,
        help="The gateway, such as https://gateway.example.com.",
    ),
    click.option(
        "--token-file",
        type=click.Path(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="Where the token is; - is standard input. Else the file in"
        f" ${variables.TOKEN_FILE}, else ${variables.TOKEN} itself, else a prompt.",
    ),
    click.option(
        "--ca-file",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        envvar=variables.CA_FILE,
        show_envvar=True,
        help="Trust the authorities in this PEM file instead of the system's.",
    ),
    click.option(
        "--allow-plain-http",
        is_flag=True,
        help="Call another machine by http:// too; the token can be read on the way.",
    ),
    click.option(
        "--deadline",
        type=Seconds(),
        default=30.0,
        show_default=True,
        help="The limit of one call, with its repetitions.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
)


@dataclass(frozen=True)
class Failure:
    """Why a command ends without what was asked: for a person, for programs, for a shell.

    `code` is an error code of the contract or one of this command line; `data` goes beside it.
    """

    exit_code: int
    code: str
    lines: tuple[str, ...]
    data: Mapping[str, Any] = field(default_factory=dict)

    def view(self) -> dict[str, Any]:
        """The failure for programs."""
        return {"error": {"code": self.code, "text": " ".join(self.lines), **self.data}}


@dataclass(frozen=True)
class Where:
    """What a sentence about a failure may name: the gateway and the source of the token."""

    url: str
    token_source: str


class FirstFailure:
    """Tells a person at a terminal why there is no answer yet, once, and how long it goes on."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._is_told = False

    def tell(self, failure: GatewayError) -> None:
        """Say it, unless it has been said, or nobody looks on: a log has the end of it."""
        if self._is_told or not sys.stderr.isatty():
            return
        self._is_told = True
        say(
            f"{failure.text} Trying again until {self._deadline:g} s are over; ^C ends it.",
            err=True,
        )


@dataclass(frozen=True)
class Connection:
    """What the common options say; nothing of it has been looked at yet."""

    url: str | None
    token_file: str | None
    ca_file: str | None
    allow_plain_http: bool
    deadline: float
    as_json: bool

    def call(
        self,
        work: Callable[[GatewayClient], _T],
        *,
        on_repeat: Callable[[GatewayError], None] | None = None,
        interrupted: Callable[[], str] = lambda: _MAY_BE_DONE,
    ) -> _T:
        """Answer what `work` makes of a client; on a failure or ^C, end the command.

        `on_repeat` is told of a failure before the call is made again; unless given, a person at a
        terminal is told of the first. `interrupted` is the sentence after ^C.
        """
        from gateway.cli.client_failures import failure_of
        from gateway.client import GatewayError

        client, where = self._opened(on_repeat or FirstFailure(self.deadline).tell)
        with client:
            try:
                return work(client)
            except GatewayError as error:
                end_failed(failure_of(error, where), as_json=self.as_json)
            except KeyboardInterrupt:
                end_with(interrupted(), INTERRUPTED)

    def show(self, view: Mapping[str, Any]) -> None:
        """Print an object for programs."""
        click.echo(json.dumps(view))

    def _opened(self, on_repeat: Callable[[GatewayError], None]) -> tuple[GatewayClient, Where]:
        from gateway.cli.client_words import begun
        from gateway.client import GatewayClient
        from gateway.client.tokens import TokenUnreadable

        url = self._checked_url()
        try:
            source, token = find_token(self.token_file, os.environ)
        except TokenUnreadable as unreadable:
            self._end_wrong(f"{begun(str(unreadable))}.")
        try:
            client = GatewayClient(
                url,
                token,
                deadline=self.deadline,
                ca_file=self.ca_file,
                allow_plain_http=self.allow_plain_http,
                on_repeat=on_repeat,
            )
        except ValueError as fault:
            self._end_wrong(str(fault))
        return client, Where(url, source)

    def _checked_url(self) -> str:
        if not self.url:
            self._end_wrong(_NO_URL)
        try:
            has_password = "@" in urlsplit(self.url).netloc
        except ValueError:
            has_password = False  # no URL at all, as the client will say
        if has_password:
            self._end_wrong(_URL_WITH_USER)
        return self.url

    def _end_wrong(self, sentence: str) -> NoReturn:
        end_failed(Failure(WRONG, USAGE, (sentence,)), as_json=self.as_json)


def end_failed(failure: Failure, *, as_json: bool) -> NoReturn:
    """End a command: with JSON on standard output, or with sentences on standard error."""
    if as_json:
        click.echo(json.dumps(failure.view()))
        sys.exit(failure.exit_code)
    end_with(failure.lines, failure.exit_code)


def connection_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the common options; the command gets a `Connection` as its first argument."""

    @functools.wraps(command)
    def connected(
        *,
        url: str | None,
        token_file: str | None,
        ca_file: str | None,
        allow_plain_http: bool,
        deadline: float,
        as_json: bool,
        **own: Any,
    ) -> None:
        command(Connection(url, token_file, ca_file, allow_plain_http, deadline, as_json), **own)

    for option in reversed(_OPTIONS):
        connected = option(connected)
    return connected


def ownership_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add HOSTNAME and `--app-id`; the command gets both as its `ownership`, in the wire's form."""

    @functools.wraps(command)
    def owning(*, hostname: str, app_id: str, **others: Any) -> None:
        command(ownership={"appId": app_id, "hostname": hostname}, **others)

    named = click.option(
        "--app-id",
        required=True,
        metavar="ID",
        envvar=variables.APP_ID,
        show_envvar=True,
        help="For which of the client's applications the hostname is.",
    )
    return click.argument("hostname")(named(owning))
