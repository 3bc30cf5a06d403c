"""Clients: their policy and credentials as stored, and every change of them.

One document a client. The rules are pure functions from a client to a client; `ClientStore` commits
them by compare-and-swap, so a change is in force for the next call on every process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.access.untold import Untold
from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import quoted
from gateway.moments import is_epoch_ms
from gateway.store import keys
from gateway.store.documents import ATTEMPTS, Contended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gateway.access.tokens import NewToken
    from gateway.contract import ClientSpec
    from gateway.contract.names import ClientId, CredentialId
    from gateway.store.connection import Store

ABSENT: Final = ""
"""The mark of a client that there is not."""

CLIENT_FIELD: Final = "client"
"""The field of a client's hash that has all of it."""

MAX_CREDENTIALS: Final = 16
"""How many a client may have at once, overlapping ones included."""

READ_AT_ONCE: Final = 200
LOOKED_AT: Final = 1_000
"""Of how many listed ids a page of clients reads the documents at most."""

REMEMBERED: Final = 1_024
"""Of how many clients that were read last a process keeps what their stored texts say."""


class ClientUnreadable(ValueError):
    """What Redis has of a client is in no shape that this release knows."""

    def __init__(self, client_id: str) -> None:
        super().__init__(
            f"What Redis has of the client {quoted(client_id)} is not readable by this release"
        )
        self.client_id = client_id


class ClientChanged(Exception):
    """The client is not as it was when somebody decided to change it; asking again is safe."""

    def __init__(self, client_id: str) -> None:
        super().__init__(f"The client {quoted(client_id)} has changed since it was looked at")
        self.client_id = client_id


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


def mark_of(client: Client | None) -> str:
    """A mark of a client as it was seen: of its policy and its credentials, or that it is not."""
    if client is None:
        return ABSENT
    newest = client.credentials[-1].credential_id if client.credentials else "none"
    return f"{client.policy_generation}-{newest}"


def demand_as_seen(client_id: str, client: Client | None, as_seen: str | None) -> None:
    """Raise `ClientChanged` unless the client has this mark; None stands for any client."""
    if as_seen is not None and mark_of(client) != as_seen:
        raise ClientChanged(client_id)


def _next_generation(client: Client) -> Client:
    return replace(client, policy_generation=client.policy_generation + 1)


@dataclass(frozen=True, slots=True)
class StoredClient:
    """A client with the version of its document, and the text of which it was made."""

    client: Client
    version: str
    text: str = field(repr=False)


class Everyone(NamedTuple):
    """All clients, by id: one that cannot be read does not hide the others."""

    clients: list[Client]
    unreadable: list[ClientUnreadable]


class ClientPage(NamedTuple):
    """Some clients by id; `after` is the id behind which the next page begins, None at the end."""

    clients: list[Client | ClientUnreadable]
    after: str | None


