"""`gateway check`: what is wrong, before a start or beside a running gateway.

Responsible for running all checks at once within a bounded time and for printing what they found.
`cli.findings` has the checks. Exit code 1 when one of them failed; warnings do not count.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.session import REFUSED, carry_out, config_option, say
from gateway.hardening import forbid_dumps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from gateway.cli.finding import Finding
    from gateway.config import Settings

_LATE_REMEDY: Final = (
    "Something that it asked hangs, or this machine has too much to do: ask again, and see"
    " the findings above and the logs of the servers."
)
LIMIT_SECONDS: Final = 9.0
CANCEL_LIMIT_SECONDS: Final = 1.0
IDLE_LIMIT_SECONDS: Final = 0.1


@click.command("check")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def command(config_path: str | None, *, as_json: bool) -> None:
    """Say what is wrong with the configuration or the servers, before a start.

    Starts an embedded Redis for the time of the check, and registers an ACME account where there
    is none yet; writes nothing to a zone.
    """
    from gateway.cli.finding import Finding, State
    from gateway.config import ConfigInvalid, find_file, load_settings
    from gateway.logs import configure_logging

    forbid_dumps()
    given = None if config_path is None else Path(config_path)
    path = find_file(given, os.environ)
    try:
        settings = load_settings(path, os.environ)
    except ConfigInvalid as invalid:
        faults = [Finding("config", State.FAILED, fault) for fault in invalid.faults]
        sys.exit(_report(faults, as_json=as_json))
    configure_logging("error", settings.log.format)  # the findings say it all
    config = Finding("config", State.OK, f"{path or 'The environment'} is valid.")
    sys.exit(carry_out(_check(settings, config, as_json=as_json)))


async def _check(settings: Settings, config: Finding, *, as_json: bool) -> int:
    from gateway.cli.finding import Finding, State
    from gateway.cli.findings import all_checks

    found: dict[str, list[Finding]] = {"config": [config]}
    tasks: dict[str, asyncio.Task[None]] = {}
    for about, check in all_checks(settings).items():
        found[about] = []
        tasks[about] = asyncio.create_task(_collect(check, found[about]))
    await asyncio.wait(tasks.values(), timeout=LIMIT_SECONDS)
    late = [about for about, task in tasks.items() if not task.done()]
    for about in late:
        text = f"Not done within {LIMIT_SECONDS:g} s."
        found[about].append(Finding(about, State.FAILED, text, _LATE_REMEDY))
        tasks[about].cancel()
    for about in tasks.keys() - set(late):
        tasks[about].result()  # a fault of the check itself is raised here
    exit_code = _report(list(itertools.chain(*found.values())), as_json=as_json)
    if late:
        await asyncio.wait([tasks[about] for about in late], timeout=CANCEL_LIMIT_SECONDS)
    if late or _has_threads():
        # Whoever hangs shall not hold up the answer: neither the loop's end nor Python's waits,
        # which would be for a thread that reads from an authority.
        sys.stdout.flush()
        os._exit(exit_code)
    return exit_code


def _has_threads() -> bool:
    """Whether a thread is still at work, for an authority that was given up on."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        thread.join(IDLE_LIMIT_SECONDS)  # those with nothing to do end at once
    return any(thread.is_alive() for thread in others)


async def _collect(check: AsyncIterator[Finding], into: list[Finding]) -> None:
    async for finding in check:
        into.append(finding)  # noqa: PERF401  (at once: what comes before a hang is kept)


def _report(findings: Sequence[Finding], *, as_json: bool) -> int:
    """Print what was found; returns the exit code."""
    from gateway.cli.finding import has_failed, lines_of

    for line in lines_of(findings, as_json=as_json):
        say(line)
    return REFUSED if has_failed(findings) else 0
