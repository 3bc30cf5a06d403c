"""The gate: from a token to a caller with its live policy, from a holder to whether it may renew.

Redis is asked for each call. What was made of a client's stored text is kept with the digest of the
token that it let in, and Redis is asked whether the text is still that one, in the step that counts
the call: one wait for Redis instead of two, and a token that is in order is not taken apart again.

Every refusal is the same answer after the same work, also for a token of the wrong form: one read
of Redis and one comparison in constant time (and the question before it, of a token that was good).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.access.clients import REMEMBERED
from gateway.access.limits import ClientSwapped
from gateway.access.tokens import parse_admin_token, parse_client_token
from gateway.contract import (
    Forbidden,
    HostnameForbidden,
    Unauthorized,
    compile_allowance,
    compile_patterns,
)
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.store.connection import StoreRefused
from gateway.store.kept import Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.access.clients import Client, ClientStore, Credential
    from gateway.access.last_use import LastUses
    from gateway.access.limits import CallRates, Seen
    from gateway.contract import AllowedAddresses, DnsRecord, HostnamePatterns, Overloaded
    from gateway.contract.names import CredentialId, Hostname
    from gateway.store.documents import Holder

_NO_FINGERPRINT: Final = "0" * 24
_NO_DIGEST: Final = "0" * 64

_LONGEST_KNOWN: Final = 4_096
"""A stored text of more characters is read for each call: it would be sent for each call."""


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


class Admitted(NamedTuple):
    """Who was let in, and whether the call was counted: with a refusal where there are too many."""

    caller: Caller
    is_counted: bool = False
    refusal: Overloaded | None = None


class _Known(NamedTuple):
    """A token that was let in: for whom, by which credential, and what Redis had of the client."""

    caller: ClientCaller
    credential: Credential
    seen: Seen


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
        self._known: Kept[str, _Known] = Kept(REMEMBERED)

    def knows(self, digest: str | None) -> bool:
        """Whether a token was let in before, by its digest: likely to be let in again."""
        return digest in self._known

    async def admit(self, token: object, digest: str | None = None) -> Admitted:
        """Who calls; of a `digest`, where there is one, that is the token's.

        Raises:
            Unauthorized: no, malformed, unknown, expired or revoked token.
            StoreUnavailable: nobody can tell.
        """
        known = None if digest is None else self._known.get(digest)
        now_ms = self._now_ms()
        if known is not None and known.credential.is_live_at(now_ms):
            try:
                refusal = await self._rates.take_if(known.seen, now_ms)
            except (ClientSwapped, StoreRefused):
                pass  # as if it had never been here
            else:
                self._last_uses.note(known.caller.credential_id)
                return Admitted(known.caller, is_counted=True, refusal=refusal)
        return Admitted(await self._judge(token))

    async def count(self, admitted: Admitted) -> None:
        """Count a call of somebody who was admitted, unless it is counted.

        Raises:
            Overloaded: the client has made as many calls as it may; says when there is one again.
            StoreUnavailable: nobody can tell.
        """
        refusal, caller = admitted.refusal, admitted.caller
        if not admitted.is_counted and isinstance(caller, ClientCaller):
            refusal = await self._rates.take(caller.client.client_id)
        if refusal is not None:
            raise refusal

    async def _judge(self, token: object) -> Caller:
        claimed = parse_client_token(token)
        admin_digest = parse_admin_token(token)
        stored = await self._clients.by_fingerprint(
            _NO_FINGERPRINT if claimed is None else claimed.client_fingerprint
        )
        client = None if stored is None or claimed is None else stored.client
        expected = self._admin_digest if admin_digest is not None else _NO_DIGEST
        shown = admin_digest or (claimed.digest if claimed is not None else "")
        credential = None
        if client is not None and claimed is not None:
            credential = self._credential_of(client, claimed.credential_id)
            expected = _NO_DIGEST if credential is None else credential.digest
        if not hmac.compare_digest(expected, shown):
            raise Unauthorized
        if stored is None or claimed is None or credential is None:
            return Admin()
        self._last_uses.note(claimed.credential_id)
        caller = ClientCaller(stored.client, claimed.credential_id)
        if len(stored.text) <= _LONGEST_KNOWN:
            seen = self._rates.seen(stored.client.client_id, stored.text)
            self._known.keep(claimed.digest, _Known(caller, credential, seen))
        return caller

    def _credential_of(self, client: Client, credential_id: CredentialId) -> Credential | None:
        now_ms = self._now_ms()
        for credential in client.credentials:
            if credential.credential_id == credential_id and credential.is_live_at(now_ms):
                return credential
        return None


class RenewalPolicy:
    """Whether a holder may have its certificate renewed: by its client's live policy."""

    def __init__(self, clients: ClientStore, now_ms: Callable[[], int]) -> None:
        self._clients = clients
        self._now_ms = now_ms

    async def may_renew(self, holder: Holder, hostname: Hostname) -> bool:
        """Whether the client may still ask for it itself; the gateway's own always is."""
        return await self.why_not(holder, hostname) is None

    async def why_not(self, holder: Holder, hostname: Hostname) -> str | None:
        """Why the client may not, as `why_not_renewed`; None where it may."""
        if holder == THE_GATEWAY:
            return None
        stored = await self._clients.by_id(holder.client_id)
        client = None if stored is None else stored.client
        return why_not_renewed(client, hostname, self._now_ms())


class Absence(StrEnum):
    """Why a client that holds something makes no more calls."""

    GONE = "gone"
    """It was removed."""

    REVOKED = "revoked"
    EXPIRED = "tokens expired"


def absence_of(client: Client | None, now_ms: int) -> Absence | None:
    """Why no call of a client is let in at `now_ms` (epoch milliseconds); None where one may be."""
    if client is None:
        return Absence.GONE
    if client.newest_credential(now_ms) is not None:
        return None
    return Absence.EXPIRED if client.credentials else Absence.REVOKED


def why_not_renewed(client: Client | None, hostname: Hostname, now_ms: int) -> str | None:
    """Why a holder may have no new certificate, as the end of a sentence; None where it may."""
    absence = absence_of(client, now_ms)
    if client is None or absence is not None:
        return _ABSENT_WORDS[absence or Absence.GONE]
    if "requestCertificates" not in client.capabilities:
        return "its client lacks the capability requestCertificates"
    return None if may_hold(client, hostname) else "none of its client's patterns matches it"


_ABSENT_WORDS: Final = {
    Absence.GONE: "there is no such client any more",
    Absence.REVOKED: "its client is revoked: it has no live token",
    Absence.EXPIRED: "its client has no live token: the last one has expired",
}


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
