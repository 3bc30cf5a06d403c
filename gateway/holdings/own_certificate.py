"""The certificate of the gateway's own listener, issued and renewed as those of clients are.

It lies in Redis under an ownership that no client can have, so all processes use the one
certificate, and whichever worker is there renews it. The hostname's address records are nobody's
business here: they are neither judged nor touched. Called by `gateway.listening`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gateway.certificates import machine
from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.moves import Moment
from gateway.certificates.sealing import KeyMissing, SealBroken
from gateway.contract.names import AppId, ClientId
from gateway.holdings.certificates import begun
from gateway.holdings.hold import without_certificate
from gateway.store.documents import Holder

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.sealing import Keyring
    from gateway.certificates.states import Issuance, StoredCertificate
    from gateway.contract.names import Hostname
    from gateway.store.documents import Change, Document, Documents

THE_GATEWAY: Final = Holder(ClientId("the gateway"), AppId("its listener"))
"""Who holds it. A client's id has no space in it, so this is nobody's."""


class NotThere(Exception):
    """There is no certificate to be used (yet); a sentence for anybody says why.

    `is_coming`: it was asked for, and nothing has gone wrong so far.
    """

    def __init__(self, said: str, *, is_coming: bool = False) -> None:
        super().__init__(said)
        self.is_coming = is_coming


@dataclass(frozen=True, slots=True)
class Opened:
    """The chain, leaf first, and its key; both PEM."""

    chain_pem: str
    key_pem: bytes = field(repr=False)


class OwnCertificate:
    """One hostname's certificate, for the gateway itself.

    `wake` tells this process's worker, if it has one, of new work.
    """

    def __init__(
        self,
        hostname: Hostname,
        documents: Documents,
        keyring: Keyring,
        *,
        wake: Callable[[Hostname, ClientId], None],
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
    ) -> None:
        self._hostname = hostname
        self._documents = documents
        self._keyring = keyring
        self._wake = wake
        self._new_id = new_id
        self._now_ms = now_ms

    async def look(self) -> Opened:
        """The certificate as it is now; asks for one when there is none. Repeatable.

        Raises:
            NotThere: none can be used now.
            StoreUnavailable, Contended: nobody can tell.
        """
        document = await self._documents.read(self._hostname)
        _demand_hold(document)
        certificate = certificate_of(document)
        if certificate is not None and certificate.may_be_served_at(self._now_ms()):
            return self._opened(certificate)
        issuance = issuance_of(document)
        if issuance is None:
            await self._begin()
            said = f"The certificate of {self._hostname} was just asked for."
            raise NotThere(said, is_coming=True)
        said = f"The certificate of {self._hostname} is not there yet{_why(issuance)}"
        raise NotThere(said, is_coming=not issuance.message)

    def _opened(self, certificate: StoredCertificate) -> Opened:
        bound_to = key_binding(THE_GATEWAY, self._hostname)
        try:
            key = self._keyring.open(certificate.sealed_key, purpose=KEY_PURPOSE, bound_to=bound_to)
        except (KeyMissing, SealBroken):
            raise NotThere(
                f"The key of the certificate of {self._hostname} does not open with this keyring."
            ) from None
        return Opened(certificate.chain_pem, key)

    async def _begin(self) -> None:
        issuance = machine.request(self._new_id(), Moment(self._now_ms(), 0))

        def decide(document: Document) -> Change:
            _demand_hold(document)
            change = begun(document, issuance, None)
            return replace(change, fields={**change.fields, "holder": THE_GATEWAY})

        await self._documents.change(self._hostname, decide)
        self._wake(self._hostname, THE_GATEWAY.client_id)


async def give_up(
    documents: Documents, hostname: Hostname, now_ms: Callable[[], int]
) -> Document | None:
    """Give up a certificate that was the gateway's own, its key and any issuance; repeatable.

    Answers what was held before; None where the gateway holds nothing of the hostname. One that is
    still configured is asked for again at once.
    """
    before: Document | None = None

    def decide(document: Document) -> Change | None:
        nonlocal before
        is_own = document.holder == THE_GATEWAY
        before = document if is_own else None
        return without_certificate(document, now_ms()) if is_own else None

    await documents.change(hostname, decide)
    return before


def _demand_hold(document: Document) -> None:
    """An operator's claim keeps clients away, not the operator's own gateway."""
    if document.holder not in {None, THE_GATEWAY}:
        raise NotThere(f"{document.hostname} is held by a client, which must give it up first.")


def _why(issuance: Issuance) -> str:
    return f": {issuance.message}" if issuance.message else "."
