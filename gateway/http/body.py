"""Reading a request's body within its bounds of size and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.contract import MAX_BODY_BYTES, EnvelopeInvalid
from gateway.http.listener.cycle import WHOLE_BODY

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from gateway.http.deadlines import Deadline

BODY_BOUND_SECONDS: Final = 10.0

_JSON: Final = b"application/json"
_DIGITS: Final = len(str(MAX_BODY_BYTES))


class _Gone(Exception):
    """Nobody is there any more to send the rest."""


def whole_body(scope: Scope) -> bytes | None:
    """The whole body of a JSON request; None where it has not come yet, or nobody tells.

    Raises:
        EnvelopeInvalid: not JSON content (415), or larger than `MAX_BODY_BYTES` (413).
    """
    content_type = content_length = b""
    for name, value in reversed(scope["headers"]):  # of several the first one counts
        if name == b"content-type":
            content_type = value
        elif name == b"content-length":
            content_length = value
    # Mostly spelled so; another spelling is looked at.
    if content_type != _JSON and content_type.split(b";", 1)[0].strip().lower() != _JSON:
        raise EnvelopeInvalid("The content type must be application/json.", 415)
    # So many digits are always few enough.
    if len(content_length) >= _DIGITS and _is_larger_than_allowed(content_length.decode("latin-1")):
        raise _too_large()
    take = scope.get("extensions", {}).pop(WHOLE_BODY, None)
    body: bytes | None = None if take is None else take()
    if body is not None and len(body) > MAX_BODY_BYTES:
        raise _too_large()
    return body


async def collect_body(receive: Receive, within: Deadline) -> bytes:
    """The body as it comes, within a time limit; what `whole_body` has judged.

    Raises:
        EnvelopeInvalid: larger than `MAX_BODY_BYTES` (413), or too slow or cut off (408).
    """
    try:
        with within:
            return await _collect(receive)
    except (TimeoutError, _Gone):
        raise EnvelopeInvalid("The body did not arrive in time.", 408) from None


def _is_larger_than_allowed(content_length: str) -> bool:
    """By the number of digits first: Python refuses to read thousands of them as a number."""
    digits = content_length.lstrip("0")
    return digits.isdecimal() and (len(digits) > _DIGITS or int(digits) > MAX_BODY_BYTES)


async def _collect(receive: Receive) -> bytes:
    chunks, size, is_whole = [], 0, False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise _too_large()
        chunks.append(chunk)
        is_whole = not message.get("more_body", False)
    return b"".join(chunks)


def _too_large() -> EnvelopeInvalid:
    return EnvelopeInvalid(f"The body is larger than {MAX_BODY_BYTES} bytes.", 413)
