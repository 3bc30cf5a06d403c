"""The gate: from a token to a caller with its live policy, from a holder to whether it may renew.

Nothing is cached.

Every refusal is the same answer after the same work: one read of Redis and one comparison in
constant time, also for a token of the wrong form.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gateway.access.tokens import parse_admin_token, parse_client_token
from gateway.contract import (
    Forbidden,
    HostnameForbidden,
    Unauthorized,
    compile_allowance,
    compile_patterns,
)
from gateway.holdings.own_certificate import THE_GATEWAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.access.clients import Client, ClientStore
    from gateway.access.last_use import LastUses
    from gateway.access.limits import CallRates
    from gateway.contract import AllowedAddresses, DnsRecord, HostnamePatterns
    from gateway.contract.names import CredentialId, Hostname
    from gateway.store.documents import Holder

_NO_FINGERPRINT: Final = "0" * 24
_NO_DIGEST: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Admin:
    """The operator."""


@dataclass(frozen=True, slots=True)
class ClientCaller:
    """A client, by the credential it showed, under the policy in force now."""

    client: Client
    credential_id: CredentialId

    def demand_capability(self, *names: str) -> None:
        """Raises `Forbidden`, naming the first capability that is missing."""
        for name in names:
            if name not in self.client.capabilities:
                raise Forbidden(name, f"The credential lacks the capability {name}.")

    def demand_hostname(self, hostname: Hostname) -> None:
        """Raises `HostnameForbidden` unless one of the client's patterns matches."""
        if not _patterns(self.client.hostname_patterns).allows(hostname):
            raise HostnameForbidden(hostname)

    def may_publish(self, record: DnsRecord) -> bool:
        """Whether the record's address lies in the client's allowance."""
        return _allowance(self.client.allowed_dns_record_addresses).allows(record)


Caller = Admin | ClientCaller


class Gate:
    """Authenticates callers. `admin_digest` is the SHA-256 of the admin token, in hex."""

    def __init__(
        self,
        clients: ClientStore,
        admin_digest: str | None,
        rates: CallRates,
        now_ms: Callable[[], int],
        last_uses: LastUses,
    ) -> None:
        self._rates = rates
        self._last_uses = last_uses
        self._clients = clients
        self._admin_digest = admin_digest or _NO_DIGEST
        self._now_ms = now_ms

    async def admit(self, token: object) -> Caller:
        """Who calls.

        Raises:
            Unauthorized: no, malformed, unknown, expired or revoked token.
            StoreUnavailable: nobody can tell.
        """
        claimed = parse_client_token(token)
        admin_digest = parse_admin_token(token)
        stored = await self._clients.by_fingerprint(
            _NO_FINGERPRINT if claimed is None else claimed.client_fingerprint
        )
        client = None if stored is None or claimed is None else stored.client
        expected = self._admin_digest if admin_digest is not None else _NO_DIGEST
        shown = admin_digest or (claimed.digest if claimed is not None else "")
        if client is not None and claimed is not None:
            expected = self._digest_of(client, claimed.credential_id)
        if not hmac.compare_digest(expected, shown):
            raise Unauthorized
        if client is not None and claimed is not None:
            self._last_uses.note(claimed.credential_id)
            return ClientCaller(client, claimed.credential_id)
        return Admin()

    async def count(self, caller: Caller) -> None:
        """Count a call of somebody who was admitted.

        Raises:
            Overloaded: the client has made as many calls as it may; says when there is one again.
            StoreUnavailable: nobody can tell.
        """
        if isinstance(caller, ClientCaller):
            await self._rates.take(caller.client.client_id)

    def _digest_of(self, client: Client, credential_id: CredentialId) -> str:
        now_ms = self._now_ms()
        for credential in client.credentials:
            if credential.credential_id == credential_id and credential.is_live_at(now_ms):
                return credential.digest
        return _NO_DIGEST


class RenewalPolicy:
    """Whether a holder may have its certificate renewed: by its client's live policy."""

    def __init__(self, clients: ClientStore, now_ms: Callable[[], int]) -> None:
        self._clients = clients
        self._now_ms = now_ms

    async def may_renew(self, holder: Holder, hostname: Hostname) -> bool:
        """Whether the client may still ask for it itself; the gateway's own always is."""
        if holder == THE_GATEWAY:
            return True
        stored = await self._clients.by_id(holder.client_id)
        if stored is None:
            return False
        client = stored.client
        has_credential = client.newest_credential(self._now_ms()) is not None
        may_request = "requestCertificates" in client.capabilities
        return has_credential and may_request and may_hold(client, hostname)


@lru_cache(maxsize=4096)
def _patterns(patterns: tuple[str, ...]) -> HostnamePatterns:
    return compile_patterns(patterns)


@lru_cache(maxsize=4096)
def _allowance(prefixes: tuple[str, ...]) -> AllowedAddresses:
    return compile_allowance(prefixes)


def may_hold(client: Client, hostname: Hostname) -> bool:
    """Whether one of a client's patterns matches a hostname."""
    return _patterns(client.hostname_patterns).allows(hostname)


def matching_patterns(client: Client, hostname: Hostname) -> tuple[str, ...]:
    """Those of a client's patterns that match a hostname."""
    return tuple(
        pattern for pattern in client.hostname_patterns if _patterns((pattern,)).allows(hostname)
    )
