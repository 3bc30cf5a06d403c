"""`provisionGatewayClientCredential`: creating clients, setting policy, and ending both.

Called by `access.calls` for an admin's calls and by the command line, which is the same work by
another door.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from gateway.access import audit, clients as rules
from gateway.access.tokens import new_client_token
from gateway.contract import (
    ClientView,
    CredentialView,
    ProvisionResponse,
    RequestInvalid,
    Unavailable,
)
from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import plain
from gateway.dns.owner import Owner
from gateway.store.documents import READ_AT_ONCE, Unreadable
from gateway.store.trail import NO_TRAIL

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.access.clients import Client, ClientStore, Credential
    from gateway.access.tokens import NewToken
    from gateway.contract import ProvisionRequest
    from gateway.contract.names import ClientId, Hostname
    from gateway.holdings.certificates import Certificates
    from gateway.holdings.records import Records
    from gateway.store.documents import Documents
    from gateway.store.holdings_index import HoldingsIndex
    from gateway.store.trail import Trail

RELEASE_BOUND_SECONDS: Final = 7.0
"""What is left is counted after that, within the time of the same call."""

RELEASE_AT_ONCE: Final = 16
ADMISSION_MS: Final = 15_000
"""An index entry this young may belong to a call under way, which takes 10 seconds at most."""

_log = structlog.get_logger(__name__)


class Provisioning:
    """Carries out provisioning. Every method raises `StoreUnavailable` and `Contended`."""

    def __init__(
        self,
        clients: ClientStore,
        index: HoldingsIndex,
        documents: Documents,
        records: Records,
        certificates: Certificates,
        now_ms: Callable[[], int],
        trail: Trail = NO_TRAIL,
    ) -> None:
        self._trail = trail
        self._clients = clients
        self._index = index
        self._documents = documents
        self._records = records
        self._certificates = certificates
        self._now_ms = now_ms

    async def provision(
        self,
        request: ProvisionRequest,
        *,
        first_token: NewToken | None = None,
        as_seen: str | None = None,
    ) -> ProvisionResponse:
        """Carry out one request.

        `first_token` is what a client gets that `ensure` makes, where the caller must know of it
        beforehand. `as_seen` is the client's mark (`clients.mark_of`) where it was decided by what
        somebody saw: it is judged in the step that changes the client. None: whatever is there.

        Raises:
            RequestInvalid: no such client, or it still holds hostnames.
            ClientChanged: it has another mark. Of a removal that releases, some may be released.
            Unavailable: the client was just being used; ask again.
        """
        try:
            return await self._carry_out(request, first_token, as_seen)
        except RequestInvalid as refused:
            client_id = request.client_id
            why = audit.of_refused_provisioning(request.action, client_id, refused.text)
            self._trail.note(why)
            raise

    async def _carry_out(
        self, request: ProvisionRequest, first_token: NewToken | None, as_seen: str | None
    ) -> ProvisionResponse:
        if request.action == "ensure":
            return await self._ensure(request, first_token, as_seen)
        if request.action == "rotate":
            return await self._rotate(request, as_seen)
        if request.action == "revoke":
            return self._answer(await self._without_credentials(request.client_id, as_seen))
        return await self._remove(request.client_id, request.release_holdings, as_seen)

    async def _ensure(
        self, request: ProvisionRequest, first_token: NewToken | None, as_seen: str | None
    ) -> ProvisionResponse:
        spec = request.spec
        if spec is None:
            raise RequestInvalid(["spec is missing: ensure takes the whole policy"])
        token = first_token or new_client_token(spec.client_id)

        def decide(client: Client | None) -> Client:
            if client is None:
                return rules.created(spec, token, self._now_ms())
            return rules.with_policy(client, spec)

        return self._answer(await self._change("ensure", spec.client_id, decide, as_seen), token)

    async def _rotate(self, request: ProvisionRequest, as_seen: str | None) -> ProvisionResponse:
        token = new_client_token(request.client_id)

        def decide(client: Client | None) -> Client:
            known = _known(client, request.client_id)
            return rules.rotated(known, token, request.overlap_seconds, self._now_ms())

        changed = await self._change("rotate", request.client_id, decide, as_seen)
        return self._answer(changed, token)

    async def _remove(
        self, client_id: ClientId, release: bool, as_seen: str | None
    ) -> ProvisionResponse:
        stored = await self._clients.by_id(client_id)
        client = _known(None if stored is None else stored.client, client_id)
        rules.demand_as_seen(client_id, client, as_seen)
        if release:
            client = await self._without_credentials(client_id, as_seen)
            await self._release_all(client_id)
        held = await self._held(client_id)
        if held:
            remedy = (
                "not all could be withdrawn yet, so ask again; what lies in a zone that is"
                " configured no more, `gateway holdings forget` gives up"
                if release
                else "send releaseHoldings: true to withdraw and release all of it"
            )
            raise RequestInvalid(
                [f"spec.clientId still holds hostnames ({len(held)}, such as {held[0]}): {remedy}"]
            )
        last_seen = None if as_seen is None else rules.mark_of(client)
        if not await self._clients.drop(client_id, last_seen):
            raise Unavailable(1_000)
        _log.info("client removed", client_id=_shown(client_id))
        self._trail.note(audit.of_removal(client))
        return ProvisionResponse(client=_view(rules.revoked(client)))

    async def _without_credentials(self, client_id: ClientId, as_seen: str | None) -> Client:
        def decide(client: Client | None) -> Client:
            return rules.revoked(_known(client, client_id))

        return await self._change("revoke", client_id, decide, as_seen)

    async def _change(
        self,
        action: str,
        client_id: ClientId,
        decide: Callable[[Client | None], Client],
        as_seen: str | None,
    ) -> Client:
        seen: list[Client | None] = []

        def decide_on(client: Client | None) -> Client:
            rules.demand_as_seen(client_id, client, as_seen)
            seen.append(client)
            return decide(client)

        client = _known(await self._clients.change(client_id, decide_on), client_id)
        if client != seen[-1]:
            self._trail.note(audit.of_provisioning(action, seen[-1], client))
        return client

    def _answer(self, client: Client, token: NewToken | None = None) -> ProvisionResponse:
        _log.info(
            "client provisioned",
            client_id=_shown(client.client_id),
            policy_generation=client.policy_generation,
        )
        credential = client.newest_credential(self._now_ms())
        view = None if credential is None else _credential_view(credential)
        is_new = (
            token is not None and view is not None and view.credential_id == token.credential_id
        )
        return ProvisionResponse(
            client=_view(client),
            credential=view,
            api_token=token.token if is_new and token is not None else None,
        )

    async def _held(self, client_id: ClientId) -> list[Hostname]:
        """What a client holds, or may be taking hold of right now."""
        held = []
        now_ms = self._now_ms()
        entries = await self._index.entries(client_id)
        for start in range(0, len(entries), READ_AT_ONCE):
            some = entries[start : start + READ_AT_ONCE]
            documents = await self._documents.read_many([hostname for hostname, _ in some])
            for (hostname, entered_at_ms), document in zip(some, documents, strict=True):
                if isinstance(document, Unreadable):
                    raise document
                holder = document.holder
                is_held = holder is not None and holder.client_id == client_id
                if is_held or entered_at_ms > now_ms - ADMISSION_MS:
                    held.append(hostname)
                else:
                    await self._index.leave(client_id, hostname, entered_at_ms)
        return held

    async def _release_all(self, client_id: ClientId) -> None:
        """Release what the client holds, as much of it as goes in the time of one call."""
        waiting = [hostname for hostname, _ in await self._index.entries(client_id)]

        async def release_some() -> None:
            while waiting:
                await self._release(client_id, waiting.pop())

        tasks = [asyncio.create_task(release_some()) for _ in range(RELEASE_AT_ONCE)]
        try:
            async with asyncio.timeout(RELEASE_BOUND_SECONDS):
                await asyncio.gather(*tasks)
        except TimeoutError:
            _log.info("not all released yet", client_id=_shown(client_id), left=len(waiting))
        finally:
            waiting.clear()
            for task in tasks:
                task.cancel()

    async def _release(self, client_id: ClientId, hostname: Hostname) -> None:
        holder = (await self._documents.read(hostname)).holder
        if holder is not None and holder.client_id == client_id:
            owner = Owner(holder.client_id, holder.app_id, hostname)
            await self._certificates.release(owner)
            await self._records.withdraw(owner)


def _known(client: Client | None, client_id: ClientId) -> Client:
    if client is None:
        raise RequestInvalid([f"spec.clientId {_shown(client_id)} names no client"])
    return client


def _shown(client_id: ClientId) -> str:
    """A client's id for logs: it may be any word, and has been a token by mistake."""
    return plain(client_id, BOUNDS.max_app_id_characters)


def _view(client: Client) -> ClientView:
    return ClientView(
        client_id=client.client_id,
        client_type=client.client_type,
        policy_generation=client.policy_generation,
        hostname_patterns=client.hostname_patterns,
        allowed_dns_record_addresses=client.allowed_dns_record_addresses,
        capabilities=client.capabilities,
    )


def _credential_view(credential: Credential) -> CredentialView:
    return CredentialView(
        credential_id=credential.credential_id,
        created_at=credential.created_at_ms,
        expires_at=credential.expires_at_ms,
    )
