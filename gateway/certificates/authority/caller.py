"""One call to a CA: directory, request, judgement, log line.

Responsible for turning a call into HTTP exchanges and an answer other than 2xx into an
AuthorityFault. Holds the directory; knows no account and no order.

Called by `client`, `account` and `registrar`, within a call of `calls`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import structlog

from gateway import measures, tracing
from gateway.certificates.authority.faults import Operation, again, fault_of, senseless
from gateway.certificates.authority.network import Network, NoNonce, Post
from gateway.certificates.authority.replies import Reply, one_line
from gateway.certificates.authority.settings import origin_of
from gateway.certificates.authority.signing import Signer
from gateway.certificates.orders import AuthorityFault, FaultKind

CALL_SECONDS: Final = 30.0
DIRECTORY_SECONDS: Final = 3600.0
AWAY_SECONDS: Final = 5.0
"""How long a directory that could not be read is not read again: all would wait in a row for it."""

# Nothing is there: the next call looks into the directory whether the CA has moved.
_MOVED: Final = frozenset({404, 405, 410})

_NEEDED: Final = ("newNonce", "newAccount", "newOrder")

_log = structlog.get_logger(__name__)


class Caller:
    """Makes calls to the CA whose directory is at `directory_url`, called `name` by people.

    Each call is bounded as a whole, whatever it consists of. Nothing is asked that lies at another
    origin than the directory and `origins` (as `settings.origin_of` has them): whoever answers for
    the CA could else have the gateway send requests into the operator's own network.
    """

    def __init__(
        self,
        network: Network,
        directory_url: str,
        *,
        name: str,
        origins: Iterable[str] = (),
        now_utc: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._network = network
        self._directory_url = directory_url
        self._name = name
        self._origins = {origin_of(directory_url), *origins}
        self._now_utc = now_utc
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._directory: Mapping[str, str] = {}
        self._meta: Mapping[str, object] = {}
        self._directory_until = float("-inf")
        self._away: AuthorityFault | None = None
        self._away_until = float("-inf")

    async def read_directory(self) -> None:
        """Read the directory from the CA, also when it is known. Raises AuthorityFault."""
        await self._read_directory(self._monotonic() + CALL_SECONDS)

    async def url_of(self, operation: Operation) -> str:
        """Answer where the directory puts an operation. Raises AuthorityFault, also without one."""
        directory = await self._known_directory(self._monotonic() + CALL_SECONDS)
        return _entry(directory, operation)

    async def directory_meta(self) -> Mapping[str, object]:
        """Answer the directory's `meta` as it is, empty without. Raises AuthorityFault."""
        await self._known_directory(self._monotonic() + CALL_SECONDS)
        return self._meta

    async def renewal_info_url(self) -> str | None:
        """Answer where the CA says when to renew, None where it doesn't. Raises AuthorityFault."""
        directory = await self._known_directory(self._monotonic() + CALL_SECONDS)
        return directory.get(Operation.RENEWAL_INFO.value)

    def directory_at_hand(self) -> Mapping[str, str] | None:
        """Answer the directory unless it has to be read for that. Never blocks."""
        return self._directory if self._monotonic() < self._directory_until else None

    async def get(self, operation: Operation, url: str) -> Reply:
        """Read an unsigned resource; answers the CA's 2xx, raises AuthorityFault for all else."""
        deadline = self._monotonic() + CALL_SECONDS
        self._demand_own(url)
        return await self._logged(operation, self._network.get(url, deadline))

    async def call(
        self,
        operation: Operation,
        url: str | None,
        payload: bytes,
        signer: Signer,
        *,
        accept: str = "application/json",
        may_be_left: bool = False,
    ) -> Reply:
        """Send a signed request and answer the CA's 2xx. Raises AuthorityFault for all else.

        Without a `url` it goes where the directory puts the operation. Once it is sent its answer
        is waited for, also by a caller that is cancelled meanwhile, unless it `may_be_left`.
        """
        deadline = self._monotonic() + CALL_SECONDS
        try:
            directory = await self._known_directory(deadline)
            target = _entry(directory, operation) if url is None else url
            post = Post(target, payload, signer, directory["newNonce"], accept)
            self._demand_own(post.url)
            self._demand_own(post.new_nonce_url)
        except AuthorityFault as fault:
            fault.is_unsent = True
            raise
        try:
            exchange = self._post(post, deadline, may_be_left=may_be_left)
            return await self._logged(operation, exchange)
        except AuthorityFault as fault:
            if fault.http_status in _MOVED:
                self._directory_until = float("-inf")
            raise

    def _demand_own(self, url: str) -> None:
        origin = origin_of(url)
        if origin not in self._origins:
            raise AuthorityFault(
                FaultKind.SERVER_ERROR,
                f"it names a URL at {one_line(origin)}: list that in acme.origins if it is its own",
            )

    async def _post(self, post: Post, deadline: float, *, may_be_left: bool) -> Reply:
        try:
            return await self._network.post(post, deadline, may_be_left=may_be_left)
        except NoNonce as refusal:
            fault = (
                senseless(Operation.NEW_NONCE, "holds no usable nonce")
                if refusal.reply.is_success
                else fault_of(Operation.NEW_NONCE, refusal.reply, self._now_utc())
            )
            fault.is_unsent = True
            raise fault from None

    async def _known_directory(self, deadline: float) -> Mapping[str, str]:
        at_hand = self.directory_at_hand()
        if at_hand is not None:
            return at_hand
        async with self._lock:
            now = self._monotonic()
            if now < self._directory_until:
                return self._directory
            if self._away is not None and now < self._away_until:
                raise again(self._away, self._away.kind)
            await self._read_directory(deadline)
            return self._directory

    async def _read_directory(self, deadline: float) -> None:
        try:
            exchange = self._network.get(self._directory_url, deadline)
            self._learn(await self._logged(Operation.DIRECTORY, exchange))
        except AuthorityFault as fault:
            self._away, self._away_until = fault, self._monotonic() + AWAY_SECONDS
            raise

    def _learn(self, reply: Reply) -> None:
        entries = reply.json_object() or {}
        directory = {name: url for name, url in entries.items() if isinstance(url, str)}
        if any(name not in directory for name in _NEEDED):
            raise senseless(Operation.DIRECTORY, "is not an ACME directory")
        meta = entries.get("meta")
        self._meta = meta if isinstance(meta, dict) else {}
        self._directory, self._away = directory, None
        self._directory_until = self._monotonic() + DIRECTORY_SECONDS

    async def _logged(self, operation: Operation, exchange: Awaitable[Reply]) -> Reply:
        began = self._monotonic()
        status: int | None = None
        outcome = "not asked"
        try:
            reply = await exchange
            status = reply.status
            if not reply.is_success:
                raise fault_of(operation, reply, self._now_utc())
            outcome = "ok"
        except AuthorityFault as fault:
            outcome = fault.kind.value
            raise
        finally:
            seconds = self._monotonic() - began
            measures.acme_asked(self._name, operation.value, outcome, seconds)
            tracing.acme_asked(self._name, operation.value, outcome, status, seconds)
            ms = round(seconds * 1000)
            _log.debug(
                "call to the CA", method=operation.value, status=status, ms=ms, outcome=outcome
            )
        return reply


def _entry(directory: Mapping[str, str], operation: Operation) -> str:
    url = directory.get(operation.value)
    if url is None:
        raise AuthorityFault(FaultKind.REFUSED, f"the CA's directory has no {operation.value}")
    return url
