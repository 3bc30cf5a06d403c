"""One call to the gateway and its answer, over HTTP.

Responsible for the connection, for bounds in size and time, and for telling apart what may have
reached the gateway and what cannot have: a call is nothing without its body, and that goes out only
on a connection that stands, through TLS and a proxy. Keeps nothing of an answer: no cookie, and no
redirect is looked at. Must not: repeat anything, read a `response`. Used by `asynchronous`.
"""

import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NoReturn

import anyio
import anyio.lowlevel
import httpx

from gateway import __version__
from gateway.client.environment import (
    check_proxies,
    proxy_in_use,
    proxy_settings,
    trust,
    trusted_by,
)
from gateway.client.errors import NoGateway, Unreachable
from gateway.client.retry_after import wait_ms
from gateway.contract import AnswerInvalid
from gateway.contract.faults import described

CONNECT_SECONDS: Final = 5.0
EXCHANGE_SECONDS: Final = 15.0
"""A gateway answers within 10 seconds, whatever its own servers do."""

MAX_ANSWER_BYTES: Final = 1_048_576
"""Far more than any answer has; a request with thousands of violations is told all of them."""

IDLE_SECONDS: Final = 60.0
"""How long a connection is kept without a call; the gateway closes it after 75 seconds."""

PATH: Final = "/typedrequest"
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    # Plain, so that the bytes which are counted are the bytes that are read.
    "Accept-Encoding": "identity",
    "User-Agent": f"gateway-client/{__version__}",
}
_CONTRACT_STATUSES: Final = (200, 400, 405, 408, 413, 415)
_PASSING_STATUSES: Final = (429, 502, 503, 504)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
_NO_HTTP: Final = (
    *("illegal status line", "illegal request line"),
    *("status_code should be", "SWITCH_UPGRADE"),
)
"""What h11 says of an answer's beginning that no HTTP server sends to a plain request."""

CLOSED: Final = "This client is closed: make another one."
FORKED: Final = "This client was made before the process forked: make one after it."
OTHER_LOOP: Final = (
    "This client was used in another event loop, to which its connections belong: make one in each."
)


class Delivery:
    """One call on its way, over all attempts to send it."""

    def __init__(self) -> None:
        self.may_have_arrived = False
        """Whether its body was handed to a connection, so that the gateway may have got it."""

    async def hand_over(self, body: bytes) -> AsyncIterator[bytes]:
        """The body, for the connection that asks for it."""
        self.may_have_arrived = True
        yield body


class Exchange:
    """Sends the body of a call to one gateway and gives back the body of the answer.

    Connections are kept open between calls, so it belongs to the process and the event loop of the
    first one. `url`: the gateway's origin, with or without the path `/typedrequest`.

    Raises:
        ValueError: the URL is none, or plain HTTP to another machine without `allow_plain_http`;
            the CA file is none; or the environment names what cannot be used.

    """

    def __init__(
        self,
        url: str,
        ca_file: Path | str | None,
        *,
        allow_plain_http: bool,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.url = _endpoint(url, allow_plain_http=allow_plain_http)
        self._home: tuple[int, object] | None = None
        self._is_closed = False
        is_https = self.url.scheme == "https"
        verify = trust(ca_file) if is_https else False
        self._proxy = proxy_in_use() if is_https and transport is None else ""
        self._trusted_by = trusted_by() if ca_file is None else ""
        if is_https and transport is None:
            check_proxies()
        try:
            self._http = httpx.AsyncClient(
                headers=_HEADERS,
                # One that takes none: a gateway has no sessions, and what is kept is sent again.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
                # Before httpx looks where a redirect would lead.
                event_hooks={"response": [self._judge_status]},
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                limits=httpx.Limits(
                    max_connections=None,
                    max_keepalive_connections=100,
                    keepalive_expiry=IDLE_SECONDS,
                ),
                verify=verify,
                transport=transport,
                follow_redirects=False,
                # A proxy of the environment would be sent the token as it is.
                trust_env=is_https,
            )
        except (ImportError, ValueError, httpx.InvalidURL):
            # The value is not shown: it may hold a password.
            raise ValueError(f"The settings in {proxy_settings()} cannot be used.") from None

    async def send(self, body: bytes, delivery: Delivery) -> bytes:
        """Send the body of a call; the body of the answer.

        Raises:
            Unreachable: there was none.
            AnswerInvalid: what came is no answer of a gateway.
            RuntimeError: it is closed, or belongs to another process or event loop.

        """
        if self._is_closed:
            raise RuntimeError(CLOSED)
        if not self._is_home():
            raise RuntimeError(FORKED if self._has_forked() else OTHER_LOOP)
        before = sys.exception()
        with anyio.move_on_after(EXCHANGE_SECONDS):
            try:
                async with self._http.stream(
                    "POST",
                    self.url,
                    content=delivery.hand_over(body),
                    headers={"Content-Length": str(len(body))},
                ) as response:
                    return await self._read(response)
            except httpx.HTTPError as error:
                self._tell(error, list(_causes(error, before)), delivery)
            except (httpx.InvalidURL, httpx.StreamError, UnicodeError) as error:
                # What httpx makes of odd headers, in errors that are not of its tree.
                raise AnswerInvalid(
                    f"The answer of {self.url} cannot be read ({type(error).__name__})."
                ) from None
        raise Unreachable(
            f"The gateway at {self.url} did not answer within {EXCHANGE_SECONDS:g} seconds.",
            may_have_arrived=delivery.may_have_arrived,
        )

    async def close(self) -> None:
        """Close the connections; may be repeated.

        A child that was forked leaves its parent's alone, and those of another loop ended with it.
        """
        self._is_closed = True
        if self._is_home():
            await self._http.aclose()

    def _is_home(self) -> bool:
        """Whether this is where the first call was made, or the first one is still to come."""
        here = os.getpid(), anyio.lowlevel.current_token()
        if self._home is None:
            self._home = here
        return self._home == here

    def _has_forked(self) -> bool:
        return self._home is not None and self._home[0] != os.getpid()

    async def _judge_status(self, response: httpx.Response) -> None:
        status = response.status_code
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if status not in _CONTRACT_STATUSES or (status != 200 and not is_json):
            self._refuse_status(status, response.headers)

    async def _read(self, response: httpx.Response) -> bytes:
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise NoGateway(
                f"{self.url} answered with a page for browsers, which no gateway does: is it the "
                "gateway's URL?"
            )
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise AnswerInvalid(f"The answer of {self.url} is compressed, which was not asked for.")
        return await _bounded(response.aiter_bytes())

    def _refuse_status(self, status: int, headers: httpx.Headers) -> NoReturn:
        if status in _PASSING_STATUSES:
            told = headers.get("Retry-After", "") if status in (429, 503) else ""
            why = "takes no more calls right now" if status == 429 else "does not reach it"
            raise Unreachable(
                f"{self.url} answered with HTTP status {status}: what stands before the gateway "
                f"{why}.",
                may_have_arrived=True,
                retry_after_ms=wait_ms(told, headers.get("Date", ""), datetime.now(UTC)),
            )
        raise NoGateway(
            f"{self.url} answered with HTTP status {status}, which no gateway does: is it the "
            "gateway's URL?"
        )

    def _tell(
        self, error: httpx.HTTPError, causes: list[BaseException], delivery: Delivery
    ) -> NoReturn:
        distrust = _distrust(causes) if isinstance(error, httpx.ConnectError) else None
        if distrust is not None:
            whose = f"; whom to trust is said by {self._trusted_by}" if self._trusted_by else ""
            raise Unreachable(
                f"The TLS certificate of {self.url} is not trusted: {distrust}{whose}.",
                may_have_arrived=delivery.may_have_arrived,
                is_lasting=True,
            ) from None
        if _is_plain(causes):
            raise Unreachable(
                f"What answers at {self.url} speaks no TLS: is it the gateway's URL, with its "
                "port for https?",
                may_have_arrived=delivery.may_have_arrived,
            ) from None
        if isinstance(error, httpx.RemoteProtocolError) and _is_no_http(error):
            raise NoGateway(
                f"What answers at {self.url} speaks no HTTP as a gateway does: is it the gateway's"
                " URL?"
            ) from None
        is_unmade = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError)
        reason = _reason(causes)
        proxy = f" ({self._proxy} names a proxy)" if self._proxy else ""
        raise Unreachable(
            f"The gateway at {self.url} cannot be reached: {reason}{proxy}."
            if is_unmade
            else f"The connection to {self.url} broke before an answer: {reason}.",
            may_have_arrived=delivery.may_have_arrived,
        ) from None