class ClientStore:
    """The clients in Redis. Every method raises `StoreUnavailable` without it.

    What reads one client raises `ClientUnreadable`: a newer release has written it, or somebody has
    altered it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def by_id(self, client_id: ClientId) -> StoredClient | None:
        """A client by its id."""
        (fields,) = await self._store.hashes([keys.client_key(keys.fingerprint(client_id))])
        stored = _stored(client_id, fields)
        return stored if stored is not None and stored.client.client_id == client_id else None

    async def by_fingerprint(self, client_fingerprint: str) -> StoredClient | None:
        """A client by the fingerprint of its id, as a credential id carries it."""
        key = keys.client_key(client_fingerprint)
        (fields,) = await self._store.hashes([key])
        return _stored(key, fields)

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
        raise Contended(f"client {quoted(client_id)} is being changed by too many callers at once")

    async def drop(self, client_id: ClientId, as_seen: str | None = None) -> bool:
        """Remove a client that holds nothing; False when its index of holdings is not empty.

        Raises:
            ClientChanged: it has another mark than this.
        """
        stored = await self.by_id(client_id)
        demand_as_seen(client_id, None if stored is None else stored.client, as_seen)
        dropped = stored is None or await self._commit(client_id, stored.version, None)
        # Gone all the same when the first try succeeded and its answer was lost.
        if not dropped and await self.by_id(client_id) is not None:
            return False
        await self._store.remove_from_set(keys.CLIENTS_KEY, client_id)
        await Untold(self._store).forget_all_of(client_id)
        return True

    async def count(self) -> int:
        """How many clients there are."""
        return await self._store.set_size(keys.CLIENTS_KEY)

    async def all(self) -> Everyone:
        """Every client there is."""
        client_ids = sorted(await self._store.set_members(keys.CLIENTS_KEY))
        clients: list[Client] = []
        unreadable: list[ClientUnreadable] = []
        for start in range(0, len(client_ids), READ_AT_ONCE):
            for each in await self.some(client_ids[start : start + READ_AT_ONCE]):
                if isinstance(each, Client):
                    clients.append(each)
                else:
                    unreadable.append(each)
        return Everyone(clients, unreadable)

    async def page(self, prefix: str, after: str, limit: int) -> ClientPage:
        """At most `limit` clients by id, of those that begin with `prefix`, behind `after`.

        Their ids are read at once, a few dozen bytes each; of their documents only the page's, and
        those of ids that have none, `LOOKED_AT` at most in all. What is too long for an id is
        nobody's, and in no page.
        """
        members = await self._store.set_members(keys.CLIENTS_KEY)
        listed = sorted(each for each in members if len(each) <= BOUNDS.max_app_id_characters)
        wanted = [each for each in listed if each.startswith(prefix) and each > after]
        found: list[Client | ClientUnreadable] = []
        looked_at = 0
        while len(found) < limit and looked_at < min(len(wanted), LOOKED_AT):
            some = wanted[looked_at : looked_at + limit]
            found += await self.some(some)
            looked_at += len(some)
        if len(found) > limit:
            return ClientPage(found[:limit], found[limit - 1].client_id)
        return ClientPage(found, wanted[looked_at - 1] if looked_at < len(wanted) else None)

    async def some(self, client_ids: Sequence[str]) -> list[Client | ClientUnreadable]:
        """These clients where they are still there; the fault in place of one that can't be read.

        The gateway's own ids are ASCII: what else lies in the set is nobody's.
        """
        known = [each for each in client_ids if each.isascii()]
        names = [keys.client_key(keys.fingerprint(client_id)) for client_id in known]
        found = await self._store.some_fields_of_each(names, ("client", "version"))
        fields_of = dict(zip(known, found, strict=True))
        clients: list[Client | ClientUnreadable] = []
        for client_id in client_ids:
            try:
                if client_id not in fields_of:
                    raise ClientUnreadable(client_id)
                stored = _stored(client_id, fields_of[client_id])
            except ClientUnreadable as fault:
                clients.append(fault)
                continue
            if stored is not None and stored.client.client_id == client_id:
                clients.append(stored.client)
        return clients

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
            goes_with=keys.client_uses_key(mark) if fields is None else None,
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


def _stored(name: str, fields: Mapping[str, str] | None) -> StoredClient | None:
    """A client from its hash; None where there is none. `name` is what a fault calls it."""
    if fields is None:  # something else lies there
        raise ClientUnreadable(name)
    if CLIENT_FIELD not in fields:
        return None
    try:
        text = fields[CLIENT_FIELD]
        return StoredClient(_client_in(text), fields["version"], text)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ClientUnreadable(name) from None


@lru_cache(maxsize=REMEMBERED)
def _client_in(text: str) -> Client:
    """What a stored text says. Each call reads the text anew, and it is nearly always the same.

    To read it was a good part of the call for a ready certificate.
    """
    return _from_json(json.loads(text))


def _from_json(stored: Mapping[str, Any]) -> Client:
    return Client(
        client_id=_typed(stored["clientId"], str),
        client_type=_typed(stored["clientType"], str),
        hostname_patterns=_texts(stored["hostnamePatterns"]),
        allowed_dns_record_addresses=_texts(stored["allowedDnsRecordAddresses"]),
        capabilities=frozenset(_texts(stored["capabilities"])),
        policy_generation=_typed(stored["policyGeneration"], int),
        credentials=tuple(
            Credential(
                _typed(each["credentialId"], str),
                _typed(each["digest"], str),
                _epoch_ms(each["createdAtMs"]),
                None if each["expiresAtMs"] is None else _epoch_ms(each["expiresAtMs"]),
            )
            for each in _typed(stored["credentials"], list)
        ),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_typed(each, str) for each in _typed(value, list))


def _epoch_ms(value: object) -> int:
    if not is_epoch_ms(value):
        raise ValueError("no time that there is")
    return value


def _typed(value: object, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value
