"""`gateway accounts`: our accounts at the authorities, and their keys. Never shows key material."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

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
    from collections.abc import Awaitable, Callable

    from gateway.certificates.authority import Authority
    from gateway.certificates.orders import AccountView
    from gateway.config import Settings
    from gateway.wiring import Gateway

_name_argument = click.argument("name", required=False)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found of one account; `fault` and `remedy` are empty when all is well."""

    name: str
    directory_url: str
    view: AccountView | None
    fault: str = ""
    remedy: str = ""


@click.group("accounts")
def command() -> None:
    """Look after the accounts at the authorities.

    NAME is an authority's, as `list` shows it; it may be left out when there is one authority.
    """


@command.command("list")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def list_all(config_path: str | None, *, as_json: bool) -> None:
    """List the accounts as the authorities have them."""

    async def work(gateway: Gateway) -> list[_Found]:
        asked = (_find(each.authority) for each in gateway.authorities)
        return await asyncio.gather(*asked)

    found = with_gateway(read_settings(config_path), work)
    if as_json:
        click.echo(json.dumps([_as_json(each) for each in found]))
    else:
        for each in found:
            _show(each)
    if any(each.fault for each in found):
        raise SystemExit(REFUSED)


@command.command("rollover")
@config_option
@_name_argument
def rollover(config_path: str | None, name: str | None) -> None:
    """Give the account at NAME a new key.

    NAME may be left out when there is one authority. Gateways that run notice by themselves. May
    be repeated: it goes on with what was begun.
    """
    chosen, view = _with_authority(
        config_path, name, "account-rollover", lambda authority: authority.roll_key_over()
    )
    say(f"{chosen}: the account's key is now {view.key_type} {view.key_thumbprint}.")


@command.command("contact")
@config_option
@_name_argument
def contact(config_path: str | None, name: str | None) -> None:
    """Tell NAME the contacts of the configuration.

    NAME may be left out when there is one authority.
    """
    chosen, view = _with_authority(
        config_path, name, "account-contact", lambda authority: authority.update_contact()
    )
    say(f"{chosen}: the account's contacts are now: {_joined(view)}.")


@command.command("replace")
@config_option
@_name_argument
def replace(config_path: str | None, name: str | None) -> None:
    """Register another account at NAME in the place of one that it refuses.

    NAME may be left out when there is one authority.

    For an account that was deactivated or revoked, which cannot be revived. Issuances that are
    under way begin anew.
    """
    chosen, view = _with_authority(
        config_path, name, "account-replace", lambda authority: authority.replace_account()
    )
    say(f"{chosen}: the account is now {view.url}.")


async def _find(authority: Authority) -> _Found:
    from gateway.certificates.orders import AuthorityFault, FaultKind

    name, directory_url = authority.name, authority.directory_url
    replacing = f"gateway accounts replace {name}"
    try:
        described = await authority.describe_account()
    except AuthorityFault as fault:
        told = fault
    else:
        if described.status == "valid":
            return _Found(name, directory_url, described)
        told_of = f"the account is {described.status}"
        return _Found(name, directory_url, described, told_of, replacing)
    try:
        view = await authority.remembered_account()
    except AuthorityFault as fault:  # its key does not open here
        return _Found(name, directory_url, None, fault.detail)
    if told.kind is FaultKind.ACCOUNT_MISSING:
        return _Found(name, directory_url, view)
    remedy = replacing if told.kind is FaultKind.ACCOUNT_REFUSED else ""
    return _Found(name, directory_url, view, told.detail, remedy)


def _status(found: _Found) -> str:
    if found.view is not None and found.view.status is not None:
        return found.view.status
    return "unknown" if found.fault else "not registered"


def _show(found: _Found) -> None:
    view = found.view
    say(f"{found.name}  {found.directory_url}")
    say(f"  status   {_status(found)}")
    if view is not None:
        say(f"  account  {view.url or 'none'}")
        say(f"  key      {view.key_type} {view.key_thumbprint}")
        if view.status is not None:
            say(f"  contact  {_joined(view)}")
    if found.fault:
        say(f"  fault    {found.fault}")
    if found.remedy:
        say(f"  remedy   {found.remedy}")


def _joined(view: AccountView) -> str:
    return ", ".join(view.contact) or "none"


def _as_json(found: _Found) -> dict[str, Any]:
    view = found.view
    return {
        "name": found.name,
        "directoryUrl": found.directory_url,
        "status": _status(found),
        "accountUrl": view.url if view else None,
        "keyType": view.key_type if view else None,
        "keyThumbprint": view.key_thumbprint if view else None,
        "contact": list(view.contact) if view and view.status is not None else None,
        "ordersUrl": view.orders_url if view else None,
        "fault": found.fault or None,
    }


def _with_authority(
    config_path: str | None,
    name: str | None,
    action: str,
    work: Callable[[Authority], Awaitable[AccountView]],
) -> tuple[str, AccountView]:
    settings = read_settings(config_path)
    chosen = _chosen(settings, name)

    async def run(gateway: Gateway) -> AccountView | str:
        from gateway.certificates.orders import AuthorityFault
        from gateway.store.deeds import Action, Deed

        authority = next(
            each.authority for each in gateway.authorities if each.authority.name == chosen
        )
        try:
            view = await work(authority)
        except AuthorityFault as fault:
            why = f"at {chosen}: {fault.detail}"
            gateway.trail.note(Deed(Action(action), "refused", changed=False, detail=why))
            return fault.detail
        gateway.trail.note(Deed(Action(action), "done", detail=f"at {chosen}: {view.url}"))
        return view

    outcome = with_gateway(settings, run)
    if isinstance(outcome, str):
        end_with(f"{chosen}: {outcome.rstrip('.')}.", REFUSED)
    return chosen, outcome


def _chosen(settings: Settings, name: str | None) -> str:
    names = [acme.name for acme in settings.acme]
    if not names:
        end_with("No authority is configured: there is no [[acme]].", WRONG)
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        end_with(f"NAME must be one of {', '.join(names)}.", WRONG)
    if name not in names:
        end_with(f"NAME {name} is no authority; there is {', '.join(names)}.", WRONG)
    return name
