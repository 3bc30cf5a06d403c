"""What a CA is asked about accounts, key by key: nothing is remembered here.

Responsible for registering a key, finding the account of one, and changing one for another (RFC
8555, 7.3). Which key is whose, and what is stored when, is `account`'s part.

Called by `account`.
"""

from functools import partial
from typing import Final

import structlog

from gateway.certificates.authority import reading
from gateway.certificates.authority.caller import Caller
from gateway.certificates.authority.calls import Calls
from gateway.certificates.authority.faults import Operation, is_signature_refused
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.settings import AuthoritySettings
from gateway.certificates.authority.signing import Signer, key_change, load_signer, registration
from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.orders import AuthorityFault, FaultKind

_ONLY_RETURN_EXISTING: Final = b'{"onlyReturnExisting":true}'

_log = structlog.get_logger(__name__)


class Registrar:
    """Asks one CA about accounts. Every method raises AuthorityFault when it fails.

    What registers or finds answers the same when it is asked again: a caller that is cancelled need
    not wait for it.
    """

    def __init__(self, settings: AuthoritySettings, caller: Caller, calls: Calls) -> None:
        self._settings = settings
        self._caller = caller
        self._calls = calls

    def new_key(self) -> bytes:
        """Make a key for an account (PKCS#8 PEM)."""
        return new_private_key(KeyType.ECDSA_P256)

    async def register(self, signer: Signer) -> str:
        """Have an account for a key; answers its URL. ACCOUNT_REFUSED when it is not valid."""
        try:
            return await self._calls.run(lambda: self._register(signer))
        except AuthorityFault as fault:
            self.warn_of(fault)
            raise

    async def found(self, key_pem: bytes) -> Signer | None:
        """Answer the key with the URL of its account, None when it has none (RFC 8555, 7.3.1)."""
        signer = load_signer(key_pem, None)
        try:
            reply = await self._calls.run(lambda: self._find(signer))
        except AuthorityFault as fault:
            if fault.kind is FaultKind.ACCOUNT_MISSING:
                return None
            raise
        return signer.at(reading.new_location(Operation.FIND_ACCOUNT, reply))

    async def change_key(self, old: Signer, next_key_pem: bytes) -> None:
        """Ask for another key in the place of `old` (RFC 8555, 7.3.5).

        What the CA says to it decides nothing: only `found` tells whether it was done.
        """
        await self._calls.run(lambda: self._change_key(old, next_key_pem))

    def warn_of(self, fault: AuthorityFault) -> None:
        """Tell the operator of a refusal that does not pass by itself."""
        if fault.kind is FaultKind.ACCOUNT_REFUSED:
            refused = "the account"
        elif is_signature_refused(fault):
            refused = "the signature of the account's key"
        else:
            return
        _log.warning(
            f"the CA refuses {refused}; `gateway accounts list` tells more",
            authority=self._settings.name,
            detail=fault.detail,
        )

    async def _register(self, signer: Signer) -> str:
        url = await self._caller.url_of(Operation.NEW_ACCOUNT)
        payload = registration(signer, self._settings.contact, self._settings.binding, url)
        operation = Operation.NEW_ACCOUNT
        call = partial(self._caller.call, operation, url, payload, signer, may_be_left=True)
        try:
            reply = await call()
        except AuthorityFault as fault:
            if fault.kind is not FaultKind.SERVER_ERROR or not _may_be_the_ca(fault):
                raise
            # Pebble 2.4 fails one of two processes that register the same key at the same moment;
            # asked again, it answers the account that the other one got.
            reply = await call()
        # A CA that knows the key answers its account, whatever became of it.
        status = (reply.json_object() or {}).get("status", "valid")
        if status != "valid":
            raise AuthorityFault(FaultKind.ACCOUNT_REFUSED, "the account is no longer valid there")
        return reading.new_location(Operation.NEW_ACCOUNT, reply)

    async def _find(self, signer: Signer) -> Reply:
        url = await self._caller.url_of(Operation.NEW_ACCOUNT)
        return await self._caller.call(
            Operation.FIND_ACCOUNT, url, _ONLY_RETURN_EXISTING, signer, may_be_left=True
        )

    async def _change_key(self, old: Signer, next_key_pem: bytes) -> None:
        url = await self._caller.url_of(Operation.KEY_CHANGE)
        payload = key_change(old, load_signer(next_key_pem, None), url)
        await self._caller.call(Operation.KEY_CHANGE, url, payload, old)


def _may_be_the_ca(fault: AuthorityFault) -> bool:
    return fault.http_status is not None and fault.http_status >= 500
