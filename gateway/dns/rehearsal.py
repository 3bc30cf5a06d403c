"""An exchange for trying out what a call would do: updates go without their changes.

An UPDATE whose update section is empty has its prerequisites judged by the server, and writes
nothing (RFC 2136, 3.2 and 3.4). So what is read, decided and refused is what a real call meets,
but for one thing: a server that permits changes by name and type (BIND's `update-policy`) judges
them by the section that is missing here.

Called by the composition root, for `gateway explain`.
"""

from gateway.dns.exchange import Exchange, Over
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import Update


class RehearsedExchange(Exchange):
    """As `Exchange`, and raises the same."""

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        """Send `request` without what it would change."""
        if isinstance(request, Update):
            request = request.without_changes()
        return await super().ask(peer, request, over=over, deadline=deadline)
