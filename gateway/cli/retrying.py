"""`gateway issuances retry`: have certificates tried now, and see what comes of it.

Responsible for the command line, for which hostnames are meant, and for the JSON;
`holdings.operator_deeds` does it, `views.deed_words` has the words. Must not decide anything.
Called by `cli.issuances`, whose group it is in.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.certificates.states import State
from gateway.cli.session import (
    REFUSED,
    WRONG,
    cancel_at_sigterm,
    config_option,
    end_with,
    hostname_argument,
    read_settings,
    say,
    with_gateway,
)

if TYPE_CHECKING:
    from gateway.certificates.retrying import Retried
    from gateway.contract.names import Hostname
    from gateway.holdings.operator_deeds import OperatorDeeds, Watched
    from gateway.store.documents import Document, Unreadable
    from gateway.wiring import Gateway

WATCHED_SECONDS: Final = 10.0
LONGEST_WATCH_SECONDS: Final = 3600.0

TRIED_AT_MOST: Final = 1_000
"""How many hostnames one command tries."""

WATCHED_AT_ONCE: Final = 20
"""Each is read ten times a second."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one hostname: a retry and what was seen of it, or why it was refused."""

    hostname: Hostname
    refused: str | None = None
    retried: Retried | None = None
    seen: Watched | None = None

    @property
    def is_refusal(self) -> bool:
        """Whether no certificate comes of it now."""
        return self.seen is None or self.seen.standing.is_refusal


@click.command("retry")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--renew", "renews", is_flag=True, help="Renew a certificate before its time.")
@click.option(
    "--state",
    type=click.Choice([State.FAILED.value, State.WAITING.value]),
    help=f"All that are in this state, {TRIED_AT_MOST:,} at most, in place of HOSTNAMEs.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0, LONGEST_WATCH_SECONDS),
    default=WATCHED_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for what comes of it; 0 to not wait.",
)
@click.argument("hostnames", nargs=-1, metavar="[HOSTNAME]...")
def retry(
    config_path: str | None,
    hostnames: tuple[str, ...],
    state: str | None,
    wait_seconds: float,
    *,
    renews: bool,
    as_json: bool,
) -> None:
    """Have the issuance of each HOSTNAME that waits or failed tried now.

    So is a renewal that is due and rests. With --renew a certificate whose time has not come is
    renewed with a new key; the old one is served until then, and is not revoked. The gateway's own
    pauses end; the budget of the authority, and what it has said about when to come back, hold as
    always. A worker that runs does it. May be repeated.

    Exit code 1: nothing rests at one of them, or it waits or failed again.
    """
    if bool(hostnames) == (state is not None):
        end_with("Name HOSTNAMEs, or a --state.", WRONG)
    if len(hostnames) > TRIED_AT_MOST:
        end_with(f"{TRIED_AT_MOST:,} HOSTNAMEs at most are tried at once.", WRONG)
    named = [hostname_argument(each) for each in dict.fromkeys(hostnames)]
    settings = read_settings(config_path)
    tried: dict[Hostname, Tried] = {}

    async def work(gateway: Gateway) -> None:
        from gateway.interventions import build_deeds

        cancel_at_sigterm()
        chosen = named if state is None else await _in_state(gateway, state)
        run = _Run(build_deeds(gateway), tried, renews=renews, is_silent=as_json)
        await run.carry_out(chosen, wait_seconds)

    try:
        with_gateway(settings, work)
    except asyncio.CancelledError:
        end_with("Interrupted: what was begun goes on.", REFUSED)
    finally:
        # When it is interrupted too: what was begun goes on, whoever watches it.
        if as_json and tried:
            _print_json(list(tried.values()), is_one=state is None and len(named) == 1)
    if not tried:
        click.echo("[]") if as_json else say(f"Nothing is in the state {state}.", err=True)
    sys.exit(REFUSED if any(each.is_refusal for each in tried.values()) else 0)


def _print_json(tried: list[Tried], *, is_one: bool) -> None:
    views = [_view(each) for each in tried]
    if not is_one:
        click.echo(json.dumps(views))
    elif tried and tried[0].refused is None:
        click.echo(json.dumps(views[0]))


