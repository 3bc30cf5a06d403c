"""The connection to Redis, of whatever kind: reads, and writes that are one atomic step each.

Everything below `gateway.store` reaches Redis through `Store`; a Redis that cannot be reached, is
loading, is read-only or answers too late raises `StoreUnavailable`, and nothing else of redis-py's
own errors leaves this package. Knows no domain rule, and nothing of where a key lies:
`store.routing` does.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from redis.exceptions import NoScriptError, RedisError

from gateway.store.faults import StoreRefused, StoreUnavailable, judged
from gateway.store.keys import KEYRING_KEY, PROBE_KEYS, SCHEMA_KEY
from gateway.store.places import Kind, read_place
from gateway.store.routing import Errand, Router

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from gateway.store.nodes import Command

__all__ = ["Store", "StoreRefused", "StoreUnavailable", "Swap"]

REPLICA_WAIT_MS: Final = 200
"""How long a write waits for its replicas. The Redis itself stays free for others meanwhile."""

_SHORTAGE_LOGGED_EVERY_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


class Swap(NamedTuple):
    """One value to change: `expected` "" is an absent one, `value` "" deletes it."""

    key: str
    expected: str
    value: str
    lifetime_ms: int


class Store:
    """Redis as the rest of the gateway sees it: a few reads, and one atomic change of a document.

    `url` is as in `store.places`. Connections are opened when first needed; a command whose answer
    was lost may be sent once more, which every one of them stands. `replicas` is how many copies a
    write waits for, `REPLICA_WAIT_MS` at most: a failover takes the writes away that no replica
    has. None: one, where there can be a failover. Every method raises `StoreUnavailable` when
    Redis does not answer within `routing.LIMIT_SECONDS`, and `StoreRefused` when it answers with an
    error.
    """

    def __init__(self, url: str, *, replicas: int | None = None) -> None:
        place = read_place(url)
        self._router = Router(place)
        self._replicas = int(place.kind is not Kind.SINGLE) if replicas is None else replicas
        self._shortage_logged_at = -_SHORTAGE_LOGGED_EVERY_SECONDS
        self._refusal: str | None = None
        self._commit = _Script("commit")
        self._remove_member = _Script("remove_member")
        self._compare_and_set = _Script("compare_and_set")
        self._take_call = _Script("take_call")
        self._reserve = _Script("reserve")

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
            _answer(errand)

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
        _answer(errand)
        told = errand.answers[1]
        if isinstance(told, RedisError):
            raise judged(told) from told
        seconds, microseconds = told
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def fields(self, key: str) -> dict[str, str]:
        """All fields of a hash; empty when it does not exist."""
        return cast("dict[str, str]", await self._read(key, ("HGETALL", key)))

    async def fields_of_each(self, keys: Sequence[str]) -> list[dict[str, str]]:
        """All fields of each of some hashes, in the same order, asked for at once."""
        return await self._read_each([(key, ("HGETALL", key)) for key in keys])

    async def keys_like(self, pattern: str) -> AsyncIterator[str]:
        """Every key of this glob-style pattern, on all nodes; one may come more than once."""
        async for key in self._router.scan(pattern):
            yield key

    async def some_fields_of_each(
        self, keys: Sequence[str], names: Sequence[str]
    ) -> list[dict[str, str] | None]:
        """These fields, where they are there, of each of some hashes, in the same order, at once.

        None where something else lies under the key.
        """
        errands = [Errand(key, (("HMGET", key, *names),)) for key in keys]
        await self._carry_out(errands)
        found = [errand.answers[0] for errand in errands]
        return [
            None
            if isinstance(values, RedisError)
            else {
                name: value for name, value in zip(names, values, strict=True) if value is not None
            }
            for values in found
        ]

    async def commit(
        self,
        document_key: str,
        index_key: str,
        *,
        expected_version: str,
        member: str,
        score: str = "",
        drop: str = "",
        sets: dict[str, str] | None = None,
        deletes: Sequence[str] = (),
        list_key: str | None = None,
    ) -> str | None:
        """Run `commit.lua`, which says what each argument means.

        Returns the version that the document was given if it was changed, or None when it was not
        as expected and nothing was changed. After `StoreUnavailable` the change may have been
        made: read again.
        """
        pairs = sets or {}
        new_version = secrets.token_hex(8)
        arguments = [expected_version, new_version, member, score, drop, str(len(pairs))]
        for name, value in pairs.items():
            arguments += (name, value)
        arguments += deletes
        keys = [key for key in (document_key, index_key, list_key) if key is not None]
        changed = await self._run(self._commit, keys, arguments)
        return new_version if changed == 1 else None

    async def due_members(
        self, pages: Sequence[tuple[str, int]], until: int, limit_each: int
    ) -> list[list[tuple[str, float]]]:
        """For each sorted set and offset, the members with a score up to `until`, lowest first."""
        by_score = ("-inf", until, "BYSCORE", "LIMIT")
        answers = await self._read_each(
            [
                (key, ("ZRANGE", key, *by_score, offset, limit_each, _SCORED))
                for key, offset in pages
            ]
        )
        return [_pairs(answer) for answer in answers]

    async def remove_member(self, index_key: str, member: str, *, up_to_score: float) -> None:
        """Take a member out of a sorted set unless its score has grown past `up_to_score`."""
        await self._run(self._remove_member, [index_key], [member, up_to_score])

    async def raise_score(self, index_key: str, member: str, score: int) -> None:
        """Give a member of a sorted set a higher score; one that is not in it stays out."""
        await self._write(index_key, ("ZADD", index_key, "XX", "GT", score, member))

    async def members(self, index_key: str) -> list[tuple[str, float]]:
        """Every member of a sorted set with its score."""
        return _pairs(await self._read(index_key, ("ZRANGE", index_key, 0, -1, _SCORED)))

    async def highest_members(
        self, index_key: str, limit: int, offset: int = 0
    ) -> list[tuple[str, float]]:
        """The members of a sorted set with the highest scores, with them, the highest first."""
        command = ("ZRANGE", index_key, offset, offset + limit - 1, "REV", _SCORED)
        return _pairs(await self._read(index_key, command))

    async def rank_from_highest(self, index_key: str, member: str) -> int | None:
        """How many members of a sorted set come before this one there; None when it is not in."""
        return cast("int | None", await self._read(index_key, ("ZREVRANK", index_key, member)))

    async def member_counts(self, index_keys: Sequence[str]) -> list[int]:
        """How many members each of some sorted sets has, in the same order, asked for at once."""
        return await self._read_each([(key, ("ZCARD", key)) for key in index_keys])

    async def set_members(self, key: str) -> set[str]:
        """Every member of a set."""
        return set(cast("set[str]", await self._read(key, ("SMEMBERS", key))))

    async def add_to_set(self, key: str, member: str) -> None:
        """Add a member to a set; repeatable."""
        await self._write(key, ("SADD", key, member))

    async def remove_from_set(self, key: str, member: str) -> None:
        """Take a member out of a set; repeatable."""
        await self._write(key, ("SREM", key, member))

    async def set_field_once(self, key: str, name: str, value: str) -> None:
        """Set one field of a hash unless it is there already."""
        await self._write(key, ("HSETNX", key, name, value))

    async def set_field(self, key: str, name: str, value: str) -> None:
        """Set one field of a hash."""
        await self._write(key, ("HSET", key, name, value))

    async def delete_field(self, key: str, name: str) -> None:
        """Delete one field of a hash; repeatable."""
        await self._write(key, ("HDEL", key, name))

    async def values(self, keys: Sequence[str]) -> list[str | None]:
        """The values of some string keys of one slot, in the same order; None for an absent one."""
        return cast("list[str | None]", await self._read(keys[0], ("MGET", *keys)))

    async def take_turn(self, key: str, lifetime_ms: int) -> bool:
        """Set a key that nobody has set within its lifetime: whether this caller has the turn.

        No lock: it says when something is worth doing again. False also when Redis's answer was
        lost and the command was sent a second time.
        """
        return await self._write(key, ("SET", key, "1", "NX", "PX", lifetime_ms)) is not None

    async def put(self, key: str, value: str, lifetime_ms: int) -> None:
        """Set a value that ends after its lifetime."""
        await self._write(key, ("SET", key, value, "PX", lifetime_ms))

    async def compare_and_set(self, index_key: str, swaps: Sequence[Swap], now_ms: int) -> bool:
        """Run `compare_and_set.lua`: change all of these values, in one slot, or none of them.

        False when one was not as expected and nothing was changed; also when Redis's answer was
        lost and the script ran a second time. Does not wait for replicas: these values may be
        forgotten.
        """
        arguments = [str(now_ms)]
        for swap in swaps:
            arguments += (swap.expected, swap.value, str(swap.lifetime_ms))
        keys = [index_key, *(swap.key for swap in swaps)]
        answer = await self._run(self._compare_and_set, keys, arguments, waits=False)
        return bool(answer == 1)

    async def take_call(self, key: str, now_us: int, interval_us: int, count: int) -> int:
        """Run `take_call.lua`: how long to wait for a call in microseconds, 0 when it was taken.

        Does not wait for replicas: a rate may be forgotten. One that is sent a second time, since
        Redis's answer was lost, may take two.
        """
        arguments = [str(now_us), str(interval_us), str(count)]
        answer = await self._run(self._take_call, [key], arguments, waits=False)
        return cast("int", answer)

    async def reserve(self, key: str, name: str, now_ms: int, lifetime_ms: int) -> list[str]:
        """Run `reserve.lua`: all who have reserved, from the first to the last, this name too.

        Given back by `remove_member`. Does not wait for replicas: it is for the time of a call.
        """
        arguments = [name, str(now_ms), str(lifetime_ms)]
        return cast("list[str]", await self._run(self._reserve, [key], arguments, waits=False))

    async def set_size(self, key: str) -> int:
        """How many members a set has."""
        return cast("int", await self._read(key, ("SCARD", key)))

    async def answers_of_each(self, wanted: Sequence[tuple[str, Sequence[Command]]]) -> list[Any]:
        """For each key what its commands came to, a list; all at once.

        Those of one key go in order, on one connection. For `store.whole` and `store.stream`. Does
        not wait for replicas.
        """
        errands = [Errand(key, tuple(commands)) for key, commands in wanted]
        await self._carry_out(errands)
        for errand in errands:
            for answer in errand.answers:
                if isinstance(answer, RedisError):
                    raise judged(answer) from answer
        return [errand.answers for errand in errands]

    async def _carry_out(self, errands: Sequence[Errand]) -> None:
        if self._refusal is not None and any(errand.key != SCHEMA_KEY for errand in errands):
            raise StoreUnavailable(self._refusal)
        await self._router.run(errands)

    async def _read(self, key: str, command: Command) -> Any:
        (answer,) = await self._read_each([(key, command)])
        return answer

    async def _read_each(self, wanted: Sequence[tuple[str, Command]]) -> list[Any]:
        errands = [Errand(key, (command,)) for key, command in wanted]
        await self._carry_out(errands)
        return [_answer(errand) for errand in errands]

    async def _run(
        self,
        script: _Script,
        keys: Sequence[str],
        arguments: Sequence[str | float],
        *,
        waits: bool = True,
    ) -> Any:
        send = self._write if waits else self._read
        rest = (len(keys), *keys, *arguments)
        async with self._router.time_limit():
            try:
                return await send(keys[0], ("EVALSHA", script.digest, *rest))
            except _ScriptMissing:  # a Redis that has just started, or become the primary
                return await send(keys[0], ("EVAL", script.text, *rest))

    async def _write(self, key: str, command: Command) -> Any:
        if self._replicas == 0:
            return await self._read(key, command)
        # WAIT counts what was written on its own connection.
        errand = Errand(key, (command, ("WAIT", self._replicas, REPLICA_WAIT_MS)))
        async with self._router.time_limit():
            await self._carry_out([errand])
            answer = _answer(errand)
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


class _ScriptMissing(Exception):
    """The Redis has not seen this script yet."""


class _Script:
    """A script of `store/lua`, sent by its digest whenever Redis knows it."""

    def __init__(self, name: str) -> None:
        file = resources.files("gateway.store").joinpath("lua", f"{name}.lua")
        self.text = file.read_text("utf-8")
        # The name that Redis gives it, no protection.
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_SCORED: Final = "WITHSCORES"


def _answer(errand: Errand) -> Any:
    answer = errand.answers[0]
    if isinstance(answer, NoScriptError):
        raise _ScriptMissing
    if isinstance(answer, RedisError):
        raise judged(answer) from answer
    return answer


def _pairs(flat: Sequence[Any]) -> list[tuple[str, float]]:
    """Members and scores, which RESP2 lists in turn."""
    return [(member, float(score)) for member, score in zip(flat[::2], flat[1::2], strict=True)]
