"""The call that is under way in this context, as log lines and audit entries tell of it.

One variable of the context for all of it, set once a call and read where something is told: to bind
each value for itself, and to gather them for each line, took five times as long. Must not: decide
anything. Begun by `gateway.http`; read by `gateway.logs` and `store.trail`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final


class Underway:
    """One call: its request id, from where it comes, and by which credential once that is known."""

    __slots__ = ("credential", "remote", "request_id")

    def __init__(self, request_id: str, remote: str) -> None:
        self.request_id = request_id
        self.remote = remote
        self.credential: str | None = None

    def told(self) -> dict[str, str]:
        """What is known of it by now, by name."""
        told = {"request_id": self.request_id, "remote": self.remote}
        if self.credential is not None:
            told["credential"] = self.credential
        return told


_UNDERWAY: Final[ContextVar[Underway | None]] = ContextVar("underway", default=None)


def begin(request_id: str, remote: str) -> Underway:
    """From now on this call is under way in this context."""
    call = Underway(request_id, remote)
    _UNDERWAY.set(call)
    return call


def underway() -> Underway | None:
    """The call in this context, if there is one."""
    return _UNDERWAY.get()
