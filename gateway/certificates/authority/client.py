"""The asyncio face of a CA.

Responsible for the calls that an issuance consists of, each a single short exchange, and for those
on the account. Doesn't poll, wait or retry (a rejected nonce and a replaced account key apart): the
issuance machine does, across processes.

Called by the issuance worker, by readiness, by `gateway check` and `gateway accounts`.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import structlog

from gateway.certificates.accounts import AccountStore
from gateway.certificates.authority import reading
from gateway.certificates.authority.account import JSON, Account
from gateway.certificates.authority.caller import Caller
from gateway.certificates.authority.calls import Calls
from gateway.certificates.authority.chains import alternate_urls, leads_to
from gateway.certificates.authority.faults import Operation, senseless
from gateway.certificates.authority.network import Network
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.settings import AuthoritySettings
from gateway.certificates.authority.signing import certificate_request
from gateway.certificates.orders import (
    AccountView,
    AuthorityFault,
    AuthorizationView,
    OrderView,
    RenewalInfo,
)

_PEM_CHAIN: Final = "application/pem-certificate-chain"

MAX_EXPLANATIONS: Final = 64
"""How many explanations of renewal windows are remembered, so that each is told once."""

_log = structlog.get_logger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


CALLS_AT_ONCE: Final = 16
"""How many calls one process makes to one CA at a time: a slow CA takes seconds for each.

