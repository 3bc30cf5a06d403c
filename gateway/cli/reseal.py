"""`gateway reseal`: everything sealed comes under the keyring's first key, while gateways run.

Responsible for telling a person how far it has come, what is left, and which keys may leave the
keyring file. `certificates.resealing` does the work.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.session import REFUSED, carry_out, config_option, read_settings, say

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Coroutine, Iterable, Sequence

    from gateway.certificates.resealing import Report, Resealing
    from gateway.certificates.seals import Thing
    from gateway.config import Settings
    from gateway.wiring import Gateway

PROGRESS_SECONDS: Final = 1.0
SHOWN_AT_MOST: Final = 20

_DONE_WORDS: Final = {"moving": "resealed", "checking": "checked", "looking": "looked at"}


@click.command("reseal")
@config_option
@click.option("--dry-run", is_flag=True, help="Say what depends on which key; change nothing.")
def command(config_path: str | None, *, dry_run: bool) -> None:
    """Move everything that is sealed to the keyring's first key, while the service runs.

    To change keys: add the new key to the keyring file below the old one and restart every gateway;
    move it to the top and restart every gateway; run this; take the old key out of the file. (With
    one gateway alone, the new key may go to the top at once.)

    A gateway reads the keyring at its start. One that was not restarted goes on sealing with the
    old key, which this command finds out only if it happens meanwhile; one that does not have the
    new key cannot open what was moved.

    Moves the private keys of certificates and issuances, the keys of ACME accounts, and the owner
    markers in the zones. May be interrupted at any moment and run again. Exit code 1 when something
    is left under an old key.
    """
    settings = read_settings(config_path)
    sys.exit(carry_out(_reseal(settings, dry_run=dry_run)))


async def _reseal(settings: Settings, *, dry_run: bool) -> int:
    from gateway.store.connection import StoreRefused, StoreUnavailable
    from gateway.wiring import open_gateway

    async with open_gateway(settings) as gateway:
        resealing = _resealing(settings, gateway)
        first = gateway.keyring.key_ids[0]
        say(
            f"Every gateway must have been started with {first} in its keyring by now: one that "
            "was not answers `unavailable` for what is moved.",
            err=True,
        )
        work = resealing.look() if dry_run else resealing.run()
        try:
            await _until_signal(work)
        except (StoreUnavailable, StoreRefused) as fault:
            say(f"{fault}. {_where(resealing.report)}", err=True)
            return REFUSED
        if not dry_run:
            _note(gateway, resealing.report, first)
    report, key_ids = resealing.report, gateway.keyring.key_ids
    if not report.is_finished:
        say(f"Interrupted. {_where(report)}", err=True)
        return REFUSED
    if dry_run:
        for line in _inventory(report, key_ids):
            say(line)
    else:
        say(_moved(report, key_ids[0]))
    for line in (*_limited(sorted(report.unopened)), *_limited(_failures(report))):
        say(line, err=True)
    if not dry_run:
        say(_verdict(report, key_ids))
    return 0 if report.is_complete else REFUSED


def _note(gateway: Gateway, report: Report, first: str) -> None:
    from gateway.store.deeds import Action, Deed

    outcome = "finished" if report.is_finished else "interrupted"
    gateway.trail.note(Deed(Action.RESEAL, outcome, detail=_moved(report, first)))


def _resealing(settings: Settings, gateway: Gateway) -> Resealing:
    from gateway.certificates.resealing import AccountSeals, Resealing
    from gateway.holdings.restamping import Restamping

    store, keyring = gateway.store, gateway.keyring
    return Resealing(
        store,
        gateway.documents,
        keyring,
        AccountSeals(store, keyring, [acme.directory for acme in settings.acme]),
        Restamping(gateway.publisher, gateway.zones, keyring.key_ids[0]),
        now_ms=gateway.clock.now_ms,
        told=_Progress().tell,
    )


async def _until_signal(work: Coroutine[None, None, None]) -> None:
    """Run until it is done or a signal comes, and then leave it where it is."""
    from gateway.ending import end

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    task, signalled = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    await asyncio.wait({task, signalled}, return_when=asyncio.FIRST_COMPLETED)
    is_done = task.done()
    for each in (signalled, task):
        await end(each)
    if is_done:
        task.result()


class _Progress:
    """Tells how far it has come, at most once a second and at the end of each stage."""

    def __init__(self) -> None:
        self._told_at = time.monotonic()

    def tell(self, report: Report) -> None:
        is_over = report.done == report.total > 0
        if not is_over and time.monotonic() - self._told_at < PROGRESS_SECONDS:
            return
        self._told_at = time.monotonic()
        say(f"{_so_far(report)} …", err=True)


def _so_far(report: Report) -> str:
    return f"{_DONE_WORDS[report.stage]} {report.done} of {report.total}"


def _where(report: Report) -> str:
    return (
        f"It has {_so_far(report)} hostnames; what was moved stays moved. "
        "Run it again for the rest."
    )


def _inventory(report: Report, key_ids: Sequence[str]) -> Iterable[str]:
    for number, key_id in enumerate(key_ids):
        role = " (first)" if number == 0 else ""
        yield f"{key_id}{role}: {_counted(report.counts, key_id) or 'nothing'}"


def _moved(report: Report, first: str) -> str:
    old = sorted({key_id for _, key_id in report.counts})
    if not old:
        return f"Nothing had to be moved to {first}."
    parts = [f"{_counted(report.counts, key_id)} from {key_id}" for key_id in old]
    return f"Moved to {first}: {'; '.join(parts)}."


def _failures(report: Report) -> list[str]:
    return [text for subject in sorted(report.failures) for text in report.failures[subject]]


def _limited(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN_AT_MOST
    return [*lines[:SHOWN_AT_MOST], *([f"… and {more} more of the same kind"] if more > 0 else [])]


def _verdict(report: Report, key_ids: Sequence[str]) -> str:
    first, *old = key_ids
    keep = f"Keep all keys in the keyring file ({', '.join(key_ids)})"
    if report.late:
        late = sorted({key_id for _, key_id in report.late})
        parts = [f"{_counted(report.late, key_id)} under {key_id}" for key_id in late]
        return (
            f"While this ran, a gateway sealed {'; '.join(parts)}: it was started before {first} "
            f"came first. They are moved too. {keep}, restart every gateway, then run this again."
        )
    if report.failures:
        return f"{len(report.failures)} could not be moved. {keep}, and run this again."
    if not old:
        return f"Everything depends on {first}, the one key there is."
    may = "is no longer needed and may" if len(old) == 1 else "are no longer needed and may"
    return f"{', '.join(old)} {may} leave the keyring file."


def _counted(counts: Counter[tuple[Thing, str]], key_id: str) -> str:
    from gateway.certificates.seals import Thing

    numbers = [(counts[thing, key_id], thing.value) for thing in Thing]
    return ", ".join(f"{number} {word}{'s'[: number != 1]}" for number, word in numbers if number)
