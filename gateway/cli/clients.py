"""`gateway clients`: the same provisioning that an admin's calls do, by the same code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli import apply
from gateway.cli.session import (
    REFUSED,
    WRONG,
    config_option,
    end_with,
    read_settings,
    say,
    with_gateway,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.access.clients import Client, Everyone
    from gateway.contract import ProvisionResponse
    from gateway.contract.names import CredentialId
    from gateway.wiring import Gateway

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


_OPTIONS: Final = {
    "spec.clientId": "CLIENT_ID",
    "spec.clientType": "--type",
    "spec.hostnamePatterns": "--pattern",
    "spec.allowedDnsRecordAddresses": "--allow",
    "spec.capabilities": "--capability",
    "overlapSeconds": "--overlap-seconds",
    "send releaseHoldings: true": "add --release-holdings",
}
"""What the command line calls the parts of the request."""

_EXAMPLE: Final = """\b
gateway clients ensure cluster-a --type cloudly \\
    --pattern 'relay.*.example.com' --allow 198.51.100.0/24 \\
    --capability syncDnsRecords --capability requestCertificates \\
    --capability readCertificates
"""
"""Shown below the options as it stands here, which the first character is for."""


@click.group("clients")
def command() -> None:
    """Provision clients: policy, credentials, removal."""


command.add_command(apply.command)


@command.command("ensure", epilog=_EXAMPLE)
@config_option
@_json_option
@click.argument("client_id")
@click.option("--type", "client_type", required=True, help="Such as cloudly.")
@click.option("--pattern", "patterns", multiple=True, help="A hostname pattern; repeatable.")
@click.option("--allow", "prefixes", multiple=True, help="An address prefix; repeatable.")
@click.option(
    "--capability",
    "capabilities",
    multiple=True,
    help="syncDnsRecords, requestCertificates or readCertificates; repeatable.",
)
def ensure(
    config_path: str | None,
    client_id: str,
    client_type: str,
    patterns: Sequence[str],
    prefixes: Sequence[str],
    capabilities: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Create a client with its first token, or set its whole policy."""
    spec = {
        "clientId": client_id,
        "clientType": client_type,
        "hostnamePatterns": list(patterns),
        "allowedDnsRecordAddresses": list(prefixes),
        "capabilities": list(capabilities),
    }
    _show(_provision(config_path, {"action": "ensure", "spec": spec}), as_json=as_json)


@command.command("rotate")
@config_option
@_json_option
@click.argument("client_id")
@click.option(
    "--overlap-seconds",
    type=int,
    default=0,
    show_default=True,
    help="How long the present tokens live on.",
)
def rotate(config_path: str | None, client_id: str, overlap_seconds: int, *, as_json: bool) -> None:
    """Make a new token for a client."""
    request = {
        "action": "rotate",
        "spec": {"clientId": client_id},
        "overlapSeconds": overlap_seconds,
    }
    _show(_provision(config_path, request), as_json=as_json)


@command.command("revoke")
@config_option
@_json_option
@click.argument("client_id")
def revoke(config_path: str | None, client_id: str, *, as_json: bool) -> None:
    """Make every token of a client worthless, at once."""
    request = {"action": "revoke", "spec": {"clientId": client_id}}
    _show(_provision(config_path, request), as_json=as_json)


@command.command("remove")
@config_option
@_json_option
@click.argument("client_id")
@click.option(
    "--release-holdings", is_flag=True, help="Withdraw and release all it holds beforehand."
)
def remove(
    config_path: str | None, client_id: str, *, release_holdings: bool, as_json: bool
) -> None:
    """Remove a client that holds nothing, or everything of it."""
    request = {
        "action": "remove",
        "spec": {"clientId": client_id},
        "releaseHoldings": release_holdings,
    }
    _show(_provision(config_path, request), as_json=as_json)


