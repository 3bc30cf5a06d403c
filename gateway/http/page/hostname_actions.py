"""What an operator does to one hostname: each action asked for on a page of its own, then done.

Responsible for the way from a form to the core and back: what the operator saw must be what is
there, what the core refuses is told in its own words, what came of it is told on the hostname's
page. Must not: decide anything; `proposals` says what would be done, `holdings.operator_deeds` does
it, as for the command line. Called through `frame`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gateway.certificates.retrying import Standing
from gateway.contract.hostnames import hostname_fault
from gateway.contract.names import Hostname
from gateway.holdings.as_seen import mark_of
from gateway.holdings.operator_deeds import DeedOutrun, DeedRefused
from gateway.holdings.remembered import remembered_record, require_readable
from gateway.http.page.agreement import left_by_withdrawal
from gateway.http.page.confirmations import TEMPLATE
from gateway.http.page.faults import PageFault
from gateway.http.page.proposals import LONGEST_NOTE, Act, owner_in, proposal
from gateway.http.page.shapes import Page, Redirect, path_to
from gateway.views.deed_words import (
    released_words,
    retried_words,
    watched_words,
    withdrawn_words,
)

if TYPE_CHECKING:
    from gateway.dns.owner import Owner
    from gateway.http.page.fields import Fields
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Shown, Visit
    from gateway.store.documents import Document

LOOK_SECONDS: Final = 2.0
"""How long the zone's servers are asked before a record is withdrawn."""

WATCHED_SECONDS: Final = 1.0
"""How long a retry is watched for what holds it: the hostname's page shows how it goes on."""


class HostnameActions:
    """The actions on a hostname."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def pages(self) -> tuple[Page, ...]:
        """Where they are: below the hostname's page."""
        return tuple(
            Page(
                f"/hostnames/{{hostname}}/{act}",
                TEMPLATE,
                partial(self._ask, act),
                partial(self._act, act),
            )
            for act in Act
        )

    async def _ask(self, act: Act, visit: Visit) -> Shown:
        document = await self._document(visit)
        asked = proposal(act, document, visit.now_ms)
        if act is Act.WITHDRAW and asked.refusal is None:
            asked = replace(asked, warning=await self._left_by_withdrawal(document))
        if act in {Act.RETRY, Act.RENEW} and asked.refusal is None:
            renews = act is Act.RENEW
            refusal = await self._parts.deeds.why_no_retry(document, renews=renews)
            asked = replace(asked, refusal=refusal)
        return asked.shown()

    async def _left_by_withdrawal(self, document: Document) -> str | None:
        record = remembered_record(document)
        if record is None:
            return None
        answers = await self._parts.answers_now.of(document.hostname, record, LOOK_SECONDS)
        return left_by_withdrawal(answers, record)

    async def _act(self, act: Act, visit: Visit, form: Fields) -> Shown | Redirect:
        document = await self._document(visit)
        asked = proposal(act, document, visit.now_ms)
        stale = asked.stale(form)
        if stale is not None:
            return stale
        if asked.refusal is not None:
            return asked.shown()
        note = form.text("note")
        if len(note) > LONGEST_NOTE:
            return asked.with_error("note", f"It has more than {LONGEST_NOTE} characters.", note)
        try:
            done = await self._do(act, document, note)
        except DeedRefused as refused:
            asked = proposal(act, await self._document(visit), visit.now_ms)
            is_outrun = isinstance(refused, DeedOutrun)
            return asked.outrun() if is_outrun else asked.refused(str(refused))
        return Redirect(path_to("hostnames", document.hostname), done)

    async def _do(self, act: Act, document: Document, note: str) -> str:
        """Do it to what was seen, and say what came of it."""
        deeds, hostname, seen = self._parts.deeds, document.hostname, mark_of(document)
        if act in {Act.RETRY, Act.RENEW}:
            return await self._retry(hostname, seen, renews=act is Act.RENEW)
        if act is Act.RELEASE:
            return released_words(await deeds.release(_owner(document), seen))
        if act is Act.WITHDRAW:
            done = await deeds.withdraw(_owner(document), seen)
            if not done.is_done:
                raise DeedRefused(withdrawn_words(done))
            return withdrawn_words(done)
        if act is Act.CLAIM:
            await deeds.claim(hostname, note, seen)
            if document.claim is not None:
                return f"The note of the claim on {hostname} is changed."
            return f"{hostname} is claimed."
        if not await deeds.unclaim(hostname, seen):
            raise DeedRefused(f"There is no claim on {hostname}.")
        return f"{hostname} is no longer claimed."

    async def _retry(self, hostname: Hostname, seen: str, *, renews: bool) -> str:
        retried = await self._parts.deeds.retry(hostname, renews=renews, as_seen=seen)
        watched = await self._parts.deeds.watch(retried, WATCHED_SECONDS)
        is_over = watched.standing.is_refusal or watched.standing is Standing.ISSUED
        return watched_words(retried, watched) if is_over else retried_words(retried)

    async def _document(self, visit: Visit) -> Document:
        """What is there now; raises `Unreadable` where no action could be told in words."""
        document = await self._parts.documents.read(hostname_of(visit))
        require_readable(document)
        return document


def hostname_of(visit: Visit) -> Hostname:
    """The hostname whose page is visited; raises PageFault (404) where that can be none."""
    text = visit.params["hostname"]
    fault = hostname_fault(text)
    if fault is None:
        return Hostname(text)
    meant = text.lower().removesuffix(".")
    link = None
    if hostname_fault(meant) is None:
        link = path_to("hostnames", meant), f"The page of {meant}"
    why = fault.removeprefix("must be a hostname, and ").replace("must be", "its hostname must be")
    raise PageFault(404, f"There is no such page: {why}.", link=link)


def _owner(document: Document) -> Owner:
    owner = owner_in(document)
    if owner is None:
        raise DeedRefused(f"Nobody holds {document.hostname}.")
    return owner
