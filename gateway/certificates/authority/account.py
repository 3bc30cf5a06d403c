"""Our account at a CA: which key signs, and what becomes of it.

Responsible for the account's life (registered, found again, its key rolled over, replaced) and for
signing each call with the key that the CA goes by, whichever process changed it. A key is stored
before a CA hears of it, an account's URL as soon as the CA has told it.

**Rolling over.** The new key is stored beside the old one, then the CA told (RFC 8555, 7.3.5), then
the stored one replaced. Whoever is refused as a stranger reads the store again: another process may
have replaced the key. If it has not, but a next key lies there, the CA is asked whose that is, by
newAccount with `onlyReturnExisting`, which is true whatever became of the process that began. The
CA's answer to keyChange itself decides nothing: it may be lost, some CAs answer a repetition with a
refusal, and Pebble answers a conflict (the key is another account's) with 500 or even 200.

Called by `client`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from gateway.certificates.accounts import AccountStore, StoredAccount
from gateway.certificates.authority import reading
from gateway.certificates.authority.caller import Caller
from gateway.certificates.authority.calls import Calls
from gateway.certificates.authority.faults import (
    Operation,
    again,
    is_signature_refused,
    senseless,
)
from gateway.certificates.authority.registrar import Registrar
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.settings import AuthoritySettings
from gateway.certificates.authority.signing import Signer, contact_urls, load_signer
from gateway.certificates.orders import LATER, AccountView, AuthorityFault, FaultKind
from gateway.certificates.sealing import KeyMissing

JSON: Final = "application/json"

_REFUSALS: Final = frozenset({400, 401, 403})

_AT_ACCOUNT_URL: Final = frozenset({Operation.READ_ACCOUNT, Operation.UPDATE_ACCOUNT})
# A key may be replaced again while a call that was signed with the one before is on its way.
MAX_SUCCESSORS: Final = 5

_log = structlog.get_logger(__name__)


class Account:
    """The one account at a CA. Every method raises AuthorityFault when it fails."""

    def __init__(
        self, settings: AuthoritySettings, store: AccountStore, caller: Caller, calls: Calls
    ) -> None:
        self._settings = settings
        self._store = store
        self._caller = caller
        self._calls = calls
        self._registrar = Registrar(settings, caller, calls)
        self._signer: Signer | None = None
        self._known: tuple[bytes, str | None] | None = None
        self._lock = asyncio.Lock()

    async def ensure(self) -> None:
        """Have an account: the stored one, else the CA's for the stored key, else a new one.

        Looks each time: were Redis's data lost, gateways that remember their account would else
        order beside those that have made another.
        """
        async with self._lock:
            stored = await self._load()
            if stored is not None and stored.url is not None and self._is_current(stored):
                return
            stored = stored or await self._store.add_key(self._registrar.new_key())
            self._signer = await self._registered(stored)
            self._known = stored.key_pem, self._signer.account_url

    async def call(
        self,
        operation: Operation,
        url: str | None,
        payload: bytes,
        *,
        accept: str = JSON,
        key_thumbprint: str | None = None,
    ) -> tuple[Reply, Signer]:
        """Make a signed call; answers what signed it too.

        Without a `url` it goes where the directory or the account has it. With a `key_thumbprint`
        the call is made under that key only, else STALE_CHALLENGE raised.
        """
        request = _Request(operation, url, payload, accept, key_thumbprint)
        signer = await self._current()
        for left in range(MAX_SUCCESSORS, -1, -1):
            try:
                return await self._send(request, signer), signer
            except AuthorityFault as fault:
                if not _may_mean_the_key(fault):
                    raise
                refusal, has_changed = fault, left < MAX_SUCCESSORS
            successor = await self._successor(signer) if left else None
            if successor is None:
                break
            signer = successor
        raise await self._told(refusal, signer, has_changed=has_changed)

    async def remembered(self) -> AccountView | None:
        """Answer what is stored of the account; the CA isn't asked."""
        stored = await self._load()
        if stored is None:
            return None
        return _view(load_signer(stored.key_pem, stored.url))

    async def describe(self) -> AccountView:
        """Read the account at the CA (a POST-as-GET of its URL)."""
        reply, signer = await self.call(Operation.READ_ACCOUNT, None, b"")
        return reading.read_account(Operation.READ_ACCOUNT, reply, signer)

    async def update_contact(self) -> AccountView:
        """Have the CA know the configured contacts and no others (RFC 8555, 7.3.2)."""
        return await self._with_account(self._update_contact)

    async def roll_over(self) -> AccountView:
        """Give the account a new key. May be repeated; goes on with what was begun before."""
        return await self._with_account(self._roll_over)

    async def replace(self) -> AccountView:
        """Register a new account under a new key in the place of one that the CA refuses.

        REFUSED while the account is valid. May be repeated; goes on with what was begun before.
        """
        if not await self._is_refused():
            detail = "the account is valid at the CA; roll its key over instead"
            raise AuthorityFault(FaultKind.REFUSED, detail)
        async with self._lock:
            self._signer = signer = await self._replaced()
        return _view(signer)

    # What is stored, and who signs.

    def _is_current(self, stored: StoredAccount) -> bool:
        return self._signer is not None and self._known == (stored.key_pem, stored.url)

    async def _load(self) -> StoredAccount | None:
        try:
            return await self._store.load()
        except KeyMissing:
            detail = "the account's key is sealed under a key that this keyring does not hold"
            raise AuthorityFault(FaultKind.ACCOUNT_REFUSED, detail) from None

    async def _current(self) -> Signer:
        if self._signer is None:
            stored = await self._load()
            if stored is None or stored.url is None:
                raise _missing()
            # Unless somebody was faster, who may know of a newer key.
            self._signer = self._signer or load_signer(stored.key_pem, stored.url)
        return self._signer

    async def _send(self, request: "_Request", signer: Signer) -> Reply:
        if request.key_thumbprint not in (None, signer.thumbprint):
            raise AuthorityFault(FaultKind.STALE_CHALLENGE, "the account's key was replaced")
        is_at_account = request.operation in _AT_ACCOUNT_URL
        url = signer.account_url if is_at_account else request.url
        return await self._calls.run(
            partial(
                self._caller.call,
                request.operation,
                url,
                request.payload,
                signer,
                accept=request.accept,
                may_be_left=request.operation is Operation.READ_ACCOUNT,
            )
        )

    async def _registered(self, stored: StoredAccount) -> Signer:
        if stored.url is not None:
            return load_signer(stored.key_pem, stored.url)
        if stored.next_key_pem is not None:
            # The CA may have taken it for the account's key already; the old one would then be a
            # stranger to it, and get an account of its own.
            following = await self._registrar.found(stored.next_key_pem)
            if following is not None:
                return await self._promoted(stored.next_key_pem, following)
        signer = load_signer(stored.key_pem, None)
        signer = signer.at(await self._registrar.register(signer))
        await self._store.set_url(signer.account_url, key_pem=stored.key_pem)
        return signer

    async def _forget(self, signer: Signer) -> None:
        async with self._lock:
            await self._forget_locked(signer)

    async def _forget_locked(self, signer: Signer) -> None:
        stored = await self._load()
        # Another process may have registered anew, or changed the key, in the meantime.
        if stored is not None and load_signer(stored.key_pem, stored.url) == signer:
            await self._store.set_url(None, key_pem=stored.key_pem)
        if self._signer == signer:
            self._signer = None

    async def _told(
        self, fault: AuthorityFault, signer: Signer, *, has_changed: bool
    ) -> AuthorityFault:
        """Answer what is to be told of a refusal that no other key has mended."""
        if fault.kind is FaultKind.MALFORMED and (has_changed or is_signature_refused(fault)):
            # The request itself was never looked at. Either the key is being replaced, or an
            # operator has to see to it: no order is given up for that.
            if not has_changed:
                self._registrar.warn_of(fault)
            return again(fault, FaultKind.SERVER_ERROR)
        if fault.kind is FaultKind.ACCOUNT_MISSING:
            await self._forget(signer)
        self._registrar.warn_of(fault)
        return fault

    async def _successor(self, refused: Signer) -> Signer | None:
        """Answer who signs now, None when it is still the one that was refused.

        Raises AuthorityFault when that cannot be found out.
        """
        async with self._lock:
            if self._signer not in (None, refused):
                return self._signer
            signer = await self._stored_successor(refused)
            if signer is not None:
                self._signer = signer
            return signer

    async def _stored_successor(self, refused: Signer) -> Signer | None:
        stored = await self._load()
        while stored is not None and stored.url is not None:
            signer = load_signer(stored.key_pem, stored.url)
            if signer != refused:
                return signer
            following = await self._next_if_taken(stored)
            if following is not None:
                return following
            # Another process may have ended its rollover since the store was read.
            before, stored = stored, await self._load()
            if stored == before:
                break
        return None

    async def _next_if_taken(self, stored: StoredAccount) -> Signer | None:
        if stored.next_key_pem is None:
            return None
        try:
            following = await self._registrar.found(stored.next_key_pem)
        except AuthorityFault as fault:
            if fault.kind in LATER:
                raise
            return None  # the fault that led here says more
        if following is None or following.account_url != stored.url:
            return None
        return await self._promoted(stored.next_key_pem, following)

    # What is asked of the CA about the account.

    async def _with_account(self, work: Callable[[], Awaitable[AccountView]]) -> AccountView:
        await self.ensure()
        try:
            return await work()
        except AuthorityFault as fault:
            if fault.kind is not FaultKind.ACCOUNT_MISSING:
                raise
        # The CA has forgotten it (`work` has seen to it that we have too).
        await self.ensure()
        return await work()

    async def _update_contact(self) -> AccountView:
        payload = json.dumps({"contact": contact_urls(self._settings.contact)}).encode()
        reply, signer = await self.call(Operation.UPDATE_ACCOUNT, None, payload)
        return reading.read_account(Operation.UPDATE_ACCOUNT, reply, signer)

    async def _roll_over(self) -> AccountView:
        async with self._lock:
            stored = await self._load()
            if stored is None or stored.url is None:
                raise _missing()
            if stored.next_key_pem is None:
                stored = await self._store.add_next_key(self._registrar.new_key())
            old = load_signer(stored.key_pem, stored.url)
            try:
                self._signer = signer = await self._changed(old, stored)
            except AuthorityFault as fault:
                if fault.kind is FaultKind.ACCOUNT_MISSING:
                    await self._forget_locked(old)
                raise
        return _view(signer)

    async def _promoted(self, next_key_pem: bytes, following: Signer) -> Signer:
        url = following.account_url
        if url is None:
            raise LookupError("an account that was found has a URL")
        await self._store.promote_next_key(next_key_pem, url)
        _log.info("the account has a new key", authority=self._settings.name, account=url)
        return following

    async def _changed(self, old: Signer, stored: StoredAccount) -> Signer:
        next_key_pem = stored.next_key_pem
        if next_key_pem is None:
            raise LookupError("the next key is stored before it is used")
        refusal: AuthorityFault | None = None
        try:
            await self._registrar.change_key(old, next_key_pem)
        except AuthorityFault as fault:
            refusal = fault
        try:
            following = await self._registrar.found(next_key_pem)
        except AuthorityFault as fault:
            raise refusal or fault from None
        if following is None:
            raise refusal or senseless(Operation.KEY_CHANGE, "claims a change that was not made")
        if following.account_url != old.account_url and await self._registrar.found(stored.key_pem):
            await self._store.drop_next_key(next_key_pem)
            detail = "the CA has another account for the new key, which is dropped; try once more"
            raise AuthorityFault(FaultKind.REFUSED, detail)
        return await self._promoted(next_key_pem, following)

    async def _replaced(self) -> Signer:
        stored = await self._load()
        if stored is not None and stored.next_key_pem is not None:
            # Of a run before this one, unless the CA refuses it as well.
            try:
                return await self._registered_next(stored.next_key_pem)
            except AuthorityFault as fault:
                if fault.kind is not FaultKind.ACCOUNT_REFUSED:
                    raise
            await self._store.drop_next_key(stored.next_key_pem)
        stored = await self._store.add_next_key(self._registrar.new_key())
        if stored.next_key_pem is None:
            raise LookupError("the next key is stored before it is used")
        return await self._registered_next(stored.next_key_pem)

    async def _registered_next(self, next_key_pem: bytes) -> Signer:
        signer = load_signer(next_key_pem, None)
        return await self._promoted(next_key_pem, signer.at(await self._registrar.register(signer)))

    async def _is_refused(self) -> bool:
        try:
            await self.ensure()
            view = await self.describe()
        except AuthorityFault as fault:
            if _is_of_the_account(fault):
                return True
            raise
        return view.status != "valid"


