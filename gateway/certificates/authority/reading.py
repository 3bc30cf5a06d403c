"""What a CA's orders and authorizations say, as plain values.

Pure: one answer in, one view out. Tolerant where CAs differ (unknown keys, unknown challenge
types, challenges without a token), strict in what the issuance relies on: what lacks a status or a
URL that every order must have is a SERVER_ERROR. `acme`'s own classes reject a whole authorization
for one odd challenge, and a whole problem for one odd identifier: they are not used for reading.

Called by `client`.
"""

import re
from datetime import datetime
from typing import Final

from gateway.certificates.authority.faults import Operation, senseless
from gateway.certificates.authority.replies import Reply, read_problem
from gateway.certificates.authority.signing import Signer
from gateway.certificates.orders import AuthorizationView, OrderView

MAX_URL_CHARACTERS: Final = 2048

_ORDER_STATUSES: Final = frozenset({"pending", "ready", "processing", "valid", "invalid"})
# Not of RFC 8555, but what Pebble calls an order whose authorization has come to such an end.
_ORDER_ENDS: Final = frozenset({"deactivated", "expired", "revoked"})
_AUTHORIZATION_STATUSES: Final = frozenset(
    {"pending", "valid", "invalid", "deactivated", "expired", "revoked"}
)
# RFC 8555, 8.3: at least 128 bits, base64url.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{22,}")
_URL: Final = re.compile(r"https?://[!-~]+")


def read_order(operation: Operation, reply: Reply, url: str, now_utc: datetime) -> OrderView:
    """Read an order, which lies at `url`. Raises AuthorityFault (SERVER_ERROR)."""
    body = _object(operation, reply)
    status = _status(operation, body, _ORDER_STATUSES | _ORDER_ENDS)
    problem = read_problem(body.get("error"))
    return OrderView(
        url=url,
        status="invalid" if status in _ORDER_ENDS else status,
        authorization_urls=tuple(
            _url(operation, one, "authorization") for one in _list(body, "authorizations")
        ),
        finalize_url=_url(operation, body.get("finalize"), "finalize"),
        certificate_url=(
            _url(operation, body["certificate"], "certificate") if body.get("certificate") else None
        ),
        problem=problem.words if problem is not None else None,
        retry_after_seconds=reply.retry_after_seconds(now_utc),
    )


def read_authorization(
    reply: Reply, url: str, signer: Signer, now_utc: datetime
) -> AuthorizationView:
    """Read an authorization, which lies at `url`. Raises AuthorityFault (SERVER_ERROR)."""
    operation = Operation.READ_AUTHORIZATION
    body = _object(operation, reply)
    identifier = body.get("identifier")
    hostname = identifier.get("value") if isinstance(identifier, dict) else None
    if not isinstance(hostname, str):
        raise senseless(operation, "names no identifier")
    listed = body.get("challenges")
    challenges = (
        [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    )
    usable = next((one for one in challenges if _is_usable(one)), None)
    return AuthorizationView(
        url=url,
        hostname=hostname.lower(),
        status=_status(operation, body, _AUTHORIZATION_STATUSES),
        challenge_url=_url(operation, usable.get("url"), "challenge") if usable else None,
        challenge_status=str(usable.get("status", "pending")) if usable else None,
        txt_value=signer.txt_value(str(usable["token"])) if usable else None,
        problem=_why_failed(challenges),
        retry_after_seconds=reply.retry_after_seconds(now_utc),
    )


def new_location(operation: Operation, reply: Reply) -> str:
    """Answer the URL of what was just made. Raises AuthorityFault (SERVER_ERROR)."""
    return _url(operation, reply.headers.get("location"), "Location")


def _is_usable(challenge: dict[str, object]) -> bool:
    token = challenge.get("token")
    return (
        challenge.get("type") == "dns-01"
        and isinstance(token, str)
        and _TOKEN.fullmatch(token) is not None
    )


def _why_failed(challenges: list[dict[str, object]]) -> str | None:
    problems = [read_problem(one.get("error")) for one in challenges]
    return next((problem.words for problem in problems if problem is not None), None)


def _object(operation: Operation, reply: Reply) -> dict[str, object]:
    body = reply.json_object()
    if body is None:
        raise senseless(operation, "is not a JSON object")
    return body


def _list(body: dict[str, object], key: str) -> list[object]:
    value = body.get(key)
    return value if isinstance(value, list) else []


def _status(operation: Operation, body: dict[str, object], known: frozenset[str]) -> str:
    status = body.get("status")
    if not isinstance(status, str) or status not in known:
        raise senseless(operation, "has no status that is known")
    return status


def _url(operation: Operation, value: object, what: str) -> str:
    if isinstance(value, str) and len(value) <= MAX_URL_CHARACTERS and _URL.fullmatch(value):
        return value
    raise senseless(operation, f"has no usable {what} URL")
