"""A client made, or given another policy: a form, what it would change, and then the change.

Responsible for the three steps, all of them forms at one URL: what was typed is judged and kept,
then shown as a difference with what is there, then carried out. Nothing is kept between the steps
but in the forms themselves. Must not: judge a policy (the contract does) or decide anything;
`access.provisioning` does, as for an admin's call and the command line. Called through `frame`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gateway.access.clients import ClientChanged, mark_of
from gateway.contract import ProvisionRequest
from gateway.http.page import policy_form
from gateway.http.page.client import known_client
from gateway.http.page.client_actions import token_page
from gateway.http.page.client_paths import client_id_of, client_path
from gateway.http.page.pattern_places import outside
from gateway.http.page.policy_form import Typed
from gateway.http.page.shapes import Page, Redirect, Shown, path_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.access.clients import Client
    from gateway.contract import ClientSpec
    from gateway.contract.names import ClientId
    from gateway.http.page.fields import Fields
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Pairs, Visit

FORM_TEMPLATE: Final = "client_form.html"
REVIEW_TEMPLATE: Final = "client_review.html"

DO: Final = "do"
EDIT: Final = "edit"
"""What the buttons of the second step ask for; anything else is the first step."""

_THERE_ALREADY: Final = "There is such a client already: its own page has its policy."
_NO_CHANGE: Final = "The policy is just that already: there is nothing to change."
_LOST_WORDS: Final = (
    "If the first sending has made the client, its token is live, and shown to nobody again: make"
    " another on the client's page, with an overlap of 0."
)
_CHANGED: Final = (
    "The client has changed since this form was shown, and nothing was done. The form has what was"
    " typed; its page shows what is there now."
)


class Policies:
    """The form of a new client, and of a client's policy."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def pages(self) -> tuple[Page, ...]:
        """Where they are. The first must be asked before what has a client's id in its place."""
        return (
            Page("/clients/new", FORM_TEMPLATE, self._show_new, self._act_new, _LOST_WORDS, _kept),
            Page(
                "/clients/{client}/policy",
                FORM_TEMPLATE,
                self._show_policy,
                self._act_policy,
                kept=_kept,
            ),
        )

    async def _show_new(self, _: Visit) -> Shown:
        return _form(None, Typed())

    async def _show_policy(self, visit: Visit) -> Shown:
        client = await known_client(self._parts, client_id_of(visit))
        return _form(client, policy_form.typed_as(client))

    async def _act_new(self, _: Visit, form: Fields) -> Shown | Redirect:
        return await self._step(form, _typed_in(form), None)

    async def _act_policy(self, visit: Visit, form: Fields) -> Shown | Redirect:
        client = await known_client(self._parts, client_id_of(visit))
        return await self._step(form, replace(_typed_in(form), client_id=client.client_id), client)

    async def _step(self, form: Fields, typed: Typed, client: Client | None) -> Shown | Redirect:
        step = form.raw("step")
        if step == EDIT:
            return _form(client, typed)
        found = policy_form.judged(typed)
        if found.spec is None:
            return _form(client, typed, faults=found.faults, status=422)
        if client is None and await self._is_there(found.spec.client_id):
            return _taken(typed)
        if client is not None and form.raw("seen") != mark_of(client):
            return _form(client, typed, remark=_CHANGED, status=409)
        if not policy_form.would_change(found.spec, client):
            return _form(client, typed, remark=_NO_CHANGE)
        if step == DO:
            try:
                return await self._do(found.spec, mark_of(client))
            except ClientChanged:
                return await self._outrun(typed, client)
        zone_names = [zone.name for zone in self._parts.zones.all]
        return _review(client, found.spec, outside(found.spec.hostname_patterns, zone_names))

    async def _outrun(self, typed: Typed, client: Client | None) -> Shown:
        """The form again: what it was about has changed, and is left so."""
        if client is None:
            return _taken(typed)
        client = await known_client(self._parts, client.client_id)
        return _form(client, typed, remark=_CHANGED, status=409)

    async def _do(self, spec: ClientSpec, as_seen: str) -> Shown | Redirect:
        request = ProvisionRequest(action="ensure", client_id=spec.client_id, spec=spec)
        response = await self._parts.provisioning.provision(request, as_seen=as_seen)
        if response.api_token is not None:
            return token_page(response, f"The client {spec.client_id} is made.")
        generation = response.client.policy_generation
        told = f"{spec.client_id} has this policy now, its generation {generation}."
        return Redirect(client_path(spec.client_id), told)

    async def _is_there(self, client_id: ClientId) -> bool:
        return await self._parts.clients.by_id(client_id) is not None


def _typed_in(form: Fields) -> Typed:
    """What was typed; browsers end the lines of a field with CR and LF."""
    return Typed(
        form.text("client_id"),
        form.text("client_type"),
        "\n".join(form.raw("patterns").splitlines()),
        "\n".join(form.raw("prefixes").splitlines()),
        policy_form.ticked(form.all("capabilities")),
    )


def _kept(form: Fields) -> Pairs:
    """What was typed, for the step that only shows it again."""
    typed = _typed_in(form)
    return (
        ("step", EDIT),
        ("client_id", typed.client_id),
        ("client_type", typed.client_type),
        ("patterns", typed.patterns),
        ("prefixes", typed.prefixes),
        *(("capabilities", each) for each in typed.capabilities),
    )


def _form(
    client: Client | None,
    typed: Typed,
    *,
    faults: Mapping[str, Sequence[str]] | None = None,
    remark: str | None = None,
    status: int = 200,
) -> Shown:
    """The first step, with what was typed; `remark` is about all of it."""
    context = {
        **_of_both_steps(client, typed),
        "faults": {name: " ".join(told) for name, told in (faults or {}).items()},
        "remark": remark,
    }
    return Shown(context, status, FORM_TEMPLATE)


def _taken(typed: Typed) -> Shown:
    """The form of a new client again: somebody else has the id."""
    return _form(None, typed, faults={"client_id": [_THERE_ALREADY]}, status=409)


def _review(client: Client | None, spec: ClientSpec, strays: Sequence[str]) -> Shown:
    """The second step: what is there and what would be; `strays` match nothing in any zone."""
    context = {
        **_of_both_steps(client, policy_form.typed_as(spec)),
        "details": policy_form.details(spec, client),
        "spec": spec,
        "strays": strays,
    }
    return Shown(context, template=REVIEW_TEMPLATE)


def _of_both_steps(client: Client | None, typed: Typed) -> dict[str, object]:
    return {
        "client": client,
        "typed": typed,
        "seen": mark_of(client),
        "back": path_to("clients") if client is None else client_path(client.client_id),
    }
