"""Clients: their policy and credentials as stored, and every change of them.

One document a client. The rules are pure functions from a client to a client; `ClientStore` commits
them by compare-and-swap, so a change is in force for the next call on every process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.names import ClientId
from gateway.store import keys
from gateway.store.documents import ATTEMPTS, Contended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.access.tokens import NewToken
    from gateway.contract import ClientSpec
    from gateway.contract.names import CredentialId
    from gateway.store.connection import Store

MAX_CREDENTIALS: Final = 16
"""How many a client may have at once, overlapping ones included."""


@dataclass(frozen=True, slots=True)
class Credential:
    """One token of a client by its digest. Times are epoch milliseconds."""

    credential_id: CredentialId
    digest: str
    created_at_ms: int
    expires_at_ms: int | None = None

    def is_live_at(self, now_ms: int) -> bool:
        """Whether it has not expired."""
        return self.expires_at_ms is None or now_ms < self.expires_at_ms


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its policy, and its credentials from the oldest to the newest."""

    client_id: ClientId
    client_type: str
    hostname_patterns: tuple[str, ...]
    allowed_dns_record_addresses: tuple[str, ...]
    capabilities: frozenset[str]
    policy_generation: int
    credentials: tuple[Credential, ...] = ()

    def newest_credential(self, now_ms: int) -> Credential | None:
        """The credential made last that has not expired."""
        live = [each for each in self.credentials if each.is_live_at(now_ms)]
        return live[-1] if live else None


def created(spec: ClientSpec, token: NewToken, now_ms: int) -> Client:
    """A new client with its first credential."""
    return Client(
        client_id=spec.client_id,
        client_type=spec.client_type,
        hostname_patterns=tuple(spec.hostname_patterns),
        allowed_dns_record_addresses=tuple(spec.allowed_dns_record_addresses),
        capabilities=frozenset(spec.capabilities),
        policy_generation=1,
        credentials=(Credential(token.credential_id, token.digest, now_ms),),
    )


def with_policy(client: Client, spec: ClientSpec) -> Client:
    """The client under the policy of `spec`; the same one if nothing differs."""
    wanted = replace(
        client,
        client_type=spec.client_type,
        hostname_patterns=tuple(spec.hostname_patterns),
        allowed_dns_record_addresses=tuple(spec.allowed_dns_record_addresses),
        capabilities=frozenset(spec.capabilities),
    )
    return client if wanted == client else _next_generation(wanted)


def rotated(client: Client, token: NewToken, overlap_seconds: int, now_ms: int) -> Client:
    """The client with a new credential; each old one lives on for the overlap at most.

    The same again when the credential is there already, as after a write whose answer was lost.
    """
    if client.credentials and client.credentials[-1].credential_id == token.credential_id:
        return client
    end_ms = now_ms + overlap_seconds * 1000
    kept = tuple(
        replace(each, expires_at_ms=min(each.expires_at_ms or end_ms, end_ms))
        for each in client.credentials
        if each.is_live_at(now_ms) and overlap_seconds > 0
    )
    fresh = Credential(token.credential_id, token.digest, now_ms)
    credentials = (*kept[-(MAX_CREDENTIALS - 1) :], fresh)
    return _next_generation(replace(client, credentials=credentials))


def revoked(client: Client) -> Client:
    """The client without any credential; the same one if it had none."""
    return client if not client.credentials else _next_generation(replace(client, credentials=()))


def _next_generation(client: Client) -> Client:
    return replace(client, policy_generation=client.policy_generation + 1)


@dataclass(frozen=True, slots=True)
class StoredClient:
    """A client with the version of its document."""

    client: Client
    version: str


class ClientStore:
    """The clients in Redis. Every method raises `StoreUnavailable` without it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def by_id(self, client_id: ClientId) -> StoredClient | None:
        """A client by its id."""
        stored = await self.by_fingerprint(keys.fingerprint(client_id))
        return stored if stored is not None and stored.client.client_id == client_id else None

    async def by_fingerprint(self, client_fingerprint: str) -> StoredClient | None:
        """A client by the fingerprint of its id, as a credential id carries it."""
        fields = await self._store.fields(keys.client_key(client_fingerprint))
        if "client" not in fields:
            return None
        return StoredClient(_from_json(json.loads(fields["client"])), fields["version"])

    async def change(
        self, client_id: ClientId, decide: Callable[[Client | None], Client | None]
    ) -> Client | None:
        """Let `decide` (pure) make a client of the client, and commit that; None changes nothing.

        Raises:
            Contended: others changed the client at every attempt.
        """
        for _ in range(ATTEMPTS):
            stored = await self.by_id(client_id)
            before = None if stored is None else stored.client
            after = decide(before)
            if after is None or after == before:
                return before
            version = "" if stored is None else stored.version
            if stored is None:
                await self._store.add_to_set(keys.CLIENTS_KEY, client_id)
            if await self._commit(client_id, version, {"client": json.dumps(_to_json(after))}):
                return after
        raise Contended(f"client {client_id} is being changed by too many callers at once")

    async def drop(self, client_id: ClientId) -> bool:
        """Remove a client that holds nothing; False when its index of holdings is not empty."""
        stored = await self.by_id(client_id)
        dropped = stored is None or await self._commit(client_id, stored.version, None)
        # Gone all the same when the first try succeeded and its answer was lost.
        if not dropped and await self.by_id(client_id) is not None:
            return False
        await self._store.remove_from_set(keys.CLIENTS_KEY, client_id)
        return True

    async def count(self) -> int:
        """How many clients there are."""
        return await self._store.set_size(keys.CLIENTS_KEY)

    async def all(self) -> list[Client]:
        """Every client, by id."""
        client_ids = sorted(await self._store.set_members(keys.CLIENTS_KEY))
        found = [await self.by_id(ClientId(client_id)) for client_id in client_ids]
        return [stored.client for stored in found if stored is not None]

    async def _commit(
        self, client_id: ClientId, version: str, fields: dict[str, str] | None
    ) -> bool:
        mark = keys.fingerprint(client_id)
        committed = await self._store.commit(
            keys.client_key(mark),
            keys.client_holdings_key(mark),
            expected_version=version,
            member="",
            drop="drop-if-unindexed" if fields is None else "",
            sets=fields,
        )
        return committed is not None


def _to_json(client: Client) -> dict[str, Any]:
    return {
        "clientId": client.client_id,
        "clientType": client.client_type,
        "hostnamePatterns": list(client.hostname_patterns),
        "allowedDnsRecordAddresses": list(client.allowed_dns_record_addresses),
        "capabilities": sorted(client.capabilities),
        "policyGeneration": client.policy_generation,
        "credentials": [
            {
                "credentialId": each.credential_id,
                "digest": each.digest,
                "createdAtMs": each.created_at_ms,
                "expiresAtMs": each.expires_at_ms,
            }
            for each in client.credentials
        ],
    }


def _from_json(stored: Mapping[str, Any]) -> Client:
    return Client(
        client_id=stored["clientId"],
        client_type=stored["clientType"],
        hostname_patterns=tuple(stored["hostnamePatterns"]),
        allowed_dns_record_addresses=tuple(stored["allowedDnsRecordAddresses"]),
        capabilities=frozenset(stored["capabilities"]),
        policy_generation=stored["policyGeneration"],
        credentials=tuple(
            Credential(
                each["credentialId"], each["digest"], each["createdAtMs"], each["expiresAtMs"]
            )
            for each in stored["credentials"]
        ),
    )
