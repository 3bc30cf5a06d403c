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


class _Gone(Exception):
    """Nobody is there any more to send the rest."""


async def read_body(scope: Scope, receive: Receive, within: Deadline) -> bytes:
    """The whole body of a JSON request, within a time limit.

    Raises:
        EnvelopeInvalid: not JSON content (415), larger than `MAX_BODY_BYTES` (413), or too slow or
            cut off (408).
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
    if _is_larger_than_allowed(content_length.decode("latin-1")):
        raise _too_large()
    whole_body = scope.get("extensions", {}).pop(WHOLE_BODY, None)
    body: bytes | None = None if whole_body is None else whole_body()
    if body is not None:
        if len(body) > MAX_BODY_BYTES:
            raise _too_large()
        return body
    try:
        with within:
            return await _collect(receive)
    except (TimeoutError, _Gone):
        raise EnvelopeInvalid("The body did not arrive in time.", 408) from None


def _is_larger_than_allowed(content_length: str) -> bool:
    """By the number of digits first: Python refuses to read thousands of them as a number."""
    digits = content_length.lstrip("0")
    longest = len(str(MAX_BODY_BYTES))
    return digits.isdecimal() and (len(digits) > longest or int(digits) > MAX_BODY_BYTES)


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
