"""`gateway explain`: how a hostname is judged, and what a sync and an issuance would do now.

Responsible for the command line; `explaining` finds out, `views.explanation` has the words. Exit
code 1 when neither Redis nor the zone told anything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gateway.cli.session import (
    REFUSED,
    WRONG,
    carry_out,
    config_option,
    end_with,
    read_settings,
    say,
)

if TYPE_CHECKING:
    from gateway.explaining import Question


@click.command("explain")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--client", "client_id", help="Who asks; else the holder, else one who may.")
@click.option("--app-id", help="The client's appId; else its own that holds the hostname.")
@click.option("--address", help="Of the record; else the present one, else one that is allowed.")
@click.argument("hostname")
def command(
    config_path: str | None,
    hostname: str,
    client_id: str | None,
    app_id: str | None,
    address: str | None,
    *,
    as_json: bool,
) -> None:
    """Explain how HOSTNAME is judged, and what a call for it would be answered now.

    Changes nothing, neither in Redis nor in a zone, and asks no authority.
    """
    from gateway.cli import explanation_json
    from gateway.explaining import explained
    from gateway.views import explanation

    question = _question(hostname, client_id, app_id, address)
    settings = read_settings(config_path)
    found = carry_out(explained(settings, question))
    for fault in found.unreadable:
        say(fault, err=True)
    if as_json:
        click.echo(json.dumps(explanation_json.view(found)))
    else:
        for line in explanation.lines(found):
            say(line)
    if not found.says_anything:
        raise SystemExit(REFUSED)


def _question(
    hostname: str, client_id: str | None, app_id: str | None, address: str | None
) -> Question:
    from gateway.contract.addresses import address_fault
    from gateway.contract.hostnames import hostname_fault
    from gateway.contract.identifiers import app_id_fault, client_id_fault
    from gateway.contract.names import AppId, ClientId, Hostname
    from gateway.explaining import Question

    faults = [("HOSTNAME", hostname_fault(hostname))]
    if client_id is not None:
        faults.append(("--client", client_id_fault(client_id)))
    if app_id is not None:
        faults.append(("--app-id", app_id_fault(app_id)))
        if client_id is None:
            faults.append(("--app-id", "needs --client"))
    if address is not None:
        faults.append(("--address", address_fault(address)))
    told = [f"{what} {fault}" for what, fault in faults if fault is not None]
    if told:
        end_with(told, WRONG)
    return Question(
        Hostname(hostname),
        None if client_id is None else ClientId(client_id),
        None if app_id is None else AppId(app_id),
        address,
    )