@command.command("list")
@config_option
@_json_option
def list_all(config_path: str | None, *, as_json: bool) -> None:
    """List all clients."""
    found = _all(config_path)
    for fault in found.unreadable:
        say(f"{fault}.", err=True)
    views = [_view(client) for client in found.clients]
    if as_json:
        click.echo(json.dumps(views))
        return
    for view in views:
        patterns = ", ".join(view["hostnamePatterns"]) or "no hostnames"
        live = len(view["credentials"])
        say(f"{view['clientId']}  ({view['clientType']}, credentials: {live})  {patterns}")


@command.command("show")
@config_option
@_json_option
@click.argument("client_id")
def show(config_path: str | None, client_id: str, *, as_json: bool) -> None:
    """Show a client's policy, and its credentials with their last use; never a token."""

    async def read(gateway: Gateway) -> tuple[Everyone, dict[str, Any] | None]:
        found = await gateway.clients.all()
        for client in found.clients:
            if client.client_id == client_id:
                return found, _with_uses(client, await gateway.last_uses.of(client.client_id))
        return found, None

    found, view = with_gateway(read_settings(config_path), read)
    if view is not None:
        click.echo(json.dumps(view, indent=None if as_json else 2))
        return
    for fault in found.unreadable:
        if fault.client_id == client_id:
            end_with(f"{fault}.", REFUSED)
    end_with(f"There is no client {client_id}.", REFUSED)


def _provision(config_path: str | None, request: dict[str, Any]) -> ProvisionResponse:
    from gateway.cli.client_words import in_own_words
    from gateway.contract import ProvisionRequest, RequestInvalid, read_request

    settings = read_settings(config_path)
    try:
        read = read_request(ProvisionRequest, request)
    except RequestInvalid as invalid:
        end_with((in_own_words(each, _OPTIONS) for each in invalid.violations), WRONG)

    async def work(gateway: Gateway) -> ProvisionResponse:
        try:
            return await gateway.provisioning.provision(read)
        except RequestInvalid as refused:
            named = [
                each.replace("spec.clientId still", f"{read.client_id} still")
                for each in refused.violations
            ]
            end_with((in_own_words(each, _OPTIONS) for each in named), REFUSED)

    return with_gateway(settings, work)


def _all(config_path: str | None) -> Everyone:
    return with_gateway(read_settings(config_path), lambda gateway: gateway.clients.all())


def _show(response: ProvisionResponse, *, as_json: bool) -> None:
    wire = response.to_wire()
    if as_json:
        click.echo(json.dumps(wire))
        return
    client = wire["client"]
    say(f"client       {client['clientId']} ({client['clientType']})")
    say(f"generation   {client['policyGeneration']}")
    say(f"hostnames    {', '.join(client['hostnamePatterns']) or 'none'}")
    say(f"addresses    {', '.join(client['allowedDnsRecordAddresses']) or 'none'}")
    say(f"capabilities {', '.join(client['capabilities']) or 'none'}")
    if wire["credential"] is not None:
        say(f"credential   {wire['credential']['credentialId']}")
    if wire["apiToken"] is not None:
        say(f"token        {wire['apiToken']}")
        say("The token is shown this once.", err=True)
    elif wire["credential"] is not None:
        say("Its token was shown when it was made; `clients rotate` makes another.", err=True)


def _view(client: Client) -> dict[str, Any]:
    return {
        "clientId": client.client_id,
        "clientType": client.client_type,
        "policyGeneration": client.policy_generation,
        "hostnamePatterns": list(client.hostname_patterns),
        "allowedDnsRecordAddresses": list(client.allowed_dns_record_addresses),
        "capabilities": sorted(client.capabilities),
        "credentials": [
            {
                "credentialId": each.credential_id,
                "createdAt": each.created_at_ms,
                "expiresAt": each.expires_at_ms,
            }
            for each in client.credentials
        ],
    }


def _with_uses(client: Client, last_uses: Mapping[CredentialId, int]) -> dict[str, Any]:
    view = _view(client)
    for each in view["credentials"]:
        each["lastUsedAt"] = last_uses.get(each["credentialId"])
    return view
