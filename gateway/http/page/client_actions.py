"""What an operator does to a client's credentials, and to the client: rotate, revoke, remove.

Responsible for the way from a form to provisioning and back. What can't be taken back asks for the
client's id to be typed. A token is in the one answer that tells of its making, and nowhere else:
the form is good once, so loading that page again makes no second one. Must not: decide anything;
`access.provisioning` does it, as for an admin's call and the command line. Called through `frame`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gateway.access.clients import ClientChanged, mark_of
from gateway.contract import ProvisionRequest, RequestInvalid, read_request
from gateway.http.page.client import known_client
from gateway.http.page.client_paths import client_id_of, client_path
from gateway.http.page.confirmations import TEMPLATE, Choice, Confirmation, Field
from gateway.http.page.shapes import Page, Redirect, Shown, path_to
from gateway.views.times import time_words

if TYPE_CHECKING:
    from gateway.access.clients import Client
    from gateway.contract import ProvisionResponse
    from gateway.http.page.fields import Fields
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit

OVERLAP_SECONDS: Final = 3_600
"""What the form of a rotation proposes: time to bring the new token to where it is used."""

TOKEN_TEMPLATE: Final = "token.html"  # noqa: S105 (a file's name)

_TYPED: Final = "typed"
_OVERLAP: Final = "overlap_seconds"
_RELEASE: Final = "release_holdings"
_NUMBER: Final = re.compile(r"[0-9]{1,11}")

_LOST_WORDS: Final = (
    "If the first sending has made a token, it is live, and shown to nobody again: make another,"
    " and the lost one ends with the overlap of that."
)
_NOT_REMOVED: Final = (
    "It has changed since this page was shown, and was not removed. What is there now is below."
)


class ClientActions:
    """The actions on a client."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def pages(self) -> tuple[Page, ...]:
        """Where they are: below the client's page."""
        return (
            Page("/clients/{client}/rotate", TEMPLATE, self._ask_rotate, self._rotate, _LOST_WORDS),
            Page("/clients/{client}/revoke", TEMPLATE, self._ask_revoke, self._revoke),
            Page("/clients/{client}/remove", TEMPLATE, self._ask_remove, self._remove),
        )

    async def _ask_rotate(self, visit: Visit) -> Shown:
        return rotation(await self._client(visit), visit.now_ms).shown()

    async def _rotate(self, visit: Visit, form: Fields) -> Shown | Redirect:
        client = await self._client(visit)
        asked = rotation(client, visit.now_ms)
        stale = asked.stale(form)
        if stale is not None:
            return stale
        typed = form.text(_OVERLAP)
        wire = {
            "action": "rotate",
            "spec": {"clientId": client.client_id},
            "overlapSeconds": int(typed) if _NUMBER.fullmatch(typed) else typed,
        }
        try:
            request = read_request(ProvisionRequest, wire)
        except RequestInvalid as invalid:
            error = invalid.violations[0].removeprefix("overlapSeconds ")
            return asked.with_error(_OVERLAP, f"It {error}.", typed)
        try:
            response = await self._provision(request, client)
        except ClientChanged:
            return rotation(await self._client(visit), visit.now_ms).outrun()
        return token_page(response, former_words(client, request.overlap_seconds, visit.now_ms))

    async def _ask_revoke(self, visit: Visit) -> Shown:
        return revocation(await self._client(visit), visit.now_ms).shown()

    async def _revoke(self, visit: Visit, form: Fields) -> Shown | Redirect:
        client = await self._client(visit)
        asked = revocation(client, visit.now_ms)
        refused = _unconfirmed(asked, client, form)
        if refused is not None:
            return refused
        request = ProvisionRequest(action="revoke", client_id=client.client_id)
        try:
            await self._provision(request, client)
        except ClientChanged:
            return revocation(await self._client(visit), visit.now_ms).outrun()
        told = f"Every token of {client.client_id} is refused from now on."
        return Redirect(client_path(client.client_id), told)

    async def _ask_remove(self, visit: Visit) -> Shown:
        return (await self._removal(visit)).shown()

    async def _remove(self, visit: Visit, form: Fields) -> Shown | Redirect:
        client = await self._client(visit)
        held = await self._held(client)
        refused = _unconfirmed(removal(client, held, visit.now_ms), client, form)
        if refused is not None:
            return refused
        releases = _RELEASE in form
        request = ProvisionRequest(
            action="remove", client_id=client.client_id, release_holdings=releases
        )
        try:
            await self._provision(request, client)
        except ClientChanged:
            # While it released what was held, too: then that much was done.
            return (await self._removal(visit)).refused(_NOT_REMOVED)
        except RequestInvalid as refusal:
            # By now it may have no credentials, and hold less: what stands there is told anew.
            why = in_page_words(refusal.violations[0], client.client_id)
            told = so_far_words(held, await self._held(client)) + why
            return (await self._removal(visit)).keeping(form).refused(told)
        return Redirect(path_to("clients"), f"{client.client_id} is removed.")

    async def _provision(self, request: ProvisionRequest, seen: Client) -> ProvisionResponse:
        """Carry it out on the client as it was seen; raises `ClientChanged` on any other."""
        return await self._parts.provisioning.provision(request, as_seen=mark_of(seen))

    async def _removal(self, visit: Visit) -> Confirmation:
        client = await self._client(visit)
        return removal(client, await self._held(client), visit.now_ms)

    async def _held(self, client: Client) -> int:
        (held,) = await self._parts.holdings.counts([client.client_id])
        return held

    async def _client(self, visit: Visit) -> Client:
        return await known_client(self._parts, client_id_of(visit))


