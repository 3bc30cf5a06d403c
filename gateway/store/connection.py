"""The connection to Redis, of whatever kind: reads, and writes that are one atomic step each.

Everything below `gateway.store` reaches Redis through `Store`. Knows no domain rule, and nothing of
how a command goes there and comes back: `store.sending` does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from redis.exceptions import RedisError

from gateway.store.faults import KeysApart, StoreRefused, StoreUnavailable, judged
from gateway.store.routing import Errand
from gateway.store.sending import Script, Sender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from gateway.store.routing import Begun

__all__ = ["As", "Entry", "EntryRefused", "Store", "StoreRefused", "StoreUnavailable", "Swap"]


class Swap(NamedTuple):
    """One value to change: `expected` "" is an absent one, `value` "" deletes it."""

    key: str
    expected: str
    value: str
    lifetime_ms: int


class Entry(NamedTuple):
    """An entry in the index of another document, made in the step that changes the first one."""

    document_key: str
    index_key: str
    score: str


class EntryRefused(Exception):
    """The document in whose index an entry was to be made is not there; nothing was changed."""


class As(NamedTuple):
    """That a hash has a field with this very text."""

    key: str
    field: str
    text: str


class Store(Sender):
    """Redis as the rest of the gateway sees it: a few reads, and one atomic change of a document.

    `url` is as in `store.places`. Every method raises what `store.sending` says.
    """

    def __init__(self, url: str, *, replicas: int | None = None) -> None:
        super().__init__(url, replicas=replicas)
        self._commit = Script("commit")
        self._remove_member = Script("remove_member")
        self._compare_and_set = Script("compare_and_set")
        self._take_call = Script("take_call")
        self._take_turn = Script("take_turn")
        self._reserve = Script("reserve")

    async def fields(self, key: str) -> dict[str, str]:
        """All fields of a hash; empty when it does not exist."""
        return cast("dict[str, str]", await self._read(key, ("HGETALL", key)))

    async def fields_of_each(self, keys: Sequence[str]) -> list[dict[str, str]]:
        """All fields of each of some hashes, in the same order, asked for at once."""
        return await self._read_each([(key, ("HGETALL", key)) for key in keys])

    async def hashes(self, keys: Sequence[str]) -> list[dict[str, str] | None]:
        """All fields of each of some hashes, as `fields_of_each`.

        None where something else lies under the key: it hides no other.
        """
        errands = [Errand(key, (("HGETALL", key),)) for key in keys]
        await self._carry_out(errands)
        return [_if_hash(errand.answers) for errand in errands]

    def begin_hash(self, key: str) -> Begun | None:
        """Ask for all fields of a hash at once, together with what follows.

        None where that cannot be done without waiting. Else `begun_hash` answers, or it is dropped.
        """
        return self._begin(key, ("HGETALL", key))

    async def begun_hash(self, begun: Begun) -> dict[str, str] | None:
        """What `begin_hash` has asked for, as `hashes` answers it."""
        found: dict[str, str] | None = _if_hash(await self._router.finish(begun))
        return found

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
        return [
            None
            if values is None
            else {
                name: value for name, value in zip(names, values, strict=True) if value is not None
            }
            for values in (_if_hash(errand.answers) for errand in errands)
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
        goes_with: str | None = None,
        entry: Entry | None = None,
    ) -> str | None:
        """Run `commit.lua`, which says what each argument means.

        Either `list_key` or `goes_with`, or none; an `entry` beside a `list_key` only, and not
        where Redis `has_slots`. Returns the version that the document was given if it was changed,
        or None when it was not as expected and nothing was changed. After `StoreUnavailable` the
        change may have been made: read again.

        Raises:
            EntryRefused: there is no such document as `entry` names.
            KeysApart: Redis has slots, as is known from now on; nothing was changed.
        """
        pairs = sets or {}
        new_version = os.urandom(8).hex()
        entered = "" if entry is None else entry.score
        arguments = [expected_version, new_version, member, score, drop, entered, str(len(pairs))]
        for pair in pairs.items():
            arguments += pair
        arguments += deletes
        keys = [document_key, index_key]
        if list_key is not None or goes_with is not None:
            keys.append(cast("str", list_key or goes_with))
        if entry is not None:
            keys += (entry.document_key, entry.index_key)
        try:
            changed = await self._run(self._commit, keys, arguments)
        except KeysApart:
            self.has_slots = True
            raise
        if changed == -1:
            raise EntryRefused
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
        """Run `take_turn.lua`: whether nobody has had the turn within its lifetime but this caller.

        No lock: it says when something is worth doing again. False also when Redis's answer was
        lost and the command was sent a second time.
        """
        return bool(await self._run(self._take_turn, [key], [lifetime_ms]) == 1)

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

    def take_call(
        self, key: str, now_us: int, interval_us: int, count: int, only_as: As | None = None
    ) -> Coroutine[Any, Any, int]:
        """Run `take_call.lua`: how long to wait for a call in microseconds, 0 when it was taken.

        With `only_as`, in the same slot, -1 when that is not so, and none was taken; `count` 0
        takes none. Does not wait for replicas: a rate may be forgotten. One that is sent a second
        time, since Redis's answer was lost, may take two.
        """
        if only_as is None:
            return self._run(self._take_call, (key,), (now_us, interval_us, count), waits=False)
        arguments = (now_us, interval_us, count, only_as.field, only_as.text)
        return self._run(self._take_call, (key, only_as.key), arguments, waits=False)

    async def reserve(self, key: str, name: str, now_ms: int, lifetime_ms: int) -> list[str]:
        """Run `reserve.lua`: all who have reserved, from the first to the last, this name too.

        Given back by `remove_member`. Does not wait for replicas: it is for the time of a call.
        """
        arguments = [name, str(now_ms), str(lifetime_ms)]
        return cast("list[str]", await self._run(self._reserve, [key], arguments, waits=False))

    async def set_size(self, key: str) -> int:
        """How many members a set has."""
        return cast("int", await self._read(key, ("SCARD", key)))


_SCORED: Final = "WITHSCORES"


def _if_hash(answers: Sequence[Any]) -> Any:
    """What a command for a hash came to; None where something else lies under its key."""
    answer = answers[0]
    if isinstance(answer, RedisError):
        if str(answer).startswith("WRONGTYPE"):
            return None
        raise judged(answer) from answer
    return answer


def _pairs(flat: Sequence[Any]) -> list[tuple[str, float]]:
    """Members and scores, which RESP2 lists in turn."""
    return [(member, float(score)) for member, score in zip(flat[::2], flat[1::2], strict=True)]
