"""Tokens that were made and that nobody has been told yet.

`gateway clients apply` makes many clients and tells their tokens at its end. Whom a new token is
for stands here from before it is made until it was told: so when a run is cut off, the next one
knows whose tokens are lost. Only the credential's id is kept, never the token.

Called by `gateway clients apply`, and by `access.clients` for a client that is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway.contract.names import ClientId, CredentialId
from gateway.store.keys import UNTOLD_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway.access.clients import Client
    from gateway.store.connection import Store


class Untold:
    """The tokens that were not told. Every method raises `StoreUnavailable`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, credential_id: CredentialId, client_id: ClientId) -> None:
        """A token is about to be made; repeatable."""
        await self._store.set_field(UNTOLD_KEY, credential_id, client_id)

    async def forget(self, credential_id: CredentialId) -> None:
        """It was told, or is worth nothing any more; repeatable."""
        await self._store.delete_field(UNTOLD_KEY, credential_id)

    async def forget_all_of(self, client_id: ClientId) -> None:
        """The client is gone, and its tokens are worth nothing; repeatable."""
        for credential_id, of_client in (await self.all()).items():
            if of_client == client_id:
                await self.forget(credential_id)

    async def all(self) -> dict[CredentialId, ClientId]:
        """Each credential whose token was not told, with its client."""
        fields = await self._store.fields(UNTOLD_KEY)
        return {CredentialId(name): ClientId(text) for name, text in fields.items()}


class Found(NamedTuple):
    """What became of tokens that were not told.

    `lost` are the clients that have no newer one; `settled` are the credentials that nobody needs
    to know of any more, since their client was given another.
    """

    lost: list[ClientId]
    settled: list[CredentialId]


def judged(untold: Mapping[CredentialId, ClientId], clients: Iterable[Client]) -> Found:
    """What became of them: pure. A client that is not there may just be being made."""
    newest = {
        client.client_id: client.credentials[-1].credential_id if client.credentials else None
        for client in clients
    }
    there = {each: client_id for each, client_id in untold.items() if client_id in newest}
    lost = [client_id for each, client_id in there.items() if newest[client_id] == each]
    settled = [each for each, client_id in there.items() if newest[client_id] != each]
    return Found(sorted(lost), sorted(settled))
