"""The turnstile: which waiting hostname is worked on next, and how many at once.

One line for all was the alternative, and one client's thousand hostnames would stand in it before
another's one. So each client has a line of its own, and a place that becomes free goes to the
client that has the fewest; among equals to the one served longest ago. Counting the places and not
only the turns matters: where one client's steps take seconds (its CA or its zone is slow), turns in
rotation would let it fill place after place. And an eighth of the places is for whoever does not
have all the others, so that nobody waits for the end of another's step.

A client's hostnames stand in one line for each zone, since a zone may be dead: each step of its
hostnames takes seconds then, and all of them are due again and again. A client's turn goes to that
of its zones which has the fewest places. No zone has the last eighth of the places either, nor one
client in one zone the last eighth of what it may have. So neither a client's own nor other clients'
hostnames in a dead zone keep those of another zone from being worked on, and within a zone no
client has what others may have there.

Within a line the order is that of arrival, but for hostnames that come back from a short rest:
they stand ahead, so that what was begun ends before more is begun, and a backlog of thousands does
not become thousands of pending orders at the CA. Renewals have no line of their own. They have a
third of the lifetime left, and nobody waits for them as for a new name; what is truly scarce, the
CA's limits, is reserved for them by the ledger.

What has no holder (debts of a released hostname) is nobody's hurry: it gets the places that no
client wants, and every ninth in any case.

Memory is bounded: a line that is full refuses, and the hostname, which stays in the due queue, is
seen again by a later poll. Waiting costs no task.

Called by `worker`; knows no document and does no I/O.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gateway.contract.names import ClientId

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Set as AbstractSet

    from gateway.contract.names import Hostname

Client: TypeAlias = ClientId | None
"""Whose hostname it is; None where it has no holder."""

LINE_LIMIT: Final = 512
"""The most that wait of one client in one zone."""

CROWD: Final = 8_192
"""When so many wait, no line but an empty one takes any more."""

PATIENCE: Final = 8
"""How often hostnames without a holder are passed over in a row."""


Within: TypeAlias = str | None
"""The zone that a hostname is in; None where it makes no difference."""


@dataclass(frozen=True, slots=True)
class Most:
    """How many places one client or one zone may have, and one client in one zone.

    A zone's None is not counted.
    """

    of_one: int
    of_one_in_zone: int

    @classmethod
    def of(cls, places: int) -> Most:
        """All but the last eighth, and of those all but the last eighth; one at least."""
        of_one = _without_an_eighth(places)
        return cls(of_one, _without_an_eighth(of_one))


class Places:
    """Who has the places that are taken: counts, by client and by zone."""

    def __init__(self) -> None:
        self.of_client: Counter[Client] = Counter()
        self.of_zone: Counter[Within] = Counter()
        self.of_both: Counter[tuple[Client, Within]] = Counter()

    def give(self, client: Client, zone: Within) -> None:
        """One more."""
        self.of_client[client] += 1
        self.of_zone[zone] += 1
        self.of_both[client, zone] += 1

    def take_back(self, client: Client, zone: Within) -> None:
        """One less."""
        self.of_client -= Counter({client: 1})
        self.of_zone -= Counter({zone: 1})
        self.of_both -= Counter({(client, zone): 1})


class Lines:
    """The waiting hostnames, by client and zone: pure. `zone_of` tells a hostname's zone."""

    def __init__(self, zone_of: Callable[[Hostname], Within]) -> None:
        self._zone_of = zone_of
        # In the order in which they were served last: a client that was goes to the end, and so
        # does the zone among the client's.
        self._lines: dict[Client, dict[Within, deque[Hostname]]] = {}
        self._client_of: dict[Hostname, Client] = {}
        self._waiting: Counter[Within] = Counter()
        self._passed_over = 0

    def __contains__(self, hostname: object) -> bool:
        return hostname in self._client_of

    def __len__(self) -> int:
        return len(self._client_of)

    def join(self, hostname: Hostname, client: Client, *, ahead: bool = False) -> bool:
        """Wait at the end of the client's line in the zone, or at its head; False when it is full.

        A hostname that waits already stays where it is, unless it has come to be another client's.
        """
        if hostname in self._client_of:
            if client is None or self._client_of[hostname] == client:
                return True
            self._remove(hostname)
        zone = self._zone_of(hostname)
        line = self._lines.get(client, {}).get(zone)
        limit = LINE_LIMIT if len(self) < CROWD else 1
        if line is not None and len(line) >= limit and not ahead:
            return False
        if line is None:
            line = self._lines.setdefault(client, {})[zone] = deque()
        if ahead:
            line.appendleft(hostname)
        else:
            line.append(hostname)
        self._client_of[hostname] = client
        self._waiting[zone] += 1
        return True

    def take(self, places: Places, most: Most) -> tuple[Hostname, Client] | None:
        """The next to be worked on, when so many places are taken.

        None when nobody waits, or only such as have all they may have.
        """
        if not any(_is_open(zone, places, most) for zone, count in self._waiting.items() if count):
            return None  # without a look at each of thousands of clients
        chosen = self._choose(places, most)
        if chosen is None:
            return None
        client, zone = chosen
        lines = self._lines.pop(client)
        line = lines.pop(zone)
        hostname = line.popleft()
        if line:
            lines[zone] = line
        if lines:
            self._lines[client] = lines
        del self._client_of[hostname]
        self._waiting[zone] -= 1
        return hostname, client

    def clear(self) -> None:
        """Nobody waits any more."""
        self._lines.clear()
        self._client_of.clear()
        self._waiting.clear()

    def _choose(self, places: Places, most: Most) -> tuple[Client, Within] | None:
        chosen: tuple[Client, Within] | None = None
        fewest = most.of_one
        for client in self._lines:
            has = places.of_client[client]
            if client is None or has >= fewest:
                continue
            zones = self._open_zones(client, places, most)
            if zones:
                chosen, fewest = (client, zones[0]), has
            if chosen is not None and not fewest:
                break
        unheld = self._open_zones(None, places, most)
        if unheld and places.of_client[None] < most.of_one:
            if chosen is None or self._passed_over >= PATIENCE:
                chosen, self._passed_over = (None, unheld[0]), 0
            else:
                self._passed_over += 1
        return chosen

    def _open_zones(self, client: Client, places: Places, most: Most) -> list[Within]:
        """Where a client's hostnames wait that may have a place, the fewest places first."""
        zones = [
            zone
            for zone in self._lines.get(client, {})
            if zone is None
            or (_is_open(zone, places, most) and places.of_both[client, zone] < most.of_one_in_zone)
        ]
        return sorted(zones, key=places.of_zone.__getitem__)

    def _remove(self, hostname: Hostname) -> None:
        client, zone = self._client_of.pop(hostname), self._zone_of(hostname)
        lines = self._lines[client]
        lines[zone].remove(hostname)
        self._waiting[zone] -= 1
        if not lines[zone]:
            del lines[zone]
        if not lines:
            del self._lines[client]


