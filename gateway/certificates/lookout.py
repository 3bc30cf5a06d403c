"""The lookout: which hostnames have work due, and whose they are.

A poll reads the head of each bucket's due queue, lowest score first. Behind a backlog the head is
one client's, poll after poll, and another client's one hostname would not be seen by a process that
did not take its call. So a poll reads on in the queues that are longer than their head, a bounded
number of pages each time, going round until all of it was seen; where nothing is due or little is,
it costs what the heads cost.

Asking Redis for the first hostnames of each client in one script was the alternative. It would
read as much, but in Redis, where everybody waits for it.

Whose a hostname is, is read as well, and kept as long as the hostname stays in sight. Called by
`worker`; decides nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from gateway.store.keys import bucket_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.certificates.turnstile import Client
    from gateway.contract.names import Hostname
    from gateway.store.documents import Documents

HEAD: Final = 16
BEYOND: Final = 4_096
"""How many hostnames a look reads beyond the heads."""

PAGES_A_LOOK: Final = 64
READ_AT_ONCE: Final = 1_024


class Lookout:
    """Looks over the due queues of one Redis. `is_known` hostnames are left out."""

    def __init__(self, documents: Documents, is_known: Callable[[Hostname], bool]) -> None:
        self._documents = documents
        self._is_known = is_known
        self._unread: deque[tuple[int, int]] = deque()
        self._clients: dict[Hostname, Client] = {}

    async def look(self, now_ms: int) -> list[tuple[Hostname, Client]]:
        """Hostnames with work due at `now_ms` (epoch milliseconds), the longest due first.

        Not all of them when there are thousands: further looks see the others.

        Raises:
            StoreUnavailable: Redis cannot be reached.
            StoreRefused: Redis answered with an error.
        """
        head = await self._documents.due(now_ms, HEAD)
        beyond = await self._beyond(head, now_ms)
        seen = dict.fromkeys(name for name in (*head, *beyond) if not self._is_known(name))
        self._clients = await self._clients_of(seen)
        return list(self._clients.items())

    async def _beyond(self, head: list[Hostname], now_ms: int) -> list[Hostname]:
        """The next pages of the queues that are longer than their head."""
        if not self._unread:
            due = Counter(map(bucket_of, head))
            self._unread.extend((bucket, HEAD) for bucket, count in due.items() if count == HEAD)
        pages = [self._unread.popleft() for _ in range(min(PAGES_A_LOOK, len(self._unread)))]
        if not pages:
            return []
        length = BEYOND // len(pages)
        found = await self._documents.due_pages(now_ms, pages, length)
        for (bucket, offset), names in zip(pages, found, strict=True):
            if len(names) == length:
                self._unread.append((bucket, offset + length))
        return [name for names in found for name in names]

    async def _clients_of(self, hostnames: Iterable[Hostname]) -> dict[Hostname, Client]:
        clients = {name: self._clients.get(name) for name in hostnames}
        unknown = [name for name in clients if name not in self._clients]
        for start in range(0, len(unknown), READ_AT_ONCE):
            some = unknown[start : start + READ_AT_ONCE]
            clients.update(zip(some, await self._documents.clients_of(some), strict=True))
        return clients