async def _in_state(gateway: Gateway, state: str) -> list[Hostname]:
    """The hostnames in this state, those that are wanted the longest first."""
    found: list[tuple[int, Hostname]] = []
    async for document in gateway.documents.all():
        since_ms = _since_ms(document, state)
        if since_ms is not None:
            found.append((since_ms, document.hostname))
    found.sort()
    if len(found) > TRIED_AT_MOST:
        more = len(found) - TRIED_AT_MOST
        say(f"{more:,} more are {state}: repeat the command after this one.", err=True)
    return [hostname for _, hostname in found[:TRIED_AT_MOST]]


def _since_ms(document: Document | Unreadable, state: str) -> int | None:
    """Since when an issuance is wanted; None where there is none in this state."""
    from gateway.certificates.agenda import issuance_of
    from gateway.store.documents import Unreadable

    if isinstance(document, Unreadable):
        return None
    try:
        issuance = issuance_of(document)
    except Unreadable:
        return None
    return issuance.since_ms if issuance is not None and issuance.state == state else None


class _Run:
    """One command: all are made due first, and watched together then. `tried` is kept up."""

    def __init__(
        self,
        deeds: OperatorDeeds,
        tried: dict[Hostname, Tried],
        *,
        renews: bool,
        is_silent: bool,
    ) -> None:
        self._deeds = deeds
        self._tried = tried
        self._renews = renews
        self._is_silent = is_silent
        self._room = asyncio.Semaphore(WATCHED_AT_ONCE)

    async def carry_out(self, hostnames: list[Hostname], wait_seconds: float) -> None:
        """Try each, and see what comes of it within that time."""
        for hostname in hostnames:
            self._tried[hostname] = await self._begin(hostname)
        end = asyncio.get_running_loop().time() + wait_seconds
        await asyncio.gather(*(self._watch(each, end) for each in self._tried.values()))

    async def _begin(self, hostname: Hostname) -> Tried:
        from gateway.holdings.operator_deeds import DeedRefused, RenewalNotDue
        from gateway.store.documents import Contended, Unreadable
        from gateway.views import deed_words as words

        try:
            retried = await self._deeds.retry(hostname, renews=self._renews)
        except (Contended, DeedRefused, Unreadable) as refusal:
            why = str(refusal).removesuffix(".") + "."
            if isinstance(refusal, RenewalNotDue):
                why += " With --renew it is renewed now."
            say(why, err=True)
            return Tried(hostname, refused=why)
        if not self._is_silent:
            say(words.retried_words(retried))
        return Tried(hostname, retried=retried)

    async def _watch(self, tried: Tried, end: float) -> None:
        from gateway.store.documents import Unreadable
        from gateway.views import deed_words as words

        if tried.retried is None:
            return
        async with self._room:
            left_seconds = max(0.0, end - asyncio.get_running_loop().time())
            try:
                seen = await self._deeds.watch(tried.retried, left_seconds)
            except Unreadable as fault:
                say(f"{fault}.", err=True)
                self._tried[tried.hostname] = Tried(tried.hostname, refused=f"{fault}.")
                return
        if not self._is_silent:
            say(words.watched_words(tried.retried, seen), err=seen.standing.is_refusal)
        self._tried[tried.hostname] = Tried(tried.hostname, retried=tried.retried, seen=seen)


def _view(tried: Tried) -> dict[str, Any]:
    retried, seen = tried.retried, tried.seen
    if retried is None:
        return {"hostname": tried.hostname, "refused": tried.refused}
    begun = {
        "hostname": retried.hostname,
        "clientId": retried.holder.client_id,
        "appId": retried.holder.app_id,
        "began": retried.began.value,
        "issuance": retried.issuance.issuance_id,
        "watched": seen is not None,
    }
    return begun if seen is None else {**begun, **_seen_view(seen)}


def _seen_view(seen: Watched) -> dict[str, Any]:
    issuance, certificate = seen.issuance, seen.certificate
    return {
        "standing": seen.standing.value,
        "state": issuance and issuance.state.value,
        "reason": issuance and issuance.reason and issuance.reason.value,
        "message": issuance and issuance.message,
        "dueAt": issuance and issuance.due_at_ms,
        "toldUntil": issuance and issuance.told_until_ms,
        "worker": seen.worker,
        "serial": certificate and certificate.serial,
        "validUntil": certificate and certificate.valid_until_ms,
    }
