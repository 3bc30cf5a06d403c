"""Which Redis has a key: the only one, the Sentinels' choice, or the Cluster's owner of its slot.

Responsible for finding the primaries and for remembering them until somebody who could not reach
one has them found again. Must not: send a command of the gateway's own. Called by `store.routing`.

redis-py's clients for Sentinel and Cluster were the alternative. Its Sentinel client asks one
Sentinel after the other, anew for each connection. Its Cluster client for asyncio (8.1) sends
ASKING on another connection than the command that it is for, fails on a node that has no slot yet
(redis-py issue 4015), has no way to wait for a connection, and drops all of them whenever the
Cluster reports that it is down. Neither could bound the time of a call, or send WAIT on the
connection that wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from gateway.store.faults import StoreUnavailable
from gateway.store.nodes import PRIMARY_ROLE, Command, Node
from gateway.store.places import Kind
from gateway.store.sentinels import View, agreement, is_settled, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gateway.store.places import Address, Place
    from gateway.store.sentinels import Agreement

    Replies = list[tuple[Node, list[Any]]]
    """Servers with what each of some commands came to."""

ASK_LIMIT_SECONDS: Final = 1.0
"""How long one finding waits for those of several servers that are silent."""

CONFIRMED_SECONDS: Final = 1.0
"""The longest that the Sentinels are believed before they are asked again."""


class Topology(ABC):
    """The primaries of one Redis deployment, as last found."""

    may_move: bool
    """Whether another server can become a primary, so that looking again makes sense."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._nodes: dict[Address, Node] = {}
        self._finding: asyncio.Task[None] | None = None

    @abstractmethod
    def node_for(self, key: str) -> Node:
        """The primary that has a key. Raises StoreUnavailable while none is known."""

    @abstractmethod
    def primaries(self) -> list[Node]:
        """Every primary, as last found."""

    @abstractmethod
    async def probe(self) -> None:
        """Whether everything can be read and written. Raises StoreUnavailable."""

    @abstractmethod
    async def _find(self) -> None:
        """Find the primaries. Raises StoreUnavailable."""

    def node_at(self, address: Address) -> Node:
        """The server at an address that another one has named."""
        if address not in self._nodes:
            self._nodes[address] = Node(
                address,
                self._place.node_url(address),
                must_be_primary=self._place.kind is Kind.SENTINEL,
            )
        node = self._nodes[address]
        node.is_left = False
        return node

    def moved(self, key: str, node: Node) -> None:  # noqa: B027 (only a Cluster's do)
        """Take notice that a primary named another one for a key."""

    async def find(self) -> None:
        """Find the primaries anew; calls at the same time share one search.

        Raises StoreUnavailable.
        """
        if self._finding is None:
            self._finding = asyncio.create_task(self._find())
            self._finding.add_done_callback(self._found)
        finding = self._finding
        # Not awaited itself: a caller that is cancelled must not end the search of the others.
        await asyncio.wait({finding})
        finding.result()

    async def has_still(self, key: str, node: Node) -> bool:
        """Whether a server that has taken a write for a key has it still, by the latest there is.

        Raises StoreUnavailable when nobody can tell.
        """
        await self.find()
        return self.node_for(key) is node

    def _found(self, finding: asyncio.Task[None]) -> None:
        self._finding = None
        if not finding.cancelled():
            finding.exception()  # whoever waited knows

    async def close(self) -> None:
        """Close every connection. May be repeated."""
        if self._finding is not None:
            self._finding.cancel()
        for node in list(self._nodes.values()):
            await node.close()

    async def _leave_all_but(self, used: Iterable[Node]) -> None:
        """Close the connections to servers where no key lies any more."""
        for node in set(self._nodes.values()) - set(used):
            node.is_left = True
            with contextlib.suppress(RedisError, OSError):
                await node.hang_up()


class SingleTopology(Topology):
    """One Redis, always the same."""

    may_move = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._node = self.node_at(place.members[0])

    def node_for(self, key: str) -> Node:
        """The only one."""
        return self._node

    def primaries(self) -> list[Node]:
        """The only one."""
        return [self._node]

    async def probe(self) -> None:
        """One round trip."""
        await self._node.ask(("PING",))

    async def _find(self) -> None:
        """There is nothing to find."""


