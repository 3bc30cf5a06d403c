"""What a client's call would be answered now, found out by the very code that answers calls.

Responsible for choosing who asks and for asking `Calls`, whose parts change neither Redis nor a
zone here. Of an issuance that the call would start, its first step is taken as well: which
authority it would go to. Must not decide anything itself, nor let a private key out of an answer.

Built by the composition root. Called by `gateway explain`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gateway.access.clients import Client, ClientUnreadable, Credential
from gateway.access.gate import ClientCaller, matching_patterns, may_hold
from gateway.certificates import machine
from gateway.certificates.agenda import issuance_of
from gateway.certificates.events import Due
from gateway.certificates.moves import Moment
from gateway.contract import (
    CAPABILITIES,
    CallError,
    Internal,
    Overloaded,
    Unauthorized,
    Unavailable,
)
from gateway.contract.names import AppId, ClientId, CredentialId
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.holdings.remembered import require_readable
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.documents import Contended, Holder, Unreadable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gateway.access.calls import Calls
    from gateway.access.clients import ClientStore
    from gateway.certificates.events import Event
    from gateway.certificates.steps import Steps
    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname
    from gateway.store.documents import Document, Documents
    from gateway.store.rehearsal import RehearsedStore

_T = TypeVar("_T")

ANY_APP: Final = AppId("explain")
ANY_CLIENT: Final = ClientId("explain")
RETRY_AFTER_MS: Final = 1_000
NO_TIME: Final = "No time was left to find out."
UNKNOWN: Final = "not-known"
"""The status where no time was left for the call."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """A client, and those of its patterns that match the hostname."""

    client: Client
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose call is foreseen, and why theirs. `client` is None when there is no such client.

    `is_real`: it is one of the gateway's clients, and not made up for the question.
    """

    client_id: ClientId
    app_id: AppId
    why: str
    client: Client | None = None
    is_real: bool = True


@dataclass(frozen=True, slots=True)
class StepUnknown:
    """No time was left for the first step of an issuance."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The answer's `status`, or the code of its error, or `UNKNOWN`, and what goes with it.

    `first`: what the first step of an issuance that the call starts would come to.
    """

    status: str
    message: str | None = None
    reason: str | None = None
    retry_after_ms: int | None = None
    first: Event | StepUnknown | None = None


def covering(clients: Sequence[Client], hostname: Hostname) -> tuple[Coverage, ...]:
    """The clients that may ask for a hostname, as their patterns are now."""
    return tuple(
        Coverage(client, matching_patterns(client, hostname))
        for client in clients
        if may_hold(client, hostname)
    )


def choose_asker(
    hostname: Hostname,
    holder: Holder | None,
    clients: Sequence[Client],
    client_id: ClientId | None = None,
    app_id: AppId | None = None,
) -> Asker:
    """The ownership that is named, else the one that holds the hostname, else one that may have it.

    Where no client's patterns match the hostname, it is one made up, which may do everything. The
    gateway itself makes no calls.
    """
    by_id = {client.client_id: client for client in clients}
    if client_id is not None:
        if app_id is None:
            is_holders = holder is not None and holder.client_id == client_id
            app_id = holder.app_id if is_holders and holder is not None else ANY_APP
        return Asker(client_id, app_id, "as named", by_id.get(client_id))
    if holder is not None and holder != THE_GATEWAY:
        client = by_id.get(holder.client_id)
        return Asker(holder.client_id, holder.app_id, "which holds the hostname", client)
    able = [client for client in clients if may_hold(client, hostname)]
    if able:
        # One whose tokens were revoked can't call at all: it stands here only for want of another.
        client = next((each for each in able if each.credentials), able[0])
        is_first = client is able[0]
        why = f"the first {'' if is_first else 'with a token '}whose patterns match"
        return Asker(client.client_id, ANY_APP, why, client)
    why = "made up: a client whose patterns match"
    return Asker(ANY_CLIENT, ANY_APP, why, _made_up(hostname), is_real=False)