@dataclass(frozen=True, slots=True)
class _Request:
    operation: Operation
    url: str | None
    payload: bytes
    accept: str
    key_thumbprint: str | None


def _may_mean_the_key(fault: AuthorityFault) -> bool:
    """Whether a refusal may be that of a signature: CAs say malformed or unauthorized.

    Pebble also says that there is no such account, at the moment of a rollover.
    """
    if fault.kind is FaultKind.GONE:
        return fault.problem_type == "unauthorized"
    return fault.kind in (
        FaultKind.MALFORMED,
        FaultKind.ACCOUNT_REFUSED,
        FaultKind.ACCOUNT_MISSING,
    )


def _is_of_the_account(fault: AuthorityFault) -> bool:
    """Whether the CA itself refused the account or its key, as far as anybody can tell."""
    if fault.kind is FaultKind.ACCOUNT_REFUSED:
        return True
    # 404 and such are of a URL where nothing is (any more).
    return fault.problem_type in ("unauthorized", "malformed") and fault.http_status in _REFUSALS


def _missing() -> AuthorityFault:
    return AuthorityFault(FaultKind.ACCOUNT_MISSING, "no account is registered yet")


def _view(signer: Signer) -> AccountView:
    return AccountView(signer.account_url, signer.key_type, signer.thumbprint)
