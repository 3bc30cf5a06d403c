"""A request's head, once it is whole: its target, its framing, and the head without Upgrade.

Pure. Must not: know the connection that it came on. Called by `protocol`.
"""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import httptools

if TYPE_CHECKING:
    from collections.abc import Sequence

    Headers = Sequence[tuple[bytes, bytes]]

_VERSIONS: Final = frozenset({"1.0", "1.1"})


@lru_cache(64)
def target_of(url: bytes) -> tuple[str, bytes, bytes]:
    """A request's path, decoded and as it came, and its query; raises httptools' errors."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


def framing_fault(version: str, headers: Headers) -> HTTPStatus | None:
    """What a head is refused with on whose framing two servers may not agree; None: it is plain.

    The names of headers are in lower case.
    """
    hosts, codings = 0, []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            codings.append(value.lower())
    if version not in _VERSIONS:
        return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        return HTTPStatus.BAD_REQUEST
    if codings and (codings != [b"chunked"] or version == "1.0"):
        return HTTPStatus.BAD_REQUEST
    return None


def without_upgrade(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """The head as it would have come without that header, as RFC 9110 section 7.8 allows."""
    lines = [b"%b %b HTTP/%b" % (method, target, version.encode())]
    lines += [b"%b: %b" % pair for pair in headers if pair[0] != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])
