"""`gateway clients apply`: clients and claims as a file under version control says.

Responsible for showing what differs before anything is done, for carrying it out step by step
through the same provisioning that an admin's calls use, and for telling each new token once. What
differs is decided in `access.difference`. Called as a command of `gateway clients`.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

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
    from collections.abc import Awaitable, Callable, Sequence

    from gateway.access.clients import Client, ClientUnreadable
    from gateway.access.declared import Declared
    from gateway.access.difference import ClaimStep, ClientStep, Difference
    from gateway.access.tokens import NewToken
    from gateway.access.untold import Untold
    from gateway.cli.token_files import TokenFiles
    from gateway.config import Settings
    from gateway.contract.names import ClientId, Hostname
    from gateway.store.documents import Unreadable
    from gateway.wiring import Gateway

_Entry = TypeVar("_Entry")


@click.command("apply")
@config_option
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--prune", is_flag=True, help="Remove clients and claims that FILE does not name.")
@click.option(
    "--release-holdings",
    is_flag=True,
    help="With --prune: withdraw and release what removed clients hold.",
)
@click.option("--dry-run", is_flag=True, help="Show what differs; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
@click.option(
    "--tokens-dir",
    type=click.Path(path_type=Path),
    help="Write each new token into a file of its own in this folder instead of showing it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs; asks nothing.")
def command(
    config_path: str | None,
    file: Path,
    tokens_dir: Path | None,
    *,
    prune: bool,
    release_holdings: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Make clients and claims what the TOML file FILE says, and show what differs first.

    May be repeated: what is as it should be is left alone, and a policy that says the same keeps
    its generation. A run that was cut off is finished by the next one, which tells whose tokens
    were lost. A table that FILE leaves out ([[clients]] or [[claims]]) is not touched.
    """
    from gateway.cli.token_files import TokenFiles

    if not (dry_run or yes) and (as_json or not sys.stdin.isatty()):
        end_with("There is no terminal to ask on: --yes applies, --dry-run only shows.", WRONG)
    if release_holdings and not prune:
        end_with("--release-holdings needs --prune: nothing else removes a client.", WRONG)
    declared = _read(file)
    settings = read_settings(config_path)
    tokens = None if tokens_dir is None else TokenFiles(tokens_dir)
    applying = _Applying(declared, tokens, release=release_holdings, as_json=as_json)
    differs = carry_out(applying.look(settings, prune=prune, rehearses=dry_run))
    if dry_run or differs.is_empty:
        applying.foretell(differs)
        applying.report(differs)
        if applying.failures:
            sys.exit(REFUSED)
        return
    applying.require_feasible(differs)
    if not yes and not click.confirm("Apply this?", err=True):
        end_with("Nothing was changed.", REFUSED)
    if tokens is not None:
        _make_folder(tokens)
    try:
        carry_out(applying.apply(settings, differs))
    except asyncio.CancelledError:
        end_with("Interrupted: run it again for the rest.", REFUSED)
    if applying.failures:
        sys.exit(REFUSED)


def _read(file: Path) -> Declared:
    from gateway.access.declared import read_declared

    try:
        declared, faults = read_declared(file.read_text(encoding="utf-8"))
    except OSError as fault:
        end_with(f"{file} can't be read: {fault.strerror}.", WRONG)
    except UnicodeDecodeError:
        end_with(f"{file} can't be read: it is not UTF-8.", WRONG)
    if faults:
        end_with((f"{file}: {fault}" for fault in faults), WRONG)
    return declared


def _make_folder(tokens: TokenFiles) -> None:
    try:
        tokens.make_folder()
    except OSError as fault:
        end_with(
            [f"--tokens-dir can't be made: {fault.strerror}.", "Nothing was changed."], REFUSED
        )