def _endpoint(url: str, *, allow_plain_http: bool) -> httpx.URL:
    if "@" in str(url):  # first of all: a password is in no message then
        raise ValueError("The gateway's URL must have no user, no query and no fragment.")
    shown = described(url)  # without a token, which may have been given in its place
    try:
        parsed = httpx.URL(url)
        host = parsed.host
    except (httpx.InvalidURL, TypeError, UnicodeError):  # the last for a name that is no IDN
        raise ValueError(f"{shown} is not a URL.") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise ValueError(f"{shown} must begin with https:// and name a host.")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise ValueError(f"{shown} must have a port from 1 to 65535.")
    if parsed.query or parsed.fragment:
        raise ValueError("The gateway's URL must have no user, no query and no fragment.")
    if parsed.path not in ("", "/", PATH):
        raise ValueError(f"{shown} must have no path but {PATH}.")
    if parsed.scheme == "http" and not allow_plain_http and not is_loopback(host):
        raise ValueError(
            f"{shown} would send the token unencrypted to another machine: use https, or allow it "
            "(allow_plain_http; --allow-plain-http on the command line)."
        )
    return parsed.copy_with(path=PATH)


def is_loopback(host: str) -> bool:
    """Whether a URL's host is this machine, to which a token may be sent unencrypted."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _bounded(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise AnswerInvalid(f"The answer has more than {MAX_ANSWER_BYTES} bytes.")
    return bytes(body)


def _distrust(causes: list[BaseException]) -> str | None:
    """Why the TLS library does not trust the peer, if that is what happened."""
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message.rstrip(".")
    return None


def _is_plain(causes: list[BaseException]) -> bool:
    """Whether the peer answered a TLS handshake with something else."""
    reasons = (each.reason for each in causes if isinstance(each, ssl.SSLError))
    return any(reason in _NO_TLS for reason in reasons)


def _is_no_http(error: httpx.RemoteProtocolError) -> bool:
    """Whether what came is the beginning of something else; one that breaks off may yet come."""
    return any(words in str(error) for words in _NO_HTTP)


def _reason(causes: list[BaseException]) -> str:
    """The system's own words where there are some: httpx says only that it failed."""
    for cause in causes:
        if isinstance(cause, ssl.SSLError | socket.gaierror) and cause.strerror:
            return cause.strerror.rstrip(".")
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
    return str(causes[0]).strip().rstrip(".") or type(causes[0]).__name__


def _causes(error: BaseException, before: BaseException | None) -> Iterator[BaseException]:
    """An error and what was behind it; where several attempts failed, the first of them.

    `before` is what the caller was handling already, to which Python chains whatever comes after.
    """
    cause: BaseException | None = error
    while cause is not None and cause is not before:
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        else:
            # Also where it is suppressed: httpcore 1.0 raises `from None` what the system said.
            cause = cause.__cause__ or cause.__context__