class Foresight:
    """Asks calls, each in a task of its own if several at once.

    No method raises for what a call may be answered. A `deadline` is a loop time, when it is
    given up.
    """

    def __init__(
        self,
        calls: Calls,
        clients: ClientStore,
        documents: Documents,
        steps: Steps | None,
        store: RehearsedStore,
        now_ms: Callable[[], int],
    ) -> None:
        self._calls = calls
        self._clients = clients
        self._documents = documents
        self._steps = steps
        self._store = store
        self._now_ms = now_ms

    async def sync(
        self, asker: Asker, hostname: Hostname, record: DnsRecord, deadline: float
    ) -> Foreseen:
        """Of `syncGatewayClientDnsRecord` with this record."""
        self._store.begin_anew()
        parameters = {**_ownership(asker, hostname), "record": record.to_wire()}
        asked = self._ask(asker, "syncGatewayClientDnsRecord", parameters)
        asked = self._readably(hostname, asked)
        return await _foreseen(_by(deadline, asked))

    async def certificate(self, asker: Asker, hostname: Hostname, deadline: float) -> Foreseen:
        """Of `getGatewayClientCertificate`."""
        self._store.begin_anew()
        return await _foreseen(self._certificate(asker, hostname, deadline))

    async def _certificate(self, asker: Asker, hostname: Hostname, deadline: float) -> Foreseen:
        verdict, starts = await _by(deadline, self._verdict(asker, hostname))
        if starts is None:
            return verdict
        try:
            return replace(verdict, first=await _by(deadline, self._first_step(starts)))
        except TimeoutError:
            return replace(verdict, first=StepUnknown())

    async def _verdict(self, asker: Asker, hostname: Hostname) -> tuple[Foreseen, Document | None]:
        """With the document of an issuance that the call starts."""
        before = await self._documents.read(hostname)
        asked = self._ask(asker, "getGatewayClientCertificate", _ownership(asker, hostname))
        verdict = await self._readably(hostname, asked)
        after = await self._documents.read(hostname)
        is_new = before.issuance is None and after.issuance is not None
        return verdict, after if is_new else None

    async def _readably(self, hostname: Hostname, asked: Awaitable[Foreseen]) -> Foreseen:
        """The verdict. Raises `Unreadable` where a call ends on a part that it can't read."""
        try:
            return await asked
        except (KeyError, TypeError, ValueError):
            require_readable(await self._documents.read(hostname))
            raise

    async def _ask(self, asker: Asker, method: str, parameters: dict[str, object]) -> Foreseen:
        if not asker.is_real:
            await self._clients.change(asker.client_id, lambda _: asker.client)
        stored = await self._clients.by_id(asker.client_id)
        credential = None if stored is None else stored.client.newest_credential(self._now_ms())
        if stored is None or credential is None:
            raise Unauthorized
        caller = ClientCaller(stored.client, credential.credential_id)
        return _of_response(await self._calls.answer_to(caller, method, parameters))

    async def _first_step(self, document: Document) -> Event | None:
        issuance = issuance_of(document)
        if issuance is None or document.holder is None or self._steps is None:
            return None
        step = machine.advance(issuance, Due(), Moment(self._now_ms(), 0))
        if step.command is None:
            return None
        return await self._steps.carry_out(
            step.command, document.hostname, document.holder, step.issuance
        )


def _ownership(asker: Asker, hostname: Hostname) -> dict[str, object]:
    return {"ownership": {"appId": asker.app_id, "hostname": hostname}}


async def _by(deadline: float, asked: Awaitable[_T]) -> _T:
    """Raises: TimeoutError."""
    async with asyncio.timeout_at(deadline):
        return await asked


async def _foreseen(asked: Awaitable[Foreseen]) -> Foreseen:
    """The verdict, also where the answer would be an error, by the same names as on the wire."""
    try:
        return await asked
    except CallError as refusal:
        return Foreseen(
            refusal.code, refusal.text, retry_after_ms=refusal.data().get("retryAfterMs")
        )
    except TimeoutError:
        return Foreseen(UNKNOWN, NO_TIME)
    except StoreUnavailable as fault:
        return Foreseen(Unavailable.code, f"{fault}.", retry_after_ms=RETRY_AFTER_MS)
    except (ClientUnreadable, StoreRefused, Unreadable) as fault:
        return Foreseen(Internal.code, f"{fault}.")
    except Contended as fault:
        return Foreseen(Overloaded.code, f"{fault}.", retry_after_ms=RETRY_AFTER_MS)


def _of_response(response: dict[str, Any]) -> Foreseen:
    return Foreseen(
        response["status"],
        response.get("message"),
        response.get("reason"),
        response.get("retryAfterMs"),
    )


def _made_up(hostname: Hostname) -> Client:
    return Client(
        client_id=ANY_CLIENT,
        client_type="explain",
        hostname_patterns=(hostname,),
        allowed_dns_record_addresses=("0.0.0.0/0", "::/0"),
        capabilities=frozenset(CAPABILITIES),
        policy_generation=1,
        credentials=(Credential(CredentialId("explain"), "", 0),),
    )