class _Applying:
    """One run. `failures` says what could not be done, each in a sentence."""

    def __init__(
        self, declared: Declared, tokens: TokenFiles | None, *, release: bool, as_json: bool
    ) -> None:
        self.failures: list[str] = []
        self._declared = declared
        self._files = tokens
        self._release = release
        self._as_json = as_json
        self._lost: list[ClientId] = []
        self._tokens: dict[ClientId, NewToken] = {}
        self._written: dict[ClientId, str] = {}
        self._has_begun = False
        self._held_claims: dict[Hostname, ClientId] = {}

    async def look(self, settings: Settings, *, prune: bool, rehearses: bool) -> Difference:
        """Say what differs; nothing is changed, but that of tokens lost no more is forgotten."""
        from gateway.access.difference import difference, unnamed_clients
        from gateway.access.untold import Untold
        from gateway.cli import apply_words as words
        from gateway.wiring import open_gateway

        async with open_gateway(settings, rehearses=rehearses) as gateway:
            clients, unreadable = await gateway.clients.all()
            found = await gateway.claims.all()
            self._leave_out(unreadable, found.unreadable)
            claims = {claim.hostname: claim.note for claim in found.claims}
            held: dict[ClientId, list[Hostname]] = {}
            for client_id in unnamed_clients(self._declared, clients) if prune else []:
                held[client_id] = await _held_by(gateway, client_id)
            self._lost = await _lost(Untold(gateway.store), clients)
            differs = difference(self._declared, clients, claims, held, prune=prune)
            self._held_claims = await _held_claims(gateway, differs)
        if not self._as_json:
            for line in words.lines(differs):
                say(line)
        return differs

    def _leave_out(self, clients: Sequence[ClientUnreadable], claims: Sequence[Unreadable]) -> None:
        """Leave alone what is there and can't be read; the others are done."""
        declared = self._declared
        self.failures += [f"{fault}: it is left alone." for fault in (*clients, *claims)]
        ids, hostnames = {each.client_id for each in clients}, {each.hostname for each in claims}
        self._declared = replace(
            declared,
            clients=_without(declared.clients, lambda spec: spec.client_id in ids),
            claims=_without(declared.claims, lambda claim: claim.hostname in hostnames),
        )

    def foretell(self, differs: Difference) -> None:
        """Count as failures what a run without --dry-run would be refused."""
        removed = {step.client_id for step in differs.clients if step.spec is None}
        self.failures += self._infeasible(differs)
        self.failures += [
            f"{hostname} is held by {client_id}: the claim would be refused."
            for hostname, client_id in self._held_claims.items()
            if client_id not in removed
        ]

    def require_feasible(self, differs: Difference) -> None:
        """End the command where something would be refused half way."""
        faults = self._infeasible(differs)
        if faults:
            end_with([*faults, "Nothing was changed."], REFUSED)

    def _infeasible(self, differs: Difference) -> list[str]:
        from gateway.access.difference import Action
        from gateway.cli.apply_words import named

        faults = [
            f"Client {step.client_id} holds {named(step.held)}: --release-holdings withdraws and"
            " releases all of it."
            for step in differs.clients
            if step.held and not self._release
        ]
        if self._files is not None:
            added = [step.client_id for step in differs.clients if step.action is Action.ADD]
            taken = self._files.taken(added)
            faults += [f"{place} is there already: no token is overwritten." for place in taken]
        return faults

    async def apply(self, settings: Settings, differs: Difference) -> None:
        """Carry it out, and report."""
        from gateway.access.untold import Untold
        from gateway.wiring import open_gateway

        cancel_at_sigterm()
        async with open_gateway(settings) as gateway:
            untold = Untold(gateway.store)
            self._has_begun = True
            try:
                for step in differs.clients:
                    await self._try(step.client_id, self._client(gateway, untold, step))
                for claim in differs.claims:
                    await self._try(claim.hostname, _claim(gateway, claim))
            finally:
                # Whatever has ended it: nobody can learn a token later.
                self.report(differs)
                for token in self._tokens.values():
                    await untold.forget(token.credential_id)

    async def _try(self, subject: str, work: Awaitable[None]) -> None:
        """Do one step; what is refused is told at the end, and the others are done all the same."""
        from gateway.access.clients import ClientUnreadable
        from gateway.contract import CallError, RequestInvalid
        from gateway.holdings.claims import ClaimRefused
        from gateway.store.documents import Contended, Unreadable

        try:
            await work
        except RequestInvalid as refused:
            # In the words of the wire, which names the client there.
            told = "; ".join(refused.violations).replace("spec.clientId", "the client")
            told = told.replace("send releaseHoldings: true", "add --release-holdings")
            self.failures.append(f"{subject}: {told}.")
        except (CallError, ClaimRefused, ClientUnreadable, Contended, Unreadable) as refused:
            text = refused.text if isinstance(refused, CallError) else str(refused)
            self.failures.append(f"{subject}: {text.rstrip('.')}.")

    async def _client(self, gateway: Gateway, untold: Untold, step: ClientStep) -> None:
        from gateway.access.difference import Action
        from gateway.access.tokens import new_client_token
        from gateway.contract import ProvisionRequest

        provision = gateway.provisioning.provision
        if step.action is Action.REMOVE:
            if await gateway.clients.by_id(step.client_id) is not None:
                if await self._holds_more(gateway, step):
                    return
                await provision(
                    ProvisionRequest(
                        action="remove", client_id=step.client_id, release_holdings=self._release
                    )
                )
            self._lost = [client_id for client_id in self._lost if client_id != step.client_id]
            return
        ensure = ProvisionRequest(action="ensure", client_id=step.client_id, spec=step.spec)
        if step.action is Action.CHANGE:
            await provision(ensure)
            return
        token = new_client_token(step.client_id)
        await untold.note(token.credential_id, step.client_id)
        answer = await provision(ensure, first_token=token)
        if answer.api_token is None:
            await untold.forget(token.credential_id)  # somebody else has just made the client
        elif self._files is None or not self._write(self._files, token, step.client_id):
            self._tokens[step.client_id] = token
        else:
            await untold.forget(token.credential_id)

    async def _holds_more(self, gateway: Gateway, step: ClientStep) -> bool:
        """Whether a client to be removed holds what was not shown: that is not released unasked."""
        from gateway.cli.apply_words import named

        more = sorted({*await _held_by(gateway, step.client_id)} - {*step.held})
        if more and self._release:
            self.failures.append(
                f"{step.client_id} holds {named(more)} by now, which was not shown: it is left as"
                " it is. Run it again."
            )
        return bool(more and self._release)

    def _write(self, files: TokenFiles, token: NewToken, client_id: ClientId) -> bool:
        """Write a token into its file; False where that fails, so that it is shown at the end."""
        try:
            self._written[client_id] = str(files.write(client_id, token.token))
        except OSError as fault:
            self.failures.append(f"{client_id}: its token can't be written ({fault.strerror}).")
            return False
        return True

    def report(self, differs: Difference) -> None:
        """Tell the tokens, whose are lost, and what could not be done."""
        from gateway.cli import apply_words as words

        if self._as_json:
            shown = {
                "applied": self._has_begun,
                "changes": words.view(differs),
                "left": {"clients": differs.left_clients, "claims": differs.left_claims},
                "tokens": {name: token.token for name, token in self._tokens.items()},
                "tokenFiles": self._written,
                "lostTokens": self._lost,
                "failures": self.failures,
            }
            click.echo(json.dumps(shown))
            return
        for client_id, place in self._written.items():
            say(f"token of {client_id}: in {place}")
        for client_id, token in self._tokens.items():
            say(f"token of {client_id}: {token.token}")
        if self._tokens:
            say("Each token is shown this once.", err=True)
        for client_id in self._lost:
            say(
                f"The token of {client_id} was made by a run that was cut off, or is at work, and"
                f" may be lost: `gateway clients rotate {shlex.quote(client_id)}` makes another.",
                err=True,
            )
        for failure in self.failures:
            say(failure, err=True)
        sys.stdout.flush()


