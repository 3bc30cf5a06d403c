"""How long the listener waits for a peer. Read by `accepting`, `protocol` and `server`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds in seconds: for a TLS handshake, for a head or the rest of a body, between requests.

    `reading_seconds` is how long a client may leave what was sent to it unread, `parting_seconds`
    how long an idle connection is kept once the listener is closed.
    """

    handshake_seconds: float = 10.0
    head_seconds: float = 10.0
    keep_alive_seconds: int = 75
    reading_seconds: float = 30.0
    parting_seconds: float = 1.0


DEFAULT_PATIENCE: Final = Patience()