def _is_open(zone: Within, places: Places, most: Most) -> bool:
    return zone is None or places.of_zone[zone] < most.of_one


def _without_an_eighth(places: int) -> int:
    return max(1, places - max(1, places // 8))


class Turnstile:
    """Lets hostnames through to `work`, at most `places` at once and no hostname twice at once.

    Of several places one client never has all, nor what has no holder: the last eighth, and one at
    least, is for the others. `zone_of` tells a hostname's zone, None where zones are to make no
    difference; no zone ever has all either.

    `work` must not raise. It runs in a context of its own, not in that of the call that woke the
    worker.
    """

    def __init__(
        self,
        places: int,
        work: Callable[[Hostname], Coroutine[Any, Any, None]],
        zone_of: Callable[[Hostname], Within] = lambda _: None,
    ) -> None:
        self._places = places
        self._most = Most.of(places)
        self._work = work
        self._zone_of = zone_of
        self._lines = Lines(zone_of)
        self._inside: dict[Hostname, Client] = {}
        self._held = Places()
        self._again: dict[Hostname, Client] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._context = contextvars.copy_context()
        self._is_closed = False

    def __contains__(self, hostname: object) -> bool:
        """Whether a hostname waits or is worked on."""
        return hostname in self._inside or hostname in self._lines

    def turns_before(self, hostname: Hostname) -> float | None:
        """For how many turns at all places a hostname waits at the most, 0 once it is worked on.

        None of one that is not here.
        """
        if hostname in self._inside:
            return 0.0
        return len(self._lines) / self._places if hostname in self._lines else None

    @property
    def tasks(self) -> AbstractSet[asyncio.Task[None]]:
        """The work under way."""
        return frozenset(self._tasks)

    def client_of(self, hostname: Hostname) -> Client:
        """Under whose name a hostname that is worked on was let in."""
        return self._inside.get(hostname)

    def enter(self, hostname: Hostname, client: Client, *, ahead: bool = False) -> None:
        """Have a hostname worked on; one that is being worked on is once more after that.

        From the event loop's thread. `ahead`: before what else the client has waiting.
        """
        if self._is_closed:
            return
        if hostname in self._inside:
            self._again[hostname] = client
            return
        self._lines.join(hostname, client, ahead=ahead)
        self._fill()

    def close(self) -> None:
        """Begin nothing more; what is under way goes on."""
        self._is_closed = True
        self._lines.clear()
        self._again.clear()

    def _fill(self) -> None:
        while len(self._inside) < self._places:
            taken = self._lines.take(self._held, self._most)
            if taken is None:
                return
            hostname, client = taken
            self._inside[hostname] = client
            self._held.give(client, self._zone_of(hostname))
            task = asyncio.create_task(self._pass(hostname), context=self._context.copy())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, hostname: Hostname) -> None:
        try:
            await self._work(hostname)
        finally:
            self._leave(hostname)

    def _leave(self, hostname: Hostname) -> None:
        client = self._inside.pop(hostname)
        self._held.take_back(client, self._zone_of(hostname))
        if hostname in self._again:
            again = self._again.pop(hostname)
            self.enter(hostname, again if again is not None else client, ahead=True)
        elif not self._is_closed:
            self._fill()
