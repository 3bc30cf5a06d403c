"""`/operator/hostnames`: all by prefix, a client's by when it took them, or those in a state.

Responsible for what was asked for, for the page of names, and for what is said where nothing was
found. A list of a client by prefix is read from its index, `SCANNED` entries at a time; those of a
state are what the last census has listed, which is one page, or the claims. Must not:
change anything but a name that is listed without a document. Called through `frame`.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gateway.access.clients import ClientUnreadable
from gateway.certificates.attention import Concern
from gateway.contract.hostnames import hostname_fault, is_gateway_client_hostname
from gateway.contract.identifiers import client_id_fault
from gateway.contract.names import ClientId, Hostname
from gateway.http.page.absences import absences_of
from gateway.http.page.faults import PageFault
from gateway.http.page.listed import line_of
from gateway.http.page.pieces import piece
from gateway.http.page.shapes import Page, Shown, path_to
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.documents import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.certificates.census import Census
    from gateway.http.page.listed import Line
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit
    from gateway.store.documents import Document

SHOWN: Final = 50
SCANNED: Final = 5_000
"""Of a client's index, where a prefix is asked for as well."""

CLAIMED: Final = "claimed"
STATES: Final[Mapping[str, str]] = {
    Concern.FAILED.value: "its issuance failed",
    Concern.WAITING.value: "its issuance waits",
    Concern.NEAR_END.value: "ends and is not renewed",
    Concern.OWING.value: "owes a clean-up",
    Concern.UNREADABLE.value: "not readable",
    CLAIMED: "claimed by an operator",
}
"""What can be chosen, and its words."""

_SCANNED_AT_ONCE: Final = 1_000
_PREFIX: Final = re.compile(r"[a-z0-9.-]{0,253}")

_LONGEST_AFTER: Final = 1_024
"""What somebody has put into Redis may end a page, though it is no hostname."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked for. `after` is the hostname behind which the page begins.

    `state` is a `Concern`, as the last census has listed it, or `CLAIMED`.
    """

    prefix: str
    client_id: ClientId | None
    after: Hostname | None
    state: str | None = None

    @property
    def exact(self) -> Hostname | None:
        """The hostname that was written out, if it was."""
        text = self.prefix.removesuffix(".")
        return text if is_gateway_client_hostname(text) else None

    def url(self, after: Hostname | None) -> str:
        """The same, on the page behind that hostname, or on the first."""
        return path_to(
            "hostnames",
            prefix=self.prefix,
            client=self.client_id or "",
            state=self.state or "",
            after=(after or "")[:_LONGEST_AFTER],
        )


@dataclass(frozen=True, slots=True)
class NamesFound:
    """Names in the order to show them. `behind`: where to go on, None at the end.

    `is_cut`: more entries are to be looked through, whether there are such names or not.
    """

    names: Sequence[Hostname]
    behind: Hostname | None
    is_cut: bool = False


