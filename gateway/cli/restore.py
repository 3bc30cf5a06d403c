"""`gateway restore`: a backup into an empty Redis, of whatever kind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gateway.cli.backup import lines, summary, view
from gateway.cli.session import (
    REFUSED,
    WRONG,
    cancel_at_sigterm,
    carry_out,
    config_option,
    end_with,
    read_settings,
    say,
)

if TYPE_CHECKING:
    from gateway.backup.restoring import Backup
    from gateway.config import Settings


_UNFINISHED: Final = (
    "The restore is not finished, and no gateway starts on this Redis until it is: run the same"
    " command with the same file again, or empty this Redis."
)


@click.command("restore")
@config_option
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def command(config_path: str | None, file: Path, *, as_json: bool) -> None:
    """Write the backup FILE into the Redis of the configuration, which must hold no gateway's key.

    Stop every gateway of that Redis first. The whole file is looked through before anything is
    written. A restore that was cut off keeps gateways from starting: the same command with the same
    file finishes it.

    What was changed since the backup is as it was then: tokens that were revoked are good again,
    clients that were made are gone. Records and challenges in the zones are left as they are.
    """
    from gateway.backup.restoring import opened
    from gateway.backup.sealed_file import BackupRefused
    from gateway.certificates.sealing import KeyringInvalid, load_keyring

    settings = read_settings(config_path)
    try:
        keyring = load_keyring(settings.keyring_file)
        with opened(file, keyring) as backup:
            carry_out(_restore(settings, backup))
    except KeyringInvalid as invalid:
        end_with(invalid.faults, WRONG)
    except BackupRefused as refused:
        end_with(str(refused), REFUSED)
    if as_json:
        click.echo(json.dumps(view(backup.header, backup.tally)))
        return
    for line in lines(file, backup.header, backup.tally):
        say(line)
    say("Restored. Start the gateways: what was under way goes on where the backup has it.")


async def _restore(settings: Settings, backup: Backup) -> None:
    from gateway.backup.restoring import restore
    from gateway.store.connection import StoreRefused, StoreUnavailable
    from gateway.store.deeds import Action, Deed
    from gateway.stores import open_store
    from gateway.wiring import open_gateway

    cancel_at_sigterm()
    async with open_store(settings) as (store, clock):
        try:
            await restore(store, backup, clock.now_ms)
        except (StoreRefused, StoreUnavailable) as fault:
            end_with([f"{fault}.", _UNFINISHED], REFUSED)
        except asyncio.CancelledError:
            end_with(["Interrupted.", _UNFINISHED], REFUSED)
    async with open_gateway(settings) as gateway:
        told = summary(backup.header, backup.tally)
        gateway.trail.note(Deed(Action.RESTORE, "restored", detail=told))
