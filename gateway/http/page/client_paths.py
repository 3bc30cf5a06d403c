"""A client's id as a segment of a path, and back. Pure.

An id is any visible ASCII, and a segment is not: browsers take `.` and `..` out of a path even when
they are percent-encoded, a `/` ends the segment, and `new` is a page. So what could mean something
in a path is written as `~` and two hex digits.

Called by the templates and by the pages about clients.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.identifiers import client_id_fault
from gateway.contract.names import ClientId
from gateway.http.page.faults import PageFault
from gateway.http.page.shapes import path_to

if TYPE_CHECKING:
    from gateway.http.page.shapes import Visit

_ELSEWHERE: Final = frozenset({"new", ".", ".."})
"""Segments that are another page, or none."""

_LONGEST: Final = BOUNDS.max_app_id_characters
_KEPT: Final = re.compile(r"[A-Za-z0-9._-]")
_WRITTEN: Final = re.compile(r"~([0-9A-F]{2})")


def client_path(client_id: str, *more: str) -> str:
    """The path of a client's page, or of one below it."""
    # What is longer is nobody's id, and may be of any length.
    return path_to("clients", client_segment(client_id[: _LONGEST + 1]), *more)


def client_segment(client_id: str) -> str:
    """A client's id as one segment of a path; `client_id_in` reads it back."""
    if client_id in _ELSEWHERE:
        return _written(client_id[0]) + client_id[1:]
    return "".join(each if _KEPT.fullmatch(each) else _written(each) for each in client_id)


def client_id_in(segment: str) -> ClientId | None:
    """The client's id that a segment spells; None where that can be nobody's."""
    spelled = _WRITTEN.sub(lambda found: chr(int(found[1], 16)), segment)
    return ClientId(spelled) if client_id_fault(spelled) is None else None


def client_id_of(visit: Visit) -> ClientId:
    """The client whose page is visited; raises PageFault (404) where that can be nobody."""
    client_id = client_id_in(visit.params["client"])
    if client_id is None:
        raise PageFault(404, "No client can have this id.")
    return client_id


def _written(character: str) -> str:
    # What is no text at all, as others may have stored it, is nobody's id.
    return "".join(f"~{byte:02X}" for byte in character.encode(errors="replace"))