class Hostnames:
    """The list."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def page(self) -> Page:
        """Where it is."""
        return Page("/hostnames", "hostnames.html", self.show)

    async def show(self, visit: Visit) -> Shown:
        """A page of the list."""
        told = {name: visit.query.text(name) for name in ("prefix", "client", "state")}
        shown: dict[str, object] = {**told, "states": STATES, "fault": None}
        try:
            asked = asked_for(**told, after=visit.query.raw("after"))
        except ValueError as fault:
            return Shown({**shown, "fault": str(fault)}, 400)
        census = await piece(self._parts.census)
        found = await self._found(asked, census.value)
        lines = await self._lines(asked, found.names, visit.now_ms)
        is_there = any(line.hostname == asked.exact for line in lines)
        is_first = asked.after is None
        return Shown(
            shown
            | {
                "lines": lines,
                "is_cut": found.is_cut,
                "is_client_there": await self._is_client_there(asked.client_id),
                "documents": None if census.value is None else census.value.documents,
                "counted_ms": None if census.value is None else census.value.taken_at_ms,
                "next_url": None if found.behind is None else asked.url(found.behind),
                "first_url": None if is_first else asked.url(None),
                "scanned": SCANNED,
                "not_held": None if is_there or not is_first or asked.state else asked.exact,
            }
        )

    async def _is_client_there(self, client_id: ClientId | None) -> bool:
        if client_id is None:
            return True
        try:
            return await self._parts.clients.by_id(client_id) is not None
        except ClientUnreadable:
            return True

    async def _found(self, asked: Asked, census: Census | None) -> NamesFound:
        if asked.state == CLAIMED:
            return await self._claimed(asked)
        if asked.state is not None:
            listed = () if census is None else census.attention.get(asked.state, ())
            return NamesFound(
                [Hostname(each) for each in listed if each.startswith(asked.prefix)], None
            )
        if asked.client_id is not None:
            return _exact_first(await self._of_client(asked.client_id, asked), asked)
        page = await self._parts.names.page(asked.prefix, asked.after, SHOWN)
        if not page.names and asked.exact is not None and asked.after is None:
            # It was written with the dot of the root, with which no name is kept.
            page = await self._parts.names.page(asked.exact, None, SHOWN)
        return NamesFound(page.names, page.names[-1] if page.has_more else None)

    async def _claimed(self, asked: Asked) -> NamesFound:
        """By name, so that it goes on behind the last one though its claim was taken back."""
        if asked.client_id is not None:
            return NamesFound((), None)  # no client holds what is claimed
        claims = (await self._parts.claims.all()).claims
        behind = asked.after or ""
        names = [each.hostname for each in claims if each.hostname.startswith(asked.prefix)]
        names = [each for each in names if each > behind]
        return NamesFound(names[:SHOWN], names[SHOWN - 1] if len(names) > SHOWN else None)

    async def _of_client(self, client_id: ClientId, asked: Asked) -> NamesFound:
        names: list[Hostname] = []
        behind, looked_at = asked.after, 0
        many = _SCANNED_AT_ONCE if asked.prefix else SHOWN + 1
        while looked_at < SCANNED:
            entries = await self._parts.holdings.page(client_id, behind, many)
            if entries is None:
                raise PageFault(
                    409, f"{client_id} does not have {behind} any more: begin at the first page."
                )
            for name, _ in entries:
                if name.startswith(asked.prefix):
                    names.append(name)
                if len(names) > SHOWN:
                    return NamesFound(names[:SHOWN], names[SHOWN - 1])
            if len(entries) < many:
                return NamesFound(names, None)
            looked_at, behind = looked_at + many, entries[-1][0]
        return NamesFound(names, behind, is_cut=True)

    async def _lines(self, asked: Asked, names: Sequence[Hostname], now_ms: int) -> list[Line]:
        if not names:
            return []
        documents = await self._parts.documents.read_many(names)
        gone = [each.hostname for each in documents if not _is_there(each)]
        if gone and asked.client_id is None:
            # A Redis that takes no writes now is no reason to show nothing.
            with contextlib.suppress(StoreUnavailable, StoreRefused):
                await self._parts.names.put_right(gone)
        absences = await absences_of(self._parts.clients, documents, now_ms)
        return [
            line_of(each, now_ms, absences)
            for each in documents
            if _is_listed(each, asked.client_id)
        ]


def asked_for(prefix: str, client: str, after: str, state: str = "") -> Asked:
    """What a query asks for; raises ValueError with a sentence where it means nothing."""
    if state and state not in STATES:
        raise ValueError(f"There is no such state: it is {' or '.join(STATES)}.")
    wanted = prefix.lower() if prefix.isascii() else prefix
    if not _PREFIX.fullmatch(wanted):
        raise ValueError(_prefix_fault(wanted))
    fault = client_id_fault(client) if client else None
    if fault is not None:
        raise ValueError(f"A client's id {fault}.")
    if not after.isascii() or len(after) > _LONGEST_AFTER:
        raise ValueError("The page that was asked for is none of this list: begin at the first.")
    behind = Hostname(after) if after else None
    return Asked(wanted, ClientId(client) if client else None, behind, state or None)


def _exact_first(found: NamesFound, asked: Asked) -> NamesFound:
    """A hostname that was written out is looked at itself, wherever it stands in the index."""
    if asked.exact is None:
        return found
    others = [name for name in found.names if name != asked.exact]
    return replace(found, names=others if asked.after else [asked.exact, *others])


def _prefix_fault(prefix: str) -> str:
    fault = hostname_fault(prefix) or ""
    if fault.startswith("must be spelled"):
        return f"A hostname here {fault}."
    return (
        "A hostname begins with a-z, 0-9, - and dots only, and has 253 characters at most;"
        " other letters are written in the form that begins with xn--."
    )


def _is_there(document: Document | Unreadable) -> bool:
    return isinstance(document, Unreadable) or bool(document.version)


def _is_listed(document: Document | Unreadable, client_id: ClientId | None) -> bool:
    """Whether it is shown: a client's index may have a hostname too many."""
    if isinstance(document, Unreadable) or client_id is None:
        return _is_there(document)
    return document.holder is not None and document.holder.client_id == client_id
