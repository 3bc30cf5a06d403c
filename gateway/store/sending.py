"""How commands go to Redis and come back: errands, scripts, and replicas that a write waits for.

Responsible for what is the same for all commands; `store.routing` knows which server has a key, and
`store.connection` which commands there are. A Redis that cannot be reached, is loading, is
read-only or answers too late raises `StoreUnavailable`, and nothing else of redis-py's own errors
leaves this package. Called by `store.connection`, and by rehearsals, which send no writes.
"""

from __future__ import annotations

import hashlib
import logging
import time
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import NoScriptError, RedisError

from gateway.store.faults import StoreUnavailable, WrongType, judged
from gateway.store.keys import KEYRING_KEY, PROBE_KEYS, SCHEMA_KEY
from gateway.store.places import Kind, read_place
from gateway.store.routing import Begun, Errand, Router

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from gateway.store.nodes import Command

REPLICA_WAIT_MS: Final = 200
"""How long a write waits for its replicas. The Redis itself stays free for others meanwhile."""

_SHORTAGE_LOGGED_EVERY_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class Sender:
    """Sends commands to one Redis. Connections are opened when first needed.

    A command whose answer was lost may be sent once more, which every one of them stands.
    `replicas` is how many copies a write waits for, `REPLICA_WAIT_MS` at most: a failover takes the
    writes away that no replica has. None: one, where there can be a failover. Every method raises
    `StoreUnavailable` when Redis does not answer within `routing.LIMIT_SECONDS`, and `StoreRefused`
    when it answers with an error.
    """

    def __init__(self, url: str, *, replicas: int | None = None) -> None:
        place = read_place(url)
        self.has_slots = place.kind is Kind.CLUSTER
        """Whether one step can only change keys that have the same hash tag."""

        self._router = Router(place)
        self._replicas = int(place.kind is not Kind.SINGLE) if replicas is None else replicas
        self._shortage_logged_at = -_SHORTAGE_LOGGED_EVERY_SECONDS
        self._refusal: str | None = None

    async def close(self) -> None:
        """Close every connection; repeatable."""
        await self._router.close()

    async def ping(self) -> None:
        """Whether every part of Redis answers."""
        await self._router.probe()

    async def demand_writable(self) -> None:
        """Whether writes are taken: as they are not without disk, replicas or memory.

        Writes nothing: it asks to set keys that are there only, and none of them ever is. Some for
        all nodes of a Cluster.

        Raises:
            StoreUnavailable, StoreRefused: writes are not taken, and why.
        """
        errands = [Errand(key, (("SET", key, "", "XX"),)) for key in PROBE_KEYS]
        await self._router.run(errands)
        for errand in errands:
            _first(errand.answers)

    def refuse(self, why: str | None) -> None:
        """Let nothing be read or written from now on but what form the state has; None ends that.

        For whoever has seen that it is another release's: what is there would be misread.
        """
        self._refusal = why

    async def time_ms(self) -> int:
        """Redis's own clock, in epoch milliseconds; of several servers always that of the same."""
        # TIME names no key: a Cluster's node redirects what comes before it, once that has moved.
        errand = Errand(KEYRING_KEY, (("EXISTS", KEYRING_KEY), ("TIME",)))
        await self._router.run([errand])
        _first(errand.answers)
        told = errand.answers[1]
        if isinstance(told, RedisError):
            raise judged(told) from told
        seconds, microseconds = told
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def answers_of_each(self, wanted: Sequence[tuple[str, Sequence[Command]]]) -> list[Any]:
        """For each key what its commands came to, a list; all at once.

        Those of one key go in order, on one connection. For `store.whole` and `store.stream`. Does
        not wait for replicas.
        """
        errands = [Errand(key, tuple(commands)) for key, commands in wanted]
        await self._carry_out(errands)
        return [_answers(errand) for errand in errands]

    async def fitting_answers_of_each(
        self, wanted: Sequence[tuple[str, Sequence[Command]]]
    ) -> list[list[Any] | None]:
        """The same, and None for a key under which something of another type lies."""
        errands = [Errand(key, tuple(commands)) for key, commands in wanted]
        await self._carry_out(errands)
        found: list[list[Any] | None] = []
        for errand in errands:
            try:
                found.append(_answers(errand))
            except WrongType:
                found.append(None)
        return found

    async def _carry_out(self, errands: Sequence[Errand]) -> None:
        if self._refusal is not None and any(errand.key != SCHEMA_KEY for errand in errands):
            raise StoreUnavailable(self._refusal)
        await self._router.run(errands)

    def _begin(self, key: str, command: Command) -> Begun | None:
        """Send a command at once, see `Router.begin`."""
        return None if self._refusal is not None else self._router.begin(key, (command,))

    async def _read(self, key: str, command: Command, script: Script | None = None) -> Any:
        begun = self._begin(key, command)
        if begun is not None:  # mostly, and a way of half as many steps
            answers = await self._router.finish(begun)
        else:
            errand = Errand(key, (command,))
            await self._carry_out([errand])
            answers = errand.answers
        if script is not None and isinstance(answers[0], NoScriptError):
            return await self._read(key, script.in_full(command))
        return _first(answers)

    async def _read_each(self, wanted: Sequence[tuple[str, Command]]) -> list[Any]:
        errands = [Errand(key, (command,)) for key, command in wanted]
        await self._carry_out(errands)
        return [_first(errand.answers) for errand in errands]

    def _run(
        self,
        script: Script,
        keys: Sequence[str],
        arguments: Sequence[str | float],
        *,
        waits: bool = True,
    ) -> Coroutine[Any, Any, Any]:
        send = self._write if waits else self._read
        return send(keys[0], ("EVALSHA", script.digest, len(keys), *keys, *arguments), script)

    def _write(
        self, key: str, command: Command, script: Script | None = None
    ) -> Coroutine[Any, Any, Any]:
        send = self._read if self._replicas == 0 else self._write_through
        return send(key, command, script)

    async def _write_through(self, key: str, command: Command, script: Script | None) -> Any:
        # WAIT counts what was written on its own connection.
        errand = Errand(key, (command, ("WAIT", self._replicas, REPLICA_WAIT_MS)))
        async with self._router.time_limit():
            await self._carry_out([errand])
            if script is not None and isinstance(errand.answers[0], NoScriptError):
                return await self._write_through(key, script.in_full(command), None)
            answer = _first(errand.answers)
            acknowledged = errand.answers[1]
            if isinstance(acknowledged, RedisError):
                raise judged(acknowledged)
            if acknowledged < self._replicas:
                await self._go_on_with_fewer(errand, acknowledged)
        return answer

    async def _go_on_with_fewer(self, errand: Errand, acknowledged: int) -> None:
        """Judge a write that too few replicas have: a pair that has lost one half must go on.

        But not a gateway that was cut off together with a primary that has been replaced: what is
        written there will be forgotten.
        """
        if not await self._router.is_still_primary(errand):
            raise StoreUnavailable("The primary that took the last write has been replaced")
        now = time.monotonic()
        if now - self._shortage_logged_at >= _SHORTAGE_LOGGED_EVERY_SECONDS:
            self._shortage_logged_at = now
            _log.warning(
                "a write is on %d of %d replicas after %d ms: a failover now would lose it",
                acknowledged,
                self._replicas,
                REPLICA_WAIT_MS,
            )


class Script:
    """A script of `store/lua`, sent by its digest whenever Redis knows it."""

    def __init__(self, name: str) -> None:
        file = resources.files("gateway.store").joinpath("lua", f"{name}.lua")
        self.text = file.read_text("utf-8")
        # The name that Redis gives it, no protection.
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def in_full(self, command: Command) -> Command:
        """The same command for a Redis without it, which has just started or become the primary."""
        return ("EVAL", self.text, *command[2:])


def _answers(errand: Errand) -> list[Any]:
    for answer in errand.answers:
        if isinstance(answer, RedisError):
            raise judged(answer) from answer
    return errand.answers


def _first(answers: Sequence[Any]) -> Any:
    answer = answers[0]
    if isinstance(answer, RedisError):
        raise judged(answer) from answer
    return answer
