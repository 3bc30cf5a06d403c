"""What the worker tells of a step that ended something: figures, and what the log warns of.

Decides and stores nothing. Called by `worker`, once a step is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from gateway import measures
from gateway.certificates.states import Issuance, State

if TYPE_CHECKING:
    from gateway.certificates import events
    from gateway.contract.names import Hostname

_log = structlog.get_logger(__name__)


def count(issuance: Issuance, authority: str, now_ms: int, *, issued: bool) -> None:
    """Count an issuance that came to its certificate or to nothing; others are not counted."""
    if issued:
        measures.issuance_ended(authority, "issued")
        measures.issued_within(authority, (now_ms - issuance.begun_at_ms) / 1000)
    elif issuance.state is State.FAILED and issuance.reason is not None:
        measures.issuance_ended(authority, issuance.reason.value)


def tell_held_up(hostname: Hostname, issuance: Issuance, now_ms: int) -> None:
    """Warn of an issuance that waits or failed."""
    _log.warning(
        "issuance held up",
        hostname=hostname,
        authority=issuance.directory_url or issuance.failed_at,
        state=issuance.state.value,
        reason=issuance.reason and issuance.reason.value,
        detail=issuance.message,
        in_seconds=(issuance.due_at_ms - now_ms) / 1000,
    )


def tell_passed_over(hostname: Hostname, event: events.PropagationSeen) -> None:
    """Warn of name servers that an issuance did not wait for any longer."""
    if event.silent:
        servers = ", ".join(event.silent)
        _log.warning("silent name servers gone on without", hostname=hostname, servers=servers)
