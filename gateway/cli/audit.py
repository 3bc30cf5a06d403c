"""`gateway audit`: who changed what, when, from where, and what was refused.

Responsible for the command line; `store.trail_reading` reads, `views.trail` has the words. Changes
nothing.
"""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.session import WRONG, carry_out, config_option, end_with, read_settings, say
from gateway.cli.streams import has_no_reader
from gateway.views.trail import gone_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.config import Settings
    from gateway.store.stream import Extent
    from gateway.store.trail_reading import Told, TrailReader, Wanted

SHOWN: Final = 50
SHOWN_BEFORE_FOLLOWING: Final = 10
POLL_SECONDS: Final = 0.5


@click.command("audit")
@config_option
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--since", metavar="TIME", help="Such as 2h, 7d, 2026-09-14 or 2026-09-14T11:20:00Z.")
@click.option("--hostname", help="Only what was done to this hostname.")
@click.option("--client", "client_id", metavar="ID", help="Only what this client did, or had done.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"The newest so many; {SHOWN} unless --since is given, {SHOWN_BEFORE_FOLLOWING} before"
    " --follow.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def command(
    config_path: str | None,
    since: str | None,
    hostname: str | None,
    client_id: str | None,
    limit: int | None,
    *,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the audit trail: who changed what, when, from where, with what outcome.

    Oldest first. A refusal that repeats is an entry once in ten minutes, with how often it was
    repeated. Times are UTC.
    """
    from gateway.contract.hostnames import hostname_fault
    from gateway.store.trail_reading import Wanted
    from gateway.views.since import SPELLINGS, since_of

    fault = None if hostname is None else hostname_fault(hostname)
    if fault is not None:
        end_with(f"--hostname {fault}.", WRONG)
    try:
        since_ms = None if since is None else since_of(since, datetime.now(UTC))
    except ValueError:
        end_with(f"--since {SPELLINGS}, not {since!r}.", WRONG)
    settings = read_settings(config_path)
    if limit is None and since is None:
        limit = SHOWN_BEFORE_FOLLOWING if follow else SHOWN
    wanted = Wanted(since_ms, hostname, client_id)
    carry_out(_show(settings, wanted, limit, follow=follow, as_json=as_json))


async def _show(
    settings: Settings, wanted: Wanted, limit: int | None, *, follow: bool, as_json: bool
) -> None:
    from gateway.store.trail_reading import TrailReader
    from gateway.stores import open_store

    async with open_store(settings) as (store, _):
        reader = TrailReader(store, wanted)
        extent = await reader.extent()
        count = 0
        if limit is None:
            async for told in reader.since():
                _print(told, as_json=as_json)
                count += 1
        else:
            for told in await reader.newest(limit):
                _print(told, as_json=as_json)
                count += 1
        for line in _remarks(settings, wanted, extent, count, limit):
            say(line, err=True)
        if follow:
            await _follow(reader, as_json=as_json)


def _remarks(
    settings: Settings, wanted: Wanted, extent: Extent, count: int, limit: int | None
) -> Iterator[str]:
    """What the entries themselves don't tell: that there is none, or what is gone."""
    if settings.audit.entries == 0:
        yield "No trail is kept: audit.entries is 0."
    is_whole = limit is None or count < limit
    gone = gone_words(extent, wanted.since_ms)
    if is_whole and gone is not None:
        yield gone
    elif count == 0:
        yield "The trail has nothing of that."


async def _follow(reader: TrailReader, *, as_json: bool) -> None:
    from gateway.store.connection import StoreUnavailable

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    is_away = False
    while not stopping.is_set():
        try:
            if reader.was_overtaken(await reader.extent()):
                say("Entries may have been trimmed before they could be read.", err=True)
            coming = await reader.coming()
        except StoreUnavailable as fault:
            coming = []
            if not is_away:
                say(f"{fault}; this goes on when it is back.", err=True)
            is_away = True
        else:
            is_away = False
        for told in coming:
            _print(told, as_json=as_json)
        if not coming:
            _end_where_nobody_reads()
            await _wait(stopping)


async def _wait(stopping: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(POLL_SECONDS):
            await stopping.wait()
    except TimeoutError:
        return


def _end_where_nobody_reads() -> None:
    """Raises BrokenPipeError: a write would tell too, but there may be none for hours."""
    if has_no_reader(1):
        raise BrokenPipeError


def _print(told: Told, *, as_json: bool) -> None:
    if as_json:
        entry = {"unreadable": True} if told.entry is None else told.entry
        click.echo(json.dumps({**entry, "place": told.place}))
    else:
        say(line_of(told))


def line_of(told: Told) -> str:
    """One entry for a person: when, who, what, to which, with what outcome, and the rest."""
    from gateway.views.trail import entry_words

    words = entry_words(told)
    if not words.is_readable:
        return f"{words.at}  {words.what}"
    columns = [
        (words.at, 20),
        (words.who, 28),
        (words.what, 19),
        (words.subject or "-", 32),
        (words.outcome, 18),
    ]
    padded = [text.ljust(width) for text, width in columns]
    return "  ".join([*padded, "; ".join(words.rest)]).rstrip()
