"""HTTP to a CA, and the nonces it hands out.

Responsible for one exchange at a time, bounded in time and size, without proxies, redirects or
anything else from the environment; and for sending a signed request again when the CA rejects its
nonce. Judges no answer but that one. One Network belongs to one event loop.

`ClientNetwork` of acme 5.9.0 is not used: it repeats a rejected nonce once only and throws away the
nonces that errors carry (5% rejections make 1.6% of issuances fail), blocks its thread, loses the
problem document of a 409, and logs request bodies and nonces. How a request gets there and its
answer back is known to `connections`.

Called by `caller`.
"""

import base64
import binascii
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import certifi

from gateway.certificates.authority.answers import Cut, NoAnswer, TooLong
from gateway.certificates.authority.connections import Connections, Request
from gateway.certificates.authority.replies import Reply, one_line
from gateway.certificates.authority.signing import Signer
from gateway.certificates.orders import AuthorityFault, FaultKind

# Where nine of ten nonces are rejected, ten tries would fail every third call. Bounded in time by
# the call's deadline too.
MAX_NONCE_RETRIES: Final = 50
MAX_KEPT_NONCES: Final = 64

_NONE: Final[Mapping[str, str]] = {}


class NoNonce(Exception):
    """The CA gave no usable nonce when it was asked for one; `reply` is what it said instead."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


@dataclass(frozen=True, slots=True)
class Post:
    """A request to sign and send; an empty payload is a read (POST-as-GET, RFC 8555, 6.3)."""

    url: str
    payload: bytes
    signer: Signer
    new_nonce_url: str
    accept: str = "application/json"


class Network:
    """A pool of connections to one CA, with its unused nonces.

    Every `deadline` is on the clock `monotonic`. Each method raises AuthorityFault when there is no
    answer, and answers whatever the CA says otherwise. LeaseOver goes through: nothing was sent.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        ca_bundle: Path | None,
        connections: int,
        monotonic: Callable[[], float],
    ) -> None:
        """Trust the PEM roots in `ca_bundle`, the public ones when it is None.

        Raises ValueError when the bundle can't be used.
        """
        self._connections = Connections(
            _tls_context(ca_bundle), most=connections, monotonic=monotonic
        )
        self._headers = {
            "User-Agent": user_agent,
            "Accept-Encoding": "identity",
            "Accept-Language": "en",
        }
        self._monotonic = monotonic
        # Newest last and used first: those left from before a CA's restart die out unused.
        self._nonces: deque[bytes] = deque(maxlen=MAX_KEPT_NONCES)

    def close(self) -> None:
        """Close all idle connections."""
        self._connections.close()

    async def get(self, url: str, deadline: float) -> Reply:
        """Read an unsigned resource. A caller that is cancelled gets no answer."""
        return await self._read("GET", url, deadline)

    async def post(self, post: Post, deadline: float, *, may_be_left: bool = False) -> Reply:
        """Send a signed request; again under another nonce when the CA rejects its nonce.

        Once it is sent its answer is waited for, also by a caller that is cancelled meanwhile,
        unless it `may_be_left`.

        Raises NoNonce too.
        """
        headers = {"Content-Type": "application/jose+json", "Accept": post.accept}
        retries = 0
        while True:
            nonce = await self._take_nonce(post.new_nonce_url, deadline)
            body = post.signer.sign(post.payload, url=post.url, nonce=nonce)
            request = self._request("POST", post.url, body, headers)
            reply, was_lost = await self._exchange(request, deadline, may_be_left=may_be_left)
            fresh = _nonce_of(reply)
            if fresh is not None:
                self._nonces.append(fresh)
            if not _is_bad_nonce(reply) or retries == MAX_NONCE_RETRIES:
                return reply
            if was_lost and post.payload:
                raise _unreachable("the CA's answer was lost: it may have done what was asked")
            retries += 1

    async def _take_nonce(self, new_nonce_url: str, deadline: float) -> bytes:
        if self._nonces:
            return self._nonces.pop()
        reply = await self._read("HEAD", new_nonce_url, deadline)
        nonce = _nonce_of(reply)
        if nonce is None:
            raise NoNonce(reply)
        return nonce

    async def _read(self, method: str, url: str, deadline: float) -> Reply:
        request = self._request(method, url)
        try:
            return (await self._exchange(request, deadline, may_be_left=True))[0]
        except AuthorityFault as fault:
            fault.is_unsent = True  # a read alone
            raise

    def _request(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] = _NONE
    ) -> Request:
        return Request(method, url, {**self._headers, **headers}, body)

    async def _exchange(
        self, request: Request, deadline: float, *, may_be_left: bool
    ) -> tuple[Reply, bool]:
        """Answer the reply, and whether one before that may have been lost.

        A CA may close an idle connection at the moment it is used again. The same bytes are then
        sent once more, which can't be done twice: their nonce is good for one request only.
        """
        is_second, is_lost = False, False
        while True:
            if deadline <= self._monotonic():
                raise _unreachable("the CA took too long to answer", is_unsent=not is_lost)
            try:
                exchange = self._connections.exchange(request, deadline, may_be_left=may_be_left)
                return await exchange, is_lost
            except NoAnswer as reason:
                is_lost = is_lost or not reason.is_unsent
                if is_second or not isinstance(reason, Cut):
                    raise _unreachable(str(reason), is_unsent=not is_lost) from None
                is_second = True
            except TooLong:
                detail = "the CA's answer is too long"
                raise AuthorityFault(FaultKind.SERVER_ERROR, detail) from None


def _tls_context(ca_bundle: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_bundle or certifi.where())
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "no PEM certificates in it"
        raise ValueError(f"acme.ca_bundle {ca_bundle} cannot be used: {reason}") from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _is_bad_nonce(reply: Reply) -> bool:
    if reply.is_success:
        return False
    problem = reply.problem()
    return problem is not None and problem.type == "badNonce"


def _nonce_of(reply: Reply) -> bytes | None:
    text = reply.headers.get("replay-nonce", "")
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    # `acme` encodes the nonce again when it signs: only a text that survives that is of use.
    same = base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text
    return raw if raw and same else None


def _unreachable(sentence: str, *, is_unsent: bool = False) -> AuthorityFault:
    return AuthorityFault(FaultKind.UNREACHABLE, one_line(sentence), is_unsent=is_unsent)
