"""What a browser sends: the fields of a form or of a URL's query, read within bounds.

Responsible for `application/x-www-form-urlencoded` bodies. Must not: know what a field means.
Called by `frame`, and by the pages through `Fields`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect

from gateway.http.page.faults import PageFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request

MOST_BYTES: Final = 64 * 1024
MOST_FIELDS: Final = 100
BODY_SECONDS: Final = 10.0

_FORM: Final = "application/x-www-form-urlencoded"


class Fields:
    """Names and values in their order; a name may come more than once."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self._pairs = tuple(pairs)

    def text(self, name: str, otherwise: str = "") -> str:
        """The last value of a name, without the white space around it."""
        values = self.all(name)
        return values[-1].strip() if values else otherwise

    def raw(self, name: str) -> str:
        """The last value of a name as it was sent; empty where there is none."""
        values = self.all(name)
        return values[-1] if values else ""

    def all(self, name: str) -> list[str]:
        """Every value of a name, as sent."""
        return [value for each, value in self._pairs if each == name]

    def __contains__(self, name: object) -> bool:
        """Whether the name was sent."""
        return any(each == name for each, _ in self._pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)


def read_fields(text: str) -> Fields:
    """Take a query or a form apart; raises PageFault (400) when it is none."""
    try:
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            max_num_fields=MOST_FIELDS,
            encoding="utf-8",
            errors="strict",
        )
    except ValueError:
        raise PageFault(400, "What was sent cannot be read as a form.") from None
    return Fields(pairs)


async def read_body(request: Request) -> bytes:
    """The whole body of a form.

    Raises:
        PageFault: no form (415), larger than `MOST_BYTES` (413), or too slow or cut off (408).
    """
    content_type = request.headers.get("content-type", "")
    if content_type.split(";", 1)[0].strip().lower() != _FORM:
        raise PageFault(415, "A form of this page was expected.")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _collect(request)
    except (TimeoutError, ClientDisconnect):
        raise PageFault(408, "The form did not arrive in time.") from None


def form_in(body: bytes) -> Fields:
    """The fields of a body as `read_body` answers it; raises PageFault (400)."""
    try:
        return read_fields(body.decode("ascii"))
    except UnicodeDecodeError:
        raise PageFault(400, "What was sent cannot be read as a form.") from None


async def _collect(request: Request) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MOST_BYTES:
            raise PageFault(413, f"The form is larger than {MOST_BYTES} bytes.")
        chunks.append(chunk)
    return b"".join(chunks)