class SentinelTopology(Topology):
    """The primary that the Sentinels have chosen."""

    may_move = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._sentinels = [Node(member, place.member_url(member)) for member in place.members]
        self._primary: Node | None = None
        self._is_of_majority = False
        """Whether a majority of the Sentinels named it when they were last asked."""
        self._confirmed_until = 0.0
        """Until when it cannot be replaced, by the clock `time.monotonic`."""

    def node_for(self, key: str) -> Node:
        """The primary has every key."""
        if self._primary is None:
            raise StoreUnavailable("No primary is known")
        return self._primary

    def primaries(self) -> list[Node]:
        """The primary alone."""
        return [] if self._primary is None else [self._primary]

    async def probe(self) -> None:
        """One round trip to the primary."""
        await self.node_for("").ask(("PING",))

    async def close(self) -> None:
        """Close every connection, also those to the Sentinels. May be repeated."""
        await super().close()
        for sentinel in self._sentinels:
            await sentinel.close()

    async def find(self) -> None:
        """Find the primary anew, since the last one could not be reached."""
        # It is no longer to be trusted: it may be asleep, and take writes when it wakes.
        self._primary = None
        await super().find()

    async def has_still(self, key: str, node: Node) -> bool:
        """Whether the Sentinels name it still; others use it meanwhile.

        A majority has to answer: a part of the network where there are fewer is told of no
        failover.
        """
        if self._is_confirmed(node):
            return True
        if self._finding is not None:
            # It has begun before the write was made, and may know only what was before it.
            await asyncio.wait({self._finding})
            if self._is_confirmed(node):
                return True
        await super().find()
        if not self._is_of_majority:
            raise StoreUnavailable("Too few Sentinels answer to tell who is the primary")
        return self._primary is node

    def _is_confirmed(self, node: Node) -> bool:
        return self._primary is node and time.monotonic() < self._confirmed_until

    async def _find(self) -> None:
        asked_at = time.monotonic()
        named = await self._ask_sentinels()
        node = self.node_at(named.address)
        if node is not self._primary:
            self._primary = None
            role = await node.ask(("ROLE",))
            if role[0] != PRIMARY_ROLE:
                raise StoreUnavailable(f"{node} is not a primary yet, or not any more")
            self._primary = node
        self._is_of_majority = named.is_of_majority
        self._confirmed_until = asked_at + min(named.steady_seconds, CONFIRMED_SECONDS)
        await self._leave_all_but([node])

    async def _ask_sentinels(self) -> Agreement:
        def is_enough(replies: Replies) -> bool:
            return is_settled(_views(replies), len(self._sentinels))

        command = ("SENTINEL", "MASTER", self._place.service)
        answers, refused = await _ask_all(self._sentinels, [command], is_enough)
        if not answers:
            raise StoreUnavailable(
                "The Sentinels do not take sentinel_username and sentinel_password of redis.url"
                if refused
                else "No Sentinel can be reached"
            )
        views = _views(answers)
        if not views:
            raise StoreUnavailable(f"The Sentinels know no service {self._place.service}")
        return agreement(views, len(self._sentinels))


class ClusterTopology(Topology):
    """The owners of a Cluster's slots."""

    may_move = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._owners: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS

    def node_for(self, key: str) -> Node:
        """The owner of the key's slot."""
        slot = key_slot(key.encode(errors="surrogateescape"))
        owner = self._owners[slot]
        if owner is None:
            raise StoreUnavailable(f"No node of the Cluster is known to have slot {slot}")
        return owner

    def primaries(self) -> list[Node]:
        """Every node that owns a slot."""
        return list({node: None for node in self._owners if node is not None})

    def moved(self, key: str, node: Node) -> None:
        """One slot has another owner; what else has moved is found when it is asked for."""
        self._owners[key_slot(key.encode(errors="surrogateescape"))] = node

    async def probe(self) -> None:
        """Every primary answers, and says that the Cluster is whole."""
        primaries = self.primaries()
        if not primaries:
            raise StoreUnavailable("No node of the Cluster is known to have a slot")
        answers = await asyncio.gather(*(node.ask(("CLUSTER", "INFO")) for node in primaries))
        for node, answer in zip(primaries, answers, strict=True):
            if _read_info(answer).get("cluster_state") != "ok":
                raise StoreUnavailable(f"The Cluster is down, says {node}")

    async def _find(self) -> None:
        seeds = [self.node_at(member) for member in self._place.members]
        asked = list(dict.fromkeys([*self.primaries(), *seeds]))
        commands = [("CLUSTER", "INFO"), ("CLUSTER", "SLOTS")]
        found, refused = await _ask_all(asked, commands)
        answers = [
            (node, _read_info(info), slots)
            for node, (info, slots) in found
            if not isinstance(info, ResponseError) and not isinstance(slots, ResponseError)
        ]
        if not answers and (found or refused):
            raise StoreUnavailable(
                "The nodes do not take the user or the password of redis.url"
                if refused
                else "The nodes are no Cluster, or do not let the user ask for its slots"
            )
        if not answers:
            raise StoreUnavailable("No node of the Cluster can be reached")
        # Who knows of the latest failover is right; a node that was away has missed it.
        node, _, slots = max(answers, key=lambda answer: int(answer[1]["cluster_current_epoch"]))
        owners: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, (host, port, *_), *_ in slots:
            # A node that does not know its own address leaves it out.
            owner = self.node_at((host or node.address[0], port))
            owners[first : last + 1] = [owner] * (last + 1 - first)
        self._owners = owners
        await self._leave_all_but(self.primaries())


def topology_of(place: Place) -> Topology:
    """The topology that a URL stands for; nothing is connected yet."""
    made: dict[Kind, Callable[[Place], Topology]] = {
        Kind.SINGLE: SingleTopology,
        Kind.SENTINEL: SentinelTopology,
        Kind.CLUSTER: ClusterTopology,
    }
    return made[place.kind](place)


async def _ask_all(
    nodes: Sequence[Node],
    commands: Sequence[Command],
    is_enough: Callable[[Replies], bool] = lambda _: False,
) -> tuple[Replies, bool]:
    """Ask servers all at once, until all have answered, those that have are enough, or time is up.

    Returns those that answered with their answers, and whether one refused the login.
    """
    tasks = {asyncio.create_task(node.exchange(commands)): node for node in nodes}
    end = time.monotonic() + ASK_LIMIT_SECONDS
    replies: Replies = []
    refused = False
    late = set(tasks)
    while late and not is_enough(replies):
        left_seconds = max(0.0, end - time.monotonic())
        done, late = await asyncio.wait(
            late, timeout=left_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            break
        replies += [(tasks[task], task.result()) for task in done if task.exception() is None]
        refused |= any(isinstance(task.exception(), AuthenticationError) for task in done)
    for task in late:
        task.cancel()
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
    return replies, refused


def _views(replies: Replies) -> list[View]:
    """What those Sentinels say that know the service."""
    return [
        view_of(dict(zip(answer[::2], answer[1::2], strict=True)))
        for _, (answer,) in replies
        if not isinstance(answer, ResponseError)
    ]


def _read_info(text: str) -> dict[str, str]:
    pairs = (line.partition(":")[::2] for line in text.splitlines())
    return dict(pairs)
