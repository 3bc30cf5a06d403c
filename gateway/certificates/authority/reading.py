"""What a CA's orders and authorizations say, as plain values.

Pure: one answer in, one view out. Tolerant where CAs differ (unknown keys, unknown challenge
types, challenges without a token), strict in what the issuance relies on: what lacks a status or a
URL that every order must have is a SERVER_ERROR. `acme`'s own classes reject a whole authorization
for one odd challenge, and a whole problem for one odd identifier: they are not used for reading.

Called by `client`.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, TypeGuard

from gateway.certificates.authority.faults import Operation, classify, senseless
from gateway.certificates.authority.replies import Problem, Reply, one_line, read_problem
from gateway.certificates.authority.signing import Signer
from gateway.certificates.orders import (
    AccountView,
    AuthorizationView,
    FaultKind,
    OrderView,
    RenewalInfo,
)
from gateway.moments import nearest_epoch_ms

MAX_URL_CHARACTERS: Final = 2048
MAX_HOSTNAMES: Final = 5
"""How many of an order's names are read: it has one, or is not ours."""

_MAX_HOSTNAME_CHARACTERS: Final = 253

_ORDER_STATUSES: Final = frozenset({"pending", "ready", "processing", "valid", "invalid"})
# Not of RFC 8555, but what Pebble calls an order whose authorization has come to such an end.
_ORDER_ENDS: Final = frozenset({"deactivated", "expired", "revoked"})
_AUTHORIZATION_STATUSES: Final = frozenset(
    {"pending", "valid", "invalid", "deactivated", "expired", "revoked"}
)
_ACCOUNT_STATUSES: Final = frozenset({"valid", "deactivated", "revoked"})
# RFC 8555, 8.3: at least 128 bits, base64url.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{22,}")
_RFC3339: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[Tt ](?P<time>\d\d:\d\d:\d\d)(\.(?P<fraction>\d{1,30}))?"
    r"(?P<offset>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
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
        hostnames=tuple(islice(_hostnames(body), MAX_HOSTNAMES)),
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
    problems = _problems_of(challenges)
    return AuthorizationView(
        url=url,
        hostname=_cleaned(hostname),
        status=_status(operation, body, _AUTHORIZATION_STATUSES),
        challenge_url=_url(operation, usable.get("url"), "challenge") if usable else None,
        txt_value=signer.txt_value(str(usable["token"])) if usable else None,
        problem=problems[0].told(_secrets(challenges, signer)) if problems else None,
        retry_after_seconds=reply.retry_after_seconds(now_utc),
        key_thumbprint=signer.thumbprint if usable else None,
        is_refused=any(classify(operation, 403, one) is FaultKind.REFUSED for one in problems),
    )


def read_renewal_info(reply: Reply, now_utc: datetime) -> RenewalInfo:
    """Read renewal information (RFC 9773, 4.2). Raises AuthorityFault (SERVER_ERROR)."""
    operation = Operation.RENEWAL_INFO
    body = _object(operation, reply)
    window = body.get("suggestedWindow")
    times = window if isinstance(window, dict) else {}
    start_ms, end_ms = _rfc3339_ms(times.get("start")), _rfc3339_ms(times.get("end"))
    if start_ms is None or end_ms is None or end_ms <= start_ms:
        raise senseless(operation, "has no window in which to renew")
    explanation = body.get("explanationURL")
    return RenewalInfo(
        window_start_ms=nearest_epoch_ms(start_ms),
        window_end_ms=nearest_epoch_ms(end_ms),
        explanation_url=explanation if is_url(explanation) else None,
        retry_after_seconds=reply.retry_after_seconds(now_utc),
    )


def read_account(operation: Operation, reply: Reply, signer: Signer) -> AccountView:
    """Read an account (RFC 8555, 7.1.2), which is the signer's. Raises AuthorityFault."""
    body = _object(operation, reply)
    orders = body.get("orders")
    return AccountView(
        url=signer.account_url,
        key_type=signer.key_type,
        key_thumbprint=signer.thumbprint,
        status=_status(operation, body, _ACCOUNT_STATUSES),
        contact=tuple(one_line(one) for one in _list(body, "contact") if isinstance(one, str)),
        orders_url=orders if is_url(orders) else None,
    )


def is_url(value: object) -> TypeGuard[str]:
    """Answer whether a foreign value is a URL that the CA may be asked at."""
    return (
        isinstance(value, str)
        and len(value) <= MAX_URL_CHARACTERS
        and _URL.fullmatch(value) is not None
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


def _problems_of(challenges: list[dict[str, object]]) -> list[Problem]:
    problems = [read_problem(one.get("error")) for one in challenges]
    return [problem for problem in problems if problem is not None]


def _secrets(challenges: list[dict[str, object]], signer: Signer) -> Iterator[str]:
    """What a CA may quote of a challenge; a key authorization is made of the first two."""
    yield signer.thumbprint
    for token in (one.get("token") for one in challenges):
        # A shorter text is no token, and might be a part of any word.
        if isinstance(token, str) and _TOKEN.fullmatch(token):
            yield token
            yield signer.txt_value(token)


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


def _hostnames(body: dict[str, object]) -> Iterator[str]:
    for one in _list(body, "identifiers"):
        if isinstance(one, dict) and one.get("type") == "dns":
            value = one.get("value")
            if isinstance(value, str):
                yield _cleaned(value)


def _cleaned(hostname: str) -> str:
    """A name as it may be logged and told; one that is too long is no hostname any more."""
    line = one_line(hostname).lower()
    if len(line) > _MAX_HOSTNAME_CHARACTERS:
        line = line[: _MAX_HOSTNAME_CHARACTERS - 1] + "…"
    return line


def _rfc3339_ms(value: object) -> int | None:
    # `fromisoformat` takes more than RFC 3339 and wants no more than six digits of a second.
    matched = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        return None
    fraction = (matched["fraction"] or "")[:3].ljust(3, "0")
    offset = "+00:00" if matched["offset"] in "Zz" else matched["offset"]
    try:
        moment = datetime.fromisoformat(f"{matched['date']}T{matched['time']}{offset}")
    except ValueError:
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int(fraction)


def _url(operation: Operation, value: object, what: str) -> str:
    if is_url(value):
        return value
    raise senseless(operation, f"has no usable {what} URL")
