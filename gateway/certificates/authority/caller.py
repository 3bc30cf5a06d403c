"""One call to a CA, blocking: directory, request, judgement, log line.

Responsible for turning a call into HTTP exchanges and an answer other than 2xx into an
AuthorityFault. Holds the directory; knows no account and no order. May be used by several threads.

Called by `client`, in its threads.
"""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import structlog

from gateway.certificates.authority.faults import Operation, fault_of, senseless
from gateway.certificates.authority.network import Network, NoNonce, Post
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.signing import Signer
from gateway.certificates.orders import AuthorityFault

CALL_SECONDS: Final = 30.0
DIRECTORY_SECONDS: Final = 3600.0

_NEEDED: Final = ("newNonce", "newAccount", "newOrder")

_log = structlog.get_logger(__name__)


class Caller:
    """Makes calls to the CA whose directory is at `directory_url`.

    Each call is bounded as a whole, whatever it consists of.
    """

    def __init__(
        self,
        network: Network,
        directory_url: str,
        *,
        now_utc: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._network = network
        self._directory_url = directory_url
        self._now_utc = now_utc
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._directory: Mapping[str, str] = {}
        self._directory_until = float("-inf")

    def read_directory(self) -> None:
        """Read the directory from the CA, also when it is known. Raises AuthorityFault."""
        self._read_directory(self._monotonic() + CALL_SECONDS)

    def new_account_url(self) -> str:
        """Answer where accounts are made. Raises AuthorityFault."""
        return self._known_directory(self._monotonic() + CALL_SECONDS)["newAccount"]

    def call(
        self,
        operation: Operation,
        url: str | None,
        payload: bytes,
        signer: Signer,
        *,
        accept: str = "application/json",
    ) -> Reply:
        """Send a signed request and answer the CA's 2xx. Raises AuthorityFault for all else.

        Without a `url` it goes where the directory puts the operation.
        """
        deadline = self._monotonic() + CALL_SECONDS
        directory = self._known_directory(deadline)
        target = directory[operation.value] if url is None else url
        post = Post(target, payload, signer, directory["newNonce"], accept)
        return self._logged(operation, lambda: self._post(post, deadline))

    def _post(self, post: Post, deadline: float) -> Reply:
        try:
            return self._network.post(post, deadline)
        except NoNonce as refusal:
            if refusal.reply.is_success:
                raise senseless(Operation.NEW_NONCE, "holds no usable nonce") from None
            raise fault_of(Operation.NEW_NONCE, refusal.reply, self._now_utc()) from None

    def _known_directory(self, deadline: float) -> Mapping[str, str]:
        with self._lock:
            if self._monotonic() >= self._directory_until:
                self._read_directory(deadline)
            return self._directory

    def _read_directory(self, deadline: float) -> None:
        reply = self._logged(
            Operation.DIRECTORY, lambda: self._network.get(self._directory_url, deadline)
        )
        entries = reply.json_object() or {}
        directory = {name: url for name, url in entries.items() if isinstance(url, str)}
        if any(name not in directory for name in _NEEDED):
            raise senseless(Operation.DIRECTORY, "is not an ACME directory")
        self._directory = directory
        self._directory_until = self._monotonic() + DIRECTORY_SECONDS

    def _logged(self, operation: Operation, exchange: Callable[[], Reply]) -> Reply:
        began = self._monotonic()
        status: int | None = None
        outcome = "ok"
        try:
            reply = exchange()
            status = reply.status
            if not reply.is_success:
                raise fault_of(operation, reply, self._now_utc())
        except AuthorityFault as fault:
            outcome = fault.kind.value
            raise
        finally:
            ms = round((self._monotonic() - began) * 1000)
            _log.debug(
                "call to the CA", method=operation.value, status=status, ms=ms, outcome=outcome
            )
        return reply
