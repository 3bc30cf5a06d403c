"""The asyncio face of a CA, and our account there.

Responsible for the calls that an issuance consists of, each a single short exchange, and for the
one account: its key is stored before it is used, its URL as soon as the CA has given it. Doesn't
poll, wait or retry (a rejected nonce apart): the issuance machine does, across processes.

The blocking half runs on a few threads of its own. A caller that is cancelled goes at once; the
exchange it began ends by itself in its thread, so no connection or nonce is left half used.

Called by the issuance worker, by readiness, and by `gateway check`.
"""

import asyncio
import contextvars
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from acme import messages
from cryptography import x509

from gateway.certificates.accounts import AccountStore
from gateway.certificates.authority import reading
from gateway.certificates.authority.caller import Caller
from gateway.certificates.authority.faults import Operation, senseless
from gateway.certificates.authority.network import Network
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.signing import (
    ExternalAccountBinding,
    Signer,
    load_signer,
    registration,
)
from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.orders import AuthorityFault, AuthorizationView, FaultKind, OrderView

_JSON = "application/json"
_PEM_CHAIN = "application/pem-certificate-chain"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class AuthoritySettings:
    """Which CA, and who we are there; `eab_hmac_key` is base64url, as CAs hand it out."""

    directory_url: str
    ca_bundle: Path | None
    contact: tuple[str, ...]
    eab_key_id: str | None
    eab_hmac_key: str | None = field(repr=False)
    user_agent: str

    @property
    def binding(self) -> ExternalAccountBinding | None:
        """The external account binding, None when it isn't configured."""
        if self.eab_key_id is None or self.eab_hmac_key is None:
            return None
        return ExternalAccountBinding(self.eab_key_id, self.eab_hmac_key)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Authority:
    """One CA under one account. Every call raises AuthorityFault when it fails.

    All calls but `ensure_account`, `probe` and `close` need the account: without one they raise
    ACCOUNT_MISSING, also when the CA has forgotten it. `ensure_account` registers anew then.
    """

    def __init__(
        self,
        settings: AuthoritySettings,
        account_store: AccountStore,
        threads: int = 4,
        *,
        now_utc: Callable[[], datetime] = _utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make no call yet. Raises ValueError when the CA bundle can't be read."""
        self._settings = settings
        self._store = account_store
        self._now_utc = now_utc
        self._network = Network(
            user_agent=settings.user_agent,
            ca_bundle=settings.ca_bundle,
            connections=threads,
            monotonic=monotonic,
        )
        self._caller = Caller(
            self._network, settings.directory_url, now_utc=now_utc, monotonic=monotonic
        )
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="authority")
        self._signer: Signer | None = None
        self._account_lock = asyncio.Lock()

    async def close(self) -> None:
        """End the threads and connections; a call still running ends by its own bounds."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._network.close()

    async def probe(self) -> None:
        """Read the CA's directory: whether it can be reached and is a CA."""
        await self._in_thread(self._caller.read_directory)

    async def ensure_account(self) -> None:
        """Have an account at the CA: the stored one, else the CA's for the stored key, else new.

        May be repeated and called at once from many places and processes: the key stored first is
        everybody's, and a CA knows one account for a key.
        """
        async with self._account_lock:
            if self._signer is not None:
                return
            stored = await self._store.load()
            if stored is None:
                key_pem = await self._in_thread(lambda: new_private_key(KeyType.ECDSA_P256))
                stored = await self._store.add_key(key_pem)
            signer = load_signer(stored.key_pem, stored.url)
            if signer.account_url is None:
                signer = signer.at(await self._in_thread(lambda: self._register(signer)))
                await self._store.set_url(signer.account_url)
            self._signer = signer

    async def new_order(self, hostname: str) -> OrderView:
        """Order a certificate for exactly `hostname`. Each call makes a new order, or finds one.

        A CA may answer an order that it has already, of the same account and name.
        """
        identifier = messages.Identifier(typ=messages.IDENTIFIER_FQDN, value=hostname)
        payload: str = messages.NewOrder(identifiers=[identifier]).json_dumps()
        reply = await self._signed(Operation.NEW_ORDER, None, payload.encode())
        url = reading.new_location(Operation.NEW_ORDER, reply)
        return reading.read_order(Operation.NEW_ORDER, reply, url, self._now_utc())

    async def read_order(self, url: str) -> OrderView:
        """Read an order as it is now."""
        reply = await self._signed(Operation.READ_ORDER, url, b"")
        return reading.read_order(Operation.READ_ORDER, reply, url, self._now_utc())

    async def read_authorization(self, url: str) -> AuthorizationView:
        """Read an authorization as it is now."""
        signer = await self._account()
        reply = await self._signed(Operation.READ_AUTHORIZATION, url, b"")
        return reading.read_authorization(reply, url, signer, self._now_utc())

    async def answer_challenge(self, challenge_url: str) -> None:
        """Tell the CA to validate now. The authorization says how it went, later."""
        await self._signed(Operation.ANSWER_CHALLENGE, challenge_url, b"{}")

    async def finalize(self, finalize_url: str, csr_der: bytes) -> OrderView:
        """Have a `ready` order issued. NOT_READY when it isn't, also when it was issued already."""
        csr = x509.load_der_x509_csr(csr_der)
        payload: str = messages.CertificateRequest(csr=csr).json_dumps()
        reply = await self._signed(Operation.FINALIZE, finalize_url, payload.encode())
        url = reply.headers.get("location", "")
        return reading.read_order(Operation.FINALIZE, reply, url, self._now_utc())

    async def fetch_certificate(self, url: str) -> str:
        """Answer the issued chain as the CA sends it, PEM, unchecked (see `check_certificate`)."""
        reply = await self._signed(Operation.FETCH_CERTIFICATE, url, b"", accept=_PEM_CHAIN)
        if not reply.body.isascii() or b"-----BEGIN CERTIFICATE-----" not in reply.body:
            raise senseless(Operation.FETCH_CERTIFICATE, "is not a PEM certificate chain")
        return reply.body.decode("ascii")

    async def deactivate_authorization(self, url: str) -> None:
        """Give an authorization up (RFC 8555, 7.5.2), whether it is pending or valid."""
        await self._signed(Operation.DEACTIVATE_AUTHORIZATION, url, b'{"status":"deactivated"}')

    def _register(self, signer: Signer) -> str:
        url = self._caller.new_account_url()
        payload = registration(signer, self._settings.contact, self._settings.binding, url)
        call = partial(self._caller.call, Operation.NEW_ACCOUNT, url, payload, signer)
        try:
            reply = call()
        except AuthorityFault as fault:
            if fault.kind is not FaultKind.SERVER_ERROR:
                raise
            # Pebble 2.4 fails one of two processes that register the same key at the same moment;
            # asked again, it answers the account that the other one got.
            reply = call()
        # A CA that knows the key answers its account, whatever became of it.
        status = (reply.json_object() or {}).get("status", "valid")
        if status != "valid":
            raise AuthorityFault(FaultKind.ACCOUNT_REFUSED, "the account is no longer valid there")
        return reading.new_location(Operation.NEW_ACCOUNT, reply)

    async def _signed(
        self, operation: Operation, url: str | None, payload: bytes, accept: str = _JSON
    ) -> Reply:
        signer = await self._account()
        call = partial(self._caller.call, operation, url, payload, signer, accept=accept)
        try:
            return await self._in_thread(call)
        except AuthorityFault as fault:
            if fault.kind is FaultKind.ACCOUNT_MISSING:
                await self._forget(signer)
            raise

    async def _account(self) -> Signer:
        if self._signer is None:
            stored = await self._store.load()
            if stored is None or stored.url is None:
                raise AuthorityFault(FaultKind.ACCOUNT_MISSING, "no account is registered yet")
            self._signer = load_signer(stored.key_pem, stored.url)
        return self._signer

    async def _forget(self, signer: Signer) -> None:
        async with self._account_lock:
            stored = await self._store.load()
            # Another process may have registered anew in the meantime: its URL stays.
            if stored is not None and stored.url == signer.account_url:
                await self._store.set_url(None)
            if self._signer is signer:
                self._signer = None

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # The context goes along, so that log lines keep what their caller bound to them.
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, context.run, work)