def rotation(client: Client, now_ms: int) -> Confirmation:
    """What a rotation would come to. Pure."""
    return Confirmation(
        title=f"Make a new token for {client.client_id}",
        button="Make a new token",
        would=(
            "A new token is made, and shown once, on the next page.",
            "The present tokens are refused once the overlap is over; with 0 from the next call"
            " on. None of them lives longer than it did.",
        ),
        facts=_facts(client, now_ms),
        seen=mark_of(client),
        back=client_path(client.client_id),
        fields=(
            Field(
                _OVERLAP,
                "Overlap in seconds",
                str(OVERLAP_SECONDS),
                "How long the present tokens live on; 30 days at most.",
                kind="number",
                is_required=True,
            ),
        ),
    )


def revocation(client: Client, now_ms: int) -> Confirmation:
    """What revoking a client would come to. Pure."""
    name = client.client_id
    is_live = any(each.is_live_at(now_ms) for each in client.credentials)
    return Confirmation(
        title=f"Revoke {name}",
        button="Revoke every token",
        would=(
            "Every token of the client is refused from its next call on, at every process.",
            "What it holds stays: its records stay in the zones, and its certificates are not"
            " renewed.",
            "A rotation makes a token anew.",
        ),
        facts=_facts(client, now_ms),
        seen=mark_of(client),
        back=client_path(name),
        refusal=None if is_live else f"{name} has no live token that could be revoked.",
        fields=(_typed_id(client),),
        is_grave=True,
    )


def removal(client: Client, held: int, now_ms: int) -> Confirmation:
    """What removing a client would come to; `held` is how many hostnames it holds. Pure."""
    choice = None
    if held:
        choice = Choice(
            _RELEASE,
            "Withdraw and release all it holds",
            "Its records are taken out of the zones, its certificates and their keys deleted. What"
            " does not go within some seconds is told, and the rest goes when this is sent again.",
        )
    stays = f"It holds {_hostnames(held)}: it is removed only if all of it is released."
    return Confirmation(
        title=f"Remove {client.client_id}",
        button="Remove the client",
        would=(
            "The client, its policy and its tokens are deleted; its id is free for another.",
            stays if held else "It holds no hostname.",
        ),
        facts=(*_facts(client, now_ms), ("Holds", _hostnames(held))),
        seen=f"{mark_of(client)}-{held}",
        back=client_path(client.client_id),
        fields=(_typed_id(client),),
        choice=choice,
        is_grave=True,
    )


def token_page(response: ProvisionResponse, told: str) -> Shown:
    """The page that has the token of a credential that was just made; `told` is what was done."""
    return Shown({"response": response, "told": told}, template=TOKEN_TEMPLATE)


def former_words(client: Client, overlap_seconds: int, now_ms: int) -> str:
    """What becomes of the tokens that a client had before it got another at `now_ms`."""
    live = [each for each in client.credentials if each.is_live_at(now_ms)]
    made = f"{client.client_id} has a new token."
    if not live:
        return f"{made} It had no other that was live."
    which = "The former one is" if len(live) == 1 else f"The {len(live)} former ones are"
    if not overlap_seconds:
        return f"{made} {which} refused from now on."
    end_ms = now_ms + overlap_seconds * 1000
    # None of them lives longer than it did.
    last_ms = max(min(end_ms, each.expires_at_ms or end_ms) for each in live)
    return f"{made} {which} accepted until {time_words(last_ms)} at the latest."


def in_page_words(violation: str, client_id: str) -> str:
    """A violation of the request's schema in the words of the page."""
    told = violation.replace("spec.clientId still", f"{client_id} still")
    told = told.replace("spec.clientId", "The client's id")
    return told.replace("send releaseHoldings: true to", "tick the box to") + "."


def so_far_words(held: int, left: int) -> str:
    """What came of a removal that has not released all; empty where it has released nothing."""
    if left >= held:
        return ""
    return f"Released so far: {_hostnames(held - left)}; to go: {left:,}. "


def _unconfirmed(asked: Confirmation, client: Client, form: Fields) -> Shown | None:
    """The question again, unless what was seen is there still and the id was typed."""
    stale = asked.stale(form)
    if stale is not None:
        return stale
    if asked.refusal is not None:
        return asked.shown()
    typed = form.text(_TYPED)
    if typed != client.client_id:
        error = "This is not the client's id; nothing was done."
        return asked.keeping(form).with_error(_TYPED, error, typed)
    return None


def _typed_id(client: Client) -> Field:
    hint = f"Type {client.client_id} to confirm."
    return Field(_TYPED, "The client's id", hint=hint, is_required=True)


def _facts(client: Client, now_ms: int) -> tuple[tuple[str, str], ...]:
    live = sum(each.is_live_at(now_ms) for each in client.credentials)
    return (
        ("Type", client.client_type),
        ("Hostname patterns", ", ".join(client.hostname_patterns) or "none"),
        ("Live tokens", str(live)),
        ("Policy generation", str(client.policy_generation)),
    )


def _hostnames(count: int) -> str:
    return {0: "no hostname", 1: "1 hostname"}.get(count, f"{count:,} hostnames")
