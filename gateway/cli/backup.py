"""`gateway backup`: all that Redis holds in one sealed file, and whether such a file is whole."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.session import (
    REFUSED,
    cancel_at_sigterm,
    carry_out,
    config_option,
    end_with,
    read_settings,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.backup.contents import Tally
    from gateway.backup.sealed_file import Header
    from gateway.config import Settings

_COUNTED: Final = (
    "hostname",
    "record",
    "certificate",
    "claim",
    "client",
    "ACME account",
    "budget figure",
    "audit trail",
    "other key",
)
"""What a summary tells of a tally, in its order; what is in flight has lines of its own."""


@click.command("backup")
@config_option
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--verify", is_flag=True, help="Write nothing: look the FILE there through.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def command(config_path: str | None, file: Path, *, verify: bool, as_json: bool) -> None:
    """Write all that the gateway keeps in Redis into FILE, sealed with the keyring.

    Gateways run on meanwhile. FILE is readable for its owner only, and takes the place of a former
    one when it is whole. Keep the keyring apart from it: without the keyring it is worth nothing,
    and with it whoever has FILE has every private key.
    """
    from gateway.backup.sealed_file import BackupRefused

    settings = read_settings(config_path)
    try:
        header, tally = _verified(settings, file) if verify else carry_out(_saved(settings, file))
    except BackupRefused as refused:
        end_with(str(refused), REFUSED)
    except asyncio.CancelledError:
        end_with("Interrupted: nothing was written.", REFUSED)
    if as_json:
        click.echo(json.dumps(view(header, tally)))
        return
    for line in lines(file, header, tally):
        say(line)


async def _saved(settings: Settings, file: Path) -> tuple[Header, Tally]:
    from gateway import __version__
    from gateway.backup.saving import save
    from gateway.backup.sealed_file import Header
    from gateway.store.deeds import Action, Deed
    from gateway.store.schema_version import SCHEMA_VERSION
    from gateway.wiring import new_id, open_gateway

    cancel_at_sigterm()
    async with open_gateway(settings) as gateway:
        header = Header(new_id(), gateway.clock.now_ms(), SCHEMA_VERSION, __version__)
        tally = await save(gateway.store, gateway.keyring, file, header, gateway.clock.now_ms)
        # Whoever has the file and the keyring has every private key.
        gateway.trail.note(Deed(Action.BACKUP, "written", detail=summary(header, tally)))
    return header, tally


def _verified(settings: Settings, file: Path) -> tuple[Header, Tally]:
    from gateway.backup.restoring import opened
    from gateway.certificates.sealing import KeyringInvalid, load_keyring
    from gateway.cli.session import WRONG

    try:
        keyring = load_keyring(settings.keyring_file)
    except KeyringInvalid as invalid:
        end_with(invalid.faults, WRONG)
    with opened(file, keyring) as backup:
        return backup.header, backup.tally


def view(header: Header, tally: Tally) -> dict[str, Any]:
    """A backup for programs."""
    return {
        "backupId": header.backup_id,
        "madeAt": header.made_at_ms,
        "schema": header.schema,
        "release": header.release,
        "counts": {noun: tally.counts[noun] for noun in _COUNTED},
        "underWay": {"issuances": tally.counts["issuance"], "debts": tally.counts["debt"]},
    }


def summary(header: Header, tally: Tally) -> str:
    """A backup in the words of the audit trail."""
    return f"backup {header.backup_id} of {_counts(tally)}"


def _counts(tally: Tally) -> str:
    from gateway.backup.contents import counted

    nouns = [noun for noun in _COUNTED if tally.counts[noun]]
    return ", ".join(counted(tally.counts[noun], noun) for noun in nouns) or "nothing"


def lines(file: Path, header: Header, tally: Tally) -> Iterable[str]:
    """A backup for a person: what it is, what it holds, what was in flight."""
    from gateway.backup.contents import counted

    made_at = datetime.fromtimestamp(header.made_at_ms / 1000, UTC).isoformat(timespec="seconds")
    yield f"{file}: backup {header.backup_id}, made {made_at} by gateway {header.release}"
    yield _counts(tally)
    under_way = tally.counts["issuance"]
    if under_way:
        named = ", ".join(tally.under_way)
        more = under_way - len(tally.under_way)
        yield (
            f"{counted(under_way, 'issuance')} under way: {named}"
            f"{f' and {more} more' if more else ''}"
        )
    if tally.counts["debt"]:
        yield f"{counted(tally.counts['debt'], 'challenge or order')} still to be cleaned up"