It bounds the connections to it too.
"""


class Authority:
    """One CA under one account. Every call raises AuthorityFault when it fails.

    BUSY is the fault of a call that found too many others under way: the CA was not asked. An
    answer to what was sent is waited for also when its caller is cancelled, unless asking again
    answers the same.

    The calls of an issuance need the account: without one they raise ACCOUNT_MISSING, also when the
    CA has forgotten it, and `ensure_account` registers anew, under the same key. A key that another
    process has replaced is noticed by the CA's refusal, read again, and the call made once more.

    An account that the CA refuses (deactivated, revoked) stays so: it cannot be revived (RFC 8555,
    7.3.6), and another one in its place, made unasked, would be refused just as well, or evade what
    the CA meant. Every call raises ACCOUNT_REFUSED, which issuances wait on ever longer, until an
    operator has `replace_account` called. Its key is kept until then.
    """

    def __init__(self, settings: AuthoritySettings, account_store: AccountStore) -> None:
        """Make no call yet. Raises ValueError when the CA bundle can't be read."""
        self._settings = settings
        self._network = Network(
            user_agent=settings.user_agent,
            ca_bundle=settings.ca_bundle,
            connections=CALLS_AT_ONCE,
            monotonic=time.monotonic,
        )
        self._caller = Caller(
            self._network,
            settings.directory_url,
            name=settings.name,
            origins=settings.origins,
            now_utc=_utc_now,
            monotonic=time.monotonic,
        )
        self._calls = Calls(CALLS_AT_ONCE)
        # One reason may concern every certificate that there is.
        self._explanations: deque[str] = deque(maxlen=MAX_EXPLANATIONS)
        self._account = Account(settings, account_store, self._caller, self._calls)

    @property
    def directory_url(self) -> str:
        """Where the CA's directory is."""
        return self._settings.directory_url

    @property
    def name(self) -> str:
        """What the operator calls the CA."""
        return self._settings.name

    async def close(self) -> None:
        """End the connections; a call still running ends by its own bounds."""
        self._network.close()
        await asyncio.sleep(0)  # asyncio closes the sockets only then

    async def probe(self) -> None:
        """Read the CA's directory: whether it can be reached and is a CA."""
        await self._calls.run(self._caller.read_directory)

    async def directory_meta(self) -> Mapping[str, object]:
        """Answer the directory's `meta` (RFC 8555, 7.1.1) as the CA wrote it; empty without."""
        return await self._calls.run(self._caller.directory_meta)

    async def ensure_account(self) -> None:
        """Have an account at the CA: the stored one, else the CA's for the stored key, else new.

        May be repeated and called at once from many places and processes: the key stored first is
        everybody's, and a CA knows one account for a key.
        """
        await self._account.ensure()

    async def remembered_account(self) -> AccountView | None:
        """Answer what is known of the account without asking the CA."""
        return await self._account.remembered()

    async def describe_account(self) -> AccountView:
        """Read the account at the CA. Registers none."""
        return await self._account.describe()

    async def update_contact(self) -> AccountView:
        """Have the CA know the configured contacts and no others (RFC 8555, 7.3.2)."""
        return await self._account.update_contact()

    async def roll_key_over(self) -> AccountView:
        """Give the account a new key (RFC 8555, 7.3.5); answers it under that key.

        May be repeated, also after a crash, and beside other processes: they notice by themselves.
        TXT values that were computed with the old key are void from then on (`answer_challenge`).
        """
        return await self._account.roll_over()

    async def replace_account(self) -> AccountView:
        """Register another account under a new key, in the place of one that the CA refuses.

        REFUSED while the account is valid. May be repeated. Orders of the old account are lost.
        """
        return await self._account.replace()

    async def new_order(self, hostname: str, *, replaces: str | None = None) -> OrderView:
        """Order a certificate for exactly `hostname`. Each call makes a new order, or finds one.

        A CA may answer an order that it has already, of the same account and name. `replaces` is
        the `renewal_id` of the certificate that this one is to replace (RFC 9773, 5); whatever the
        CA has against it comes as a fault, and the same order without it may still be placed.
        """
        wanted: dict[str, object] = {"identifiers": [{"type": "dns", "value": hostname}]}
        if replaces is not None:
            wanted["replaces"] = replaces
        if self._settings.profile is not None:
            wanted["profile"] = self._settings.profile
        reply = await self._signed(Operation.NEW_ORDER, None, json.dumps(wanted).encode())
        url = reading.new_location(Operation.NEW_ORDER, reply)
        return reading.read_order(Operation.NEW_ORDER, reply, url, _utc_now())

    async def read_order(self, url: str) -> OrderView:
        """Read an order as it is now."""
        reply = await self._signed(Operation.READ_ORDER, url, b"")
        return reading.read_order(Operation.READ_ORDER, reply, url, _utc_now())

    async def read_authorization(self, url: str) -> AuthorizationView:
        """Read an authorization as it is now."""
        reply, signer = await self._account.call(Operation.READ_AUTHORIZATION, url, b"")
        return reading.read_authorization(reply, url, signer, _utc_now())

    async def answer_challenge(self, challenge_url: str, key_thumbprint: str | None) -> None:
        """Tell the CA to validate now. The authorization says how it went, later.

        `key_thumbprint` is the authorization's, from when the TXT value was computed: when the
        account's key is another one by now, nothing is told and STALE_CHALLENGE raised. None asks
        for no such check.
        """
        await self._account.call(
            Operation.ANSWER_CHALLENGE, challenge_url, b"{}", key_thumbprint=key_thumbprint
        )

    async def offers_renewal_info(self) -> bool:
        """Answer whether the CA says when to renew (RFC 9773)."""
        return await self._renewal_info_url() is not None

    async def renewal_info(self, renewal_id: str) -> RenewalInfo | None:
        """Answer when the CA wants a certificate renewed, None when it never says so.

        A window that makes no sense is a SERVER_ERROR: the caller keeps what it knows. Asked
        without a signature, so without an account too.
        """
        base = await self._renewal_info_url()
        if base is None:
            return None
        url = f"{base.rstrip('/')}/{renewal_id}"
        reply = await self._calls.run(lambda: self._caller.get(Operation.RENEWAL_INFO, url))
        info = reading.read_renewal_info(reply, _utc_now())
        self._pass_on(info, renewal_id)
        return info

    async def finalize(self, finalize_url: str, csr_der: bytes) -> OrderView:
        """Have a `ready` order issued. NOT_READY when it isn't, also when it was issued already."""
        payload = certificate_request(csr_der)
        reply = await self._signed(Operation.FINALIZE, finalize_url, payload)
        url = reply.headers.get("location", "")
        return reading.read_order(Operation.FINALIZE, reply, url, _utc_now())

    async def fetch_certificate(self, url: str) -> str:
        """Answer the issued chain as the CA sends it, PEM, unchecked (see `check_certificate`).

        With a preferred chain it is that one, where the CA offers it among the first few.
        """
        reply = await self._signed(Operation.FETCH_CERTIFICATE, url, b"", accept=_PEM_CHAIN)
        preferred = self._settings.preferred_chain
        return (
            _pem_of(reply)
            if preferred is None
            else (await self._preferred_of(url, reply, preferred))
        )

    async def deactivate_authorization(self, url: str) -> None:
        """Give an authorization up (RFC 8555, 7.5.2), whether it is pending or valid."""
        await self._signed(Operation.DEACTIVATE_AUTHORIZATION, url, b'{"status":"deactivated"}')

    async def _renewal_info_url(self) -> str | None:
        at_hand = self._caller.directory_at_hand()
        if at_hand is not None:
            return at_hand.get(Operation.RENEWAL_INFO.value)
        return await self._calls.run(self._caller.renewal_info_url)

    def _pass_on(self, info: RenewalInfo, renewal_id: str) -> None:
        """Tell the operator why the CA wants a certificate renewed, once for each reason."""
        url = info.explanation_url
        if url is None or url in self._explanations:
            return
        self._explanations.append(url)
        _log.info(
            "the CA explains when it wants certificates renewed",
            authority=self.name,
            explanation=url,
            renewal_id=renewal_id,
        )

    async def _signed(
        self, operation: Operation, url: str | None, payload: bytes, accept: str = JSON
    ) -> Reply:
        reply, _ = await self._account.call(operation, url, payload, accept=accept)
        return reply

    async def _preferred_of(self, url: str, default: Reply, common_name: str) -> str:
        """Answer the chain whose topmost issuer has that name, else the default one."""
        chain_pem = _pem_of(default)
        if leads_to(chain_pem, common_name):
            return chain_pem
        for alternate_url in alternate_urls(default, url):
            try:
                other = await self._signed(
                    Operation.FETCH_CERTIFICATE, alternate_url, b"", accept=_PEM_CHAIN
                )
                other_pem = _pem_of(other)
            except AuthorityFault as fault:
                # A preference is no reason to issue nothing, or to wait long.
                _log.warning("an alternate chain cannot be had", detail=fault.detail)
                break
            if leads_to(other_pem, common_name):
                return other_pem
        _log.warning("the CA offers no chain of this issuer", preferred_chain=common_name)
        return chain_pem


def _pem_of(reply: Reply) -> str:
    if not reply.body.isascii() or b"-----BEGIN CERTIFICATE-----" not in reply.body:
        raise senseless(Operation.FETCH_CERTIFICATE, "is not a PEM certificate chain")
    return reply.body.decode("ascii")
