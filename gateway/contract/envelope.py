"""The envelope around every call: bytes of a request in, bytes of a response out.

Responsible for the boundary: what leaves `parse_request` is plain, shallow JSON data whose texts
are valid Unicode, or nothing at all. Knows no method and no schema, and never echoes a request: it
holds the token. Used by the HTTP layer, rendering also by its error pages; by clients the other way
round.

The checks are arranged so that an honest body costs one pass of the C parser. Depth is only
measured when there are enough brackets to exceed it, before the parser recurses; lone surrogates
are only looked for when the text has an escape that could spell one.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from gateway.contract.errors import CallError, EnvelopeInvalid
from gateway.contract.faults import described, quoted

MAX_BODY_BYTES: Final = 65_536
MAX_DEPTH: Final = 32

# No double has more than 309 digits before its point; Python's own limit can be switched off.
_MAX_INTEGER_CHARACTERS: Final = 400
# A text ends at its quote or, in a broken body, where the body ends: always found in one pass.
_TEXT: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET: Final = re.compile(r"[][{}]")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(slots=True)
class RequestEnvelope:
    """A call as it was sent. `request` still holds the token, so it is never shown."""

    method: str
    request: dict[str, object] = field(repr=False)
    correlation_id: str | None


NO_STATUS: Final = "ok"
"""What an answer without a status counts as."""


class Written(NamedTuple):
    """The `response` object of an answer as JSON, and its `status`, or `NO_STATUS`."""

    status: str
    body: bytes


def written(wire: dict[str, Any]) -> Written:
    """A `response` object, of JSON values only, as it is sent."""
    return Written(str(wire.get("status", NO_STATUS)), json_bytes(wire))


def json_bytes(value: object) -> bytes:
    """A JSON value in UTF-8, without a space.

    By pydantic's writer, which takes a twentieth of the standard library's time for a certificate.
    Texts of other servers may hold what UTF-8 cannot, which it refuses: an answer must be readable
    all the same.
    """
    try:
        return to_json(value)
    except ValueError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def parse_request(body: bytes) -> RequestEnvelope:
    """Read the body of a call: UTF-8 JSON of at most `MAX_BODY_BYTES`.

    Raises:
        EnvelopeInvalid: whatever is wrong; no other exception, whatever the bytes.

    """
    if len(body) > MAX_BODY_BYTES:
        raise EnvelopeInvalid(f"The body has more than {MAX_BODY_BYTES} bytes.", http_status=413)
    envelope = parse_json(body)
    if type(envelope) is not dict:
        raise EnvelopeInvalid(f"The body must be an object, not {described(envelope)}.")
    method = envelope.get("method")
    if type(method) is not str:
        raise EnvelopeInvalid(f"method must be text, not {described(method)}.")
    request = envelope.get("request")
    if request is not None and type(request) is not dict:
        raise EnvelopeInvalid(f"request must be an object, not {described(request)}.")
    return RequestEnvelope(method, request or {}, _correlation_id(envelope.get("correlation")))


def render_request(
    method: str, correlation_id: str, request: dict[str, Any], api_token: str
) -> bytes:
    """The body of a call, UTF-8 JSON, as a client sends it."""
    envelope = {
        "method": method,
        "request": {"apiToken": api_token, **request},
        "response": None,
        "correlation": {"id": correlation_id, "phase": "request"},
    }
    return json.dumps(envelope, allow_nan=False, separators=(",", ":")).encode("ascii")


def render_response(
    method: str | None,
    correlation_id: str | None,
    response: dict[str, Any] | bytes | None,
    error: CallError | None,
) -> bytes:
    """The body of an answer, UTF-8 JSON: with a response, or with an error and a null response.

    `response` may be written already, as `json_bytes` does. `method` and `correlation_id` are null
    when the request could not be read.
    """
    correlation = b"null"
    if correlation_id is not None:
        correlation = b'{"id":%b,"phase":"response"}' % json_bytes(correlation_id)
    body = [
        b'{"method":',
        json_bytes(method),
        b',"request":null,"response":',
        response if isinstance(response, bytes) else json_bytes(response),
        b',"correlation":',
        correlation,
    ]
    if error is not None:
        body += (b',"error":', json_bytes({"text": error.text, "data": error.data()}))
    # Joined once: to format several KB takes them through the memory twice.
    return b"".join((*body, b"}"))


def _correlation_id(correlation: object) -> str | None:
    if correlation is None:
        return None
    if type(correlation) is not dict:
        raise EnvelopeInvalid(f"correlation must be an object, not {described(correlation)}.")
    correlation_id = correlation.get("id")
    if type(correlation_id) is not str:
        raise EnvelopeInvalid(f"correlation.id must be text, not {described(correlation_id)}.")
    return correlation_id


def parse_json(body: bytes) -> object:
    """Read JSON as RFC 8259 has it, of bounded depth, with distinct keys and whole texts.

    Raises:
        EnvelopeInvalid: whatever is wrong.

    """
    try:
        text = body.decode("utf-8")
        _refuse_depth(text)
        value = _DECODER.decode(text)
        if _SURROGATE_ESCAPE.search(text):
            # Pairs were joined by the parser; only a lone half fails to encode.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise EnvelopeInvalid("The body is not UTF-8.") from None
    except UnicodeEncodeError:
        raise EnvelopeInvalid("The body holds half of a surrogate pair.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise EnvelopeInvalid(f"The body is not JSON ({where}).") from None
    return value


def _refuse_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise EnvelopeInvalid(f"The body is nested deeper than {MAX_DEPTH}.")


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise EnvelopeInvalid(f"The body has the key {quoted(twice)} twice in one object.")
    return entries


def _refuse_constant(name: str) -> object:
    raise EnvelopeInvalid(f"The body holds {name}, which is not JSON.")


def _int(digits: str) -> int | float:
    """A whole number; one that no field could ever take as the infinity it overflows to.

    Python refuses to read integers of thousands of digits, and reads the long ones slowly.
    """
    return int(digits) if len(digits) <= _MAX_INTEGER_CHARACTERS else float(digits)


# Made once: to make one takes as long as to read a call with it.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_int=_int
)
