"""Which servers were not heard of lately, and a line in the log when one falls silent or is back.

Responsible for that memory, of one process. A server that takes messages over one of UDP and TCP
only is working, so a silence is ended by the way that was silent: such a server is told of once,
and not with every call. Must not ask anybody anything. Called by `exchange`.
"""

from typing import Final

import structlog

from gateway.dns.errors import DnsFault, NoRoute
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint

SILENCE_SECONDS: Final = 30.0
"""How long a server that was not heard of is asked after others."""

_log = structlog.get_logger(__name__)


class Silences:
    """The servers of one `Exchange`. All times are loop times; `over` is "udp" or "tcp"."""

    def __init__(self) -> None:
        self._until: dict[Endpoint, float] = {}
        self._ways: dict[Endpoint, set[str]] = {}
        self._told_at: dict[Endpoint, float] = {}

    def is_silent(self, endpoint: Endpoint, now: float) -> bool:
        """Was it not heard of when it was asked last, within half a minute?"""
        return now < self._until.get(endpoint, 0.0)

    def heard(self, peer: Peer, over: str) -> None:
        """It has answered."""
        self._until.pop(peer.endpoint, None)
        if over in self._ways.get(peer.endpoint, ()):
            del self._ways[peer.endpoint]
            _log.info("dns server answers again", server=str(peer.endpoint), zone=peer.zone)

    def not_heard(self, peer: Peer, over: str, now: float, fault: DnsFault) -> None:
        """It took or answered nothing, as `fault` says."""
        self._until[peer.endpoint] = now + SILENCE_SECONDS
        if peer.endpoint in self._ways:
            self._ways[peer.endpoint].add(over)
        elif self._is_worth_a_line(peer, now, fault):
            self._ways[peer.endpoint] = {over}
            self._told_at[peer.endpoint] = now
            _log.warning(
                "dns server silent",
                server=str(peer.endpoint),
                zone=peer.zone,
                over=over,
                detail=fault.detail,
            )

    def _is_worth_a_line(self, peer: Peer, now: float, fault: DnsFault) -> bool:
        """Not again when one that loses messages now and then was told of just now.

        Nor a name server's address that this machine has no route to: it is passed over.
        """
        if isinstance(fault, NoRoute) and peer.key is None:
            return False
        return now >= self._told_at.get(peer.endpoint, float("-inf")) + SILENCE_SECONDS