def _without(
    declared: tuple[_Entry, ...] | None, is_left: Callable[[_Entry], bool]
) -> tuple[_Entry, ...] | None:
    return None if declared is None else tuple(each for each in declared if not is_left(each))


async def _lost(untold: Untold, clients: Sequence[Client]) -> list[ClientId]:
    """Whose tokens earlier runs have lost; what is lost no more is forgotten."""
    from gateway.access.untold import judged

    found = judged(await untold.all(), clients)
    for credential_id in found.settled:
        await untold.forget(credential_id)
    return found.lost


async def _held_claims(gateway: Gateway, differs: Difference) -> dict[Hostname, ClientId]:
    """Of the hostnames to be claimed anew, those that are held, and by whom."""
    from gateway.access.difference import Action

    asked = [step.hostname for step in differs.claims if step.action is Action.ADD]
    clients = await gateway.documents.clients_of(asked)
    return {name: held for name, held in zip(asked, clients, strict=True) if held is not None}


async def _held_by(gateway: Gateway, client_id: ClientId) -> list[Hostname]:
    """The hostnames that a client holds, also those whose documents can't be read."""
    from gateway.store.documents import READ_AT_ONCE, Unreadable
    from gateway.store.holdings_index import HoldingsIndex

    entered = [name for name, _ in await HoldingsIndex(gateway.store).entries(client_id)]
    held = []
    for start in range(0, len(entered), READ_AT_ONCE):
        documents = await gateway.documents.read_many(entered[start : start + READ_AT_ONCE])
        held += [
            each.hostname
            for each in documents
            if isinstance(each, Unreadable) or (each.holder and each.holder.client_id == client_id)
        ]
    return sorted(held)


async def _claim(gateway: Gateway, step: ClaimStep) -> None:
    from gateway.access.difference import Action

    if step.action is Action.REMOVE:
        await gateway.claims.remove(step.hostname)
    else:
        await gateway.claims.add(step.hostname, step.note)
