"""Brings commands to the server that has their key, within a bounded time, wherever that is now.

Responsible for: following a Cluster's redirections, looking for a new primary once when one is
gone, waiting while a slot's keys are under way, and the end of every call after `LIMIT_SECONDS`.
Must not: know what a command does. Called by `store.sending`.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)

from gateway import measures
from gateway.store.faults import UNREACHABLE, StoreUnavailable, judged
from gateway.store.topology import topology_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from gateway.store.nodes import Command, Node
    from gateway.store.places import Place

LIMIT_SECONDS: Final = 4.0
"""The longest that any call takes, waiting for a connection included."""

SLOT_PAUSE_SECONDS: Final = 0.02
"""How long to wait while the keys of one slot are on two nodes: redis-cli moves a slot in
milliseconds."""

_MAX_REDIRECTIONS: Final = 16
_SCANNED_AT_ONCE: Final = 500

_T = TypeVar("_T")


@dataclass(slots=True)
class Errand:
    """Commands for one key, all on one connection, and what each came to (a refusal as an error).

    `node` is where they were carried out.
    """

    key: str
    commands: tuple[Command, ...]
    answers: list[Any] = field(default_factory=list)
    node: Node | None = None
    asked_at: Node | None = None
    """Where a redirection for this once has sent it."""


class Begun(NamedTuple):
    """Commands on their way to the server of a key, and when they were sent (`measures.moment`)."""

    key: str
    commands: tuple[Command, ...]
    node: Node
    answers: asyncio.Future[list[Any]]
    began: float

    def drop(self) -> None:
        """Nobody waits for what comes of it; also where somebody has."""
        if not self.answers.cancel() and not self.answers.cancelled():
            self.answers.exception()  # looked at: it is no fault that nobody has seen


class _Verdict(Enum):
    DONE = "done"
    ELSEWHERE = "elsewhere"
    SLOT_UNDER_WAY = "slot under way"
    LOST = "lost"


class Router:
    """The way to one Redis deployment."""

    def __init__(self, place: Place) -> None:
        self._topology = topology_of(place)

    async def close(self) -> None:
        """Close every connection. May be repeated."""
        await self._topology.close()

    def begin(self, key: str, commands: tuple[Command, ...]) -> Begun | None:
        """Send commands for one key at once, if its node has a line and they are of that kind.

        Whoever begins ends it with `finish` or `Begun.drop`. What is begun one after the other goes
        out together.
        """
        try:
            node = self._topology.node_for(key)
        except StoreUnavailable:
            return None
        began, answers = measures.moment(), node.send(commands)
        return None if answers is None else Begun(key, commands, node, answers, began)

    async def finish(self, begun: Begun, errand: Errand | None = None) -> list[Any]:
        """What each command that was begun came to, a refusal as an error.

        Mostly the answer is all that there is to it. Else they go on as an errand, which somebody
        may have made already. Bounded by the node: a limit around it would cost as much as the rest
        of it. Raises StoreUnavailable.
        """
        _, commands, node, sent, began = begun
        try:
            answers = node.told(commands, await sent, began)
        except (RedisError, asyncio.CancelledError) as fault:
            errand = errand or Errand(begun.key, commands)
            verdict = await self._once_more(begun, errand, fault)
        else:
            if not isinstance(answers[0], RedisError):
                return answers
            errand = errand or Errand(begun.key, commands)
            errand.answers, errand.node = answers, node
            verdict = self._judge(errand, node)
        if verdict is not _Verdict.DONE:
            left_seconds = LIMIT_SECONDS - (measures.moment() - began)
            async with self.time_limit(left_seconds):
                await self._carry_out([errand], [(errand, verdict)])
        return errand.answers

    async def _once_more(self, begun: Begun, errand: Errand, fault: BaseException) -> _Verdict:
        node = begun.node
        try:
            errand.answers = await node.answers_after(fault, begun.commands, begun.began)
        except UNREACHABLE as error:
            errand.answers = [error]
            return _Verdict.LOST
        except RedisError as error:
            raise judged(error) from error
        errand.node = node
        return self._judge(errand, node)

    async def run(self, errands: Sequence[Errand]) -> None:
        """Carry errands out, all at once. Raises StoreUnavailable."""
        if len(errands) == 1:
            (errand,) = errands
            begun = self.begin(errand.key, errand.commands)
            if begun is not None:
                errand.node = begun.node
                errand.answers = await self.finish(begun, errand)
                return
        async with self.time_limit():
            await self._carry_out(errands, [])

    async def probe(self) -> None:
        """Whether everything can be read and written. Raises StoreUnavailable."""
        await self._bounded(self._probe())

    async def is_still_primary(self, errand: Errand) -> bool:
        """Whether the server that carried an errand out has its key, by the latest there is.

        Raises StoreUnavailable when nobody can tell.
        """
        if not self._topology.may_move or errand.node is None:
            return True
        return await self._bounded(self._topology.has_still(errand.key, errand.node))

    @asynccontextmanager
    async def time_limit(self, seconds: float | None = None) -> AsyncIterator[None]:
        """One limit around calls that belong together. Raises StoreUnavailable at its end.

        None: of `LIMIT_SECONDS`.
        """
        try:
            async with asyncio.timeout(LIMIT_SECONDS if seconds is None else seconds):
                yield
        except TimeoutError as error:
            text = f"Redis gave no answer within {LIMIT_SECONDS:g} s"
            raise StoreUnavailable(text) from error

    async def scan(self, pattern: str) -> AsyncIterator[str]:
        """Every key like this on every primary; one may come more than once.

        Raises StoreUnavailable, also when a primary is replaced meanwhile.
        """
        await self.probe()
        for node in self._topology.primaries():
            cursor = "0"
            while True:
                command = ("SCAN", cursor, "MATCH", pattern, "COUNT", _SCANNED_AT_ONCE)
                cursor, keys = await self._bounded(node.ask(command))
                for key in keys:
                    yield key
                if str(cursor) == "0":
                    break

    async def _bounded(self, work: Awaitable[_T]) -> _T:
        async with self.time_limit():
            return await work

    async def _probe(self) -> None:
        try:
            await self._topology.probe()
        except StoreUnavailable:
            if not self._topology.may_move:
                raise
            await self._topology.find()
            await self._topology.probe()

    async def _carry_out(
        self, errands: Sequence[Errand], verdicts: Sequence[tuple[Errand, _Verdict]]
    ) -> None:
        """Go on until all are done; `verdicts` are those of a first try, if there was one."""
        left = list(errands)
        has_looked = not self._topology.may_move
        redirections = 0
        while left:
            if not verdicts:
                try:
                    groups = self._by_node(left)
                except StoreUnavailable:
                    if has_looked:
                        raise
                    has_looked = True
                    await self._topology.find()
                    continue
                verdicts = await self._send_all(groups)
            left = [errand for errand, verdict in verdicts if verdict is not _Verdict.DONE]
            found = {verdict: errand for errand, verdict in verdicts}
            verdicts = []
            if _Verdict.LOST in found:
                if has_looked:
                    raise judged(found[_Verdict.LOST].answers[0])
                has_looked = True
                await self._topology.find()
            elif _Verdict.SLOT_UNDER_WAY in found:
                await asyncio.sleep(SLOT_PAUSE_SECONDS)
            elif left:
                redirections += 1
                if redirections > _MAX_REDIRECTIONS:
                    raise StoreUnavailable("The Cluster's nodes disagree on who has a slot")

    def _by_node(self, errands: Sequence[Errand]) -> dict[Node, list[Errand]]:
        groups: dict[Node, list[Errand]] = {}
        for errand in errands:
            node = errand.asked_at or self._topology.node_for(errand.key)
            groups.setdefault(node, []).append(errand)
        return groups

    async def _send_all(self, groups: dict[Node, list[Errand]]) -> list[tuple[Errand, _Verdict]]:
        if len(groups) == 1:
            ((node, errands),) = groups.items()
            return await self._send(node, errands)
        sent = await asyncio.gather(*(self._send(node, each) for node, each in groups.items()))
        return [verdict for verdicts in sent for verdict in verdicts]

    async def _send(self, node: Node, errands: list[Errand]) -> list[tuple[Errand, _Verdict]]:
        commands: list[Command] = []
        for errand in errands:
            if errand.asked_at is not None:
                commands.append(("ASKING",))
            commands += errand.commands
        try:
            answers = iter(await node.exchange(commands))
        except UNREACHABLE as error:
            for errand in errands:
                errand.answers, errand.asked_at = [error], None
            return [(errand, _Verdict.LOST) for errand in errands]
        except RedisError as error:
            raise judged(error) from error
        verdicts = []
        for errand in errands:
            if errand.asked_at is not None:
                next(answers)
            errand.node, errand.asked_at = node, None
            errand.answers = [next(answers) for _ in errand.commands]
            verdicts.append((errand, self._judge(errand, node)))
        return verdicts

    def _judge(self, errand: Errand, node: Node) -> _Verdict:
        """What is to be done about the first answer; the others belong to the same key."""
        answer = errand.answers[0]
        if not isinstance(answer, RedisError):
            return _Verdict.DONE
        if isinstance(answer, AskError):  # MovedError is one
            other = self._topology.node_at((answer.host or node.address[0], answer.port))
            if isinstance(answer, MovedError):
                self._topology.moved(errand.key, other)
            else:
                errand.asked_at = other
            return _Verdict.ELSEWHERE
        if isinstance(answer, TryAgainError):
            return _Verdict.SLOT_UNDER_WAY
        if isinstance(answer, (ReadOnlyError, ClusterDownError)):
            return _Verdict.LOST
        return _Verdict.DONE
