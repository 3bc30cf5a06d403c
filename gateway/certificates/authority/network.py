"""HTTP to a CA, and the nonces it hands out.

Responsible for one exchange at a time, bounded in time and size, without proxies, redirects or
anything else from the environment; and for sending a signed request again when the CA rejects its
nonce. Judges no answer but that one. Blocking; one Network serves any number of threads.

`ClientNetwork` of acme 5.9.0 is not used: it repeats a rejected nonce once only and throws away the
nonces that errors carry (5% rejections make 1.6% of issuances fail), races when shared by threads,
loses the problem document of a 409, and logs request bodies and nonces. urllib3's pool is made for
threads and takes half the CPU time of `requests` around it, a quarter of httpx's async client.

Called by `caller`.
"""

import base64
import binascii
import contextlib
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import certifi
import urllib3

from gateway.certificates import leases
from gateway.certificates.authority.replies import Reply, one_line
from gateway.certificates.authority.signing import Signer
from gateway.certificates.orders import AuthorityFault, FaultKind

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 20.0
MAX_BODY_BYTES: Final = 1024 * 1024
# Where nine of ten nonces are rejected, ten tries would fail every third call. Bounded in time by
# the call's deadline too.
MAX_NONCE_RETRIES: Final = 50
MAX_KEPT_NONCES: Final = 64

_CHUNK_BYTES: Final = 65536


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
        self._pool = urllib3.PoolManager(
            maxsize=connections, ssl_context=_tls_context(ca_bundle), retries=False
        )
        self._headers = {
            "User-Agent": user_agent,
            "Accept-Encoding": "identity",
            "Accept-Language": "en",
        }
        self._monotonic = monotonic
        # Newest last and used first: those left from before a CA's restart die out unused. The
        # append and pop of a deque are atomic, so threads need no lock.
        self._nonces: deque[bytes] = deque(maxlen=MAX_KEPT_NONCES)

    def close(self) -> None:
        """Close all idle connections."""
        self._pool.clear()

    def get(self, url: str, deadline: float) -> Reply:
        """Read an unsigned resource."""
        return self._exchange("GET", url, {}, None, deadline)[0]

    def post(self, post: Post, deadline: float) -> Reply:
        """Send a signed request; again under another nonce when the CA rejects its nonce.

        Raises NoNonce too.
        """
        headers = {"Content-Type": "application/jose+json", "Accept": post.accept}
        retries = 0
        while True:
            nonce = self._take_nonce(post.new_nonce_url, deadline)
            body = post.signer.sign(post.payload, url=post.url, nonce=nonce)
            reply, was_resent = self._exchange("POST", post.url, headers, body, deadline)
            fresh = _nonce_of(reply)
            if fresh is not None:
                self._nonces.append(fresh)
            if not _is_bad_nonce(reply) or retries == MAX_NONCE_RETRIES:
                return reply
            if was_resent and post.payload:
                raise _unreachable("the CA's answer was lost: it may have done what was asked")
            retries += 1

    def _take_nonce(self, new_nonce_url: str, deadline: float) -> bytes:
        with contextlib.suppress(IndexError):
            return self._nonces.pop()
        reply, _ = self._exchange("HEAD", new_nonce_url, {}, None, deadline)
        nonce = _nonce_of(reply)
        if nonce is None:
            raise NoNonce(reply)
        return nonce

    def _exchange(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, deadline: float
    ) -> tuple[Reply, bool]:
        """Answer the reply, and whether the request went out a second time.

        A CA may close an idle connection at the moment it is used again. The same bytes are then
        sent once more, which can't be done twice: their nonce is good for one request only.
        """
        try:
            try:
                return self._exchange_once(method, url, headers, body, deadline), False
            except urllib3.exceptions.ProtocolError:
                return self._exchange_once(method, url, headers, body, deadline), True
        except urllib3.exceptions.HTTPError as error:
            raise _unreachable(_sentence(error)) from None

    def _exchange_once(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, deadline: float
    ) -> Reply:
        left = deadline - self._monotonic()
        if left <= 0:
            raise _unreachable("the CA took too long to answer")
        leases.check()
        response = self._pool.request(
            method,
            url,
            body=body,
            headers={**self._headers, **headers},
            timeout=urllib3.Timeout(
                connect=min(CONNECT_SECONDS, left), read=min(READ_SECONDS, left)
            ),
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        try:
            content = self._read_body(response, deadline)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        # By name: `items` answers each line of a repeated header, and only the last would be kept.
        replied = {name.lower(): response.headers[name] for name in response.headers}
        return Reply(response.status, replied, content)

    def _read_body(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        content = bytearray()
        # `read1` answers what has arrived; `read` waits for all of it, however slowly it drips.
        while chunk := response.read1(_CHUNK_BYTES, decode_content=False):
            content += chunk
            if len(content) > MAX_BODY_BYTES:
                raise AuthorityFault(FaultKind.SERVER_ERROR, "the CA's answer is too long")
            if self._monotonic() > deadline:
                raise _unreachable("the CA took too long to answer")
        return bytes(content)


def _tls_context(ca_bundle: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_bundle or certifi.where())
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or "no PEM certificates in it"
        raise ValueError(f"acme.ca_bundle {ca_bundle} cannot be used: {reason}") from None


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


def _unreachable(sentence: str) -> AuthorityFault:
    return AuthorityFault(FaultKind.UNREACHABLE, one_line(sentence))


def _sentence(error: urllib3.exceptions.HTTPError) -> str:
    # In own words: those of urllib3 carry the addresses of Python objects.
    cause = error.__cause__ or error.__context__ or (error.args[0] if error.args else None)
    if isinstance(error, urllib3.exceptions.SSLError):
        return _tls_sentence(cause)
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "the CA's host name cannot be resolved"
    # The class of a refused connection is one of timeouts too: it comes first.
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        reason = cause.strerror if isinstance(cause, OSError) else None
        return f"no connection to the CA: {reason or 'refused'}"
    if isinstance(error, urllib3.exceptions.ConnectTimeoutError):
        return "no connection to the CA in time"
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "no answer from the CA in time"
    if isinstance(error, urllib3.exceptions.ProtocolError):
        return "the CA cut the connection off before its answer was complete"
    return f"the CA cannot be asked ({type(error).__name__})"


def _tls_sentence(cause: object) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the CA's own TLS certificate is not trusted ({cause.verify_message}): "
            "acme.ca_bundle must hold the root that it was issued from"
        )
    reason = cause.reason if isinstance(cause, ssl.SSLError) else None
    return f"no TLS connection to the CA ({reason or 'handshake failed'})"
