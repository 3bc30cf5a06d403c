"""Everything that the gateway keeps in Redis, key by key: for saving it and for writing it anew.

Responsible for telling the keys apart, for reading each in one atomic step (a document together
with its place in the due queue), and for writing what was read into any kind of Redis. Must not:
know what a value means, or when a Redis may be written to; `gateway.backup` does.

Names of keys are held all at a time, values only some: 100,000 documents are 10 MB of names.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.faults import quoted
from gateway.store import keys
from gateway.store.faults import StoreRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

    from gateway.store.connection import Store
    from gateway.store.nodes import Command

    Batch = list[tuple[str, list[Command]]]
    """Keys, and commands for each, in their order."""

READ_AT_ONCE: Final = 100
"""How many keys are read or written at once."""

PART_SIZE: Final = 500
"""How many members of a set or entries of a stream are in one piece."""

COMMANDS_AT_ONCE: Final = 1_000
BYTES_AT_ONCE: Final = 2 * 1024 * 1024
"""How much is sent in one exchange: a piece may be one command or many, and each small or large.
One command alone may be larger."""

_DOCUMENT: Final = """\
return {redis.call("HGETALL", KEYS[1]), redis.call("ZSCORE", KEYS[2], ARGV[1])}
"""
"""KEYS: a document and its due queue, of one slot; ARGV: the hostname. Writes nothing."""


class Sort(StrEnum):
    """What a key is for, in the words of a summary."""

    DOCUMENT = "hostname"
    CLIENT = "client"
    ACCOUNT = "ACME account"
    FIGURE = "budget figure"
    TRAIL = "audit trail"
    INDEX = "list"
    MARK = "mark"
    OTHER = "other key"


_SORTS: Final = (
    (re.compile(r"gw:\{h[0-9]+\}:host:.*", re.DOTALL), Sort.DOCUMENT),
    (re.compile(r"gw:\{c[0-9a-f]+\}:client"), Sort.CLIENT),
    (re.compile(r"gw:account:.*", re.DOTALL), Sort.ACCOUNT),
    (re.compile(r"gw:\{a[0-9a-f]{24}\}:.*", re.DOTALL), Sort.FIGURE),
    (
        re.compile(r"gw:\{h[0-9]+\}:(due|names)|gw:\{c[0-9a-f]+\}:holdings|gw:clients|gw:claims"),
        Sort.INDEX,
    ),
    (re.compile(r"gw:keyring|gw:schema|gw:page-.*", re.DOTALL), Sort.MARK),
    (re.compile(re.escape(keys.AUDIT_KEY)), Sort.TRAIL),
)


class KeyUnknown(Exception):
    """A key of the gateway's is of a kind that this release does not write; it is named."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A key with all it holds, or one part of a large one.

    `kind` is Redis's type of it. `values` are, for a hash, name and value in turn; for a `zset`,
    member and score; for a stream, each entry's id and its names and values; else texts.
    `is_first`: what lies under the key is to go before this is written. `expires_ms` is in epoch
    milliseconds; so are, as texts, a document's places in the due queue and in its holder's index.
    """

    key: str
    kind: str
    values: list[Any]
    is_first: bool = True
    expires_ms: int | None = None
    due: str | None = None
    entered: str | None = None

    def fields(self) -> dict[str, str]:
        """A hash's fields."""
        return dict(zip(self.values[::2], self.values[1::2], strict=True))


def hash_piece(key: str, fields: dict[str, str]) -> Piece:
    """A whole hash."""
    return Piece(key, "hash", [text for pair in fields.items() for text in pair])


def sort_of(key: str) -> Sort:
    """What a key is for."""
    for pattern, sort in _SORTS:
        if pattern.fullmatch(key):
            is_foreign = sort is Sort.DOCUMENT and not keys.is_host_key(key)
            return Sort.OTHER if is_foreign else sort
    return Sort.OTHER


class Whole:
    """All keys of one Redis. Every method raises `StoreUnavailable`; reading may be repeated."""

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms

    async def names(self) -> dict[Sort, list[str]]:
        """The names of all keys, by what they are for.

        One that comes or goes meanwhile may be there or not; none may be moved between the nodes
        of a Cluster meanwhile.
        """
        found: dict[Sort, list[str]] = {sort: [] for sort in Sort}
        for key in {key async for key in self._store.keys_like(keys.ALL_KEYS)}:
            found[sort_of(key)].append(key)
        return found

    async def count(self) -> Counter[Sort]:
        """How many keys of each sort there are."""
        return Counter({sort: len(names) for sort, names in (await self.names()).items() if names})

    async def documents(self, document_keys: Sequence[str]) -> list[Piece]:
        """Some documents (`READ_AT_ONCE` at most), those that are gone left out."""
        wanted = []
        for key in document_keys:
            hostname = keys.hostname_in(key)
            due_key = keys.due_key(keys.bucket_of(hostname))
            wanted.append((key, [("EVAL", _DOCUMENT, 2, key, due_key, hostname)]))
        try:
            found = await self._store.answers_of_each(wanted)
        except StoreRefused:
            await self._require_hashes(document_keys)
            raise
        return [
            Piece(key, "hash", flat, due=due)
            for key, ((flat, due),) in zip(document_keys, found, strict=True)
            if flat
        ]

    async def hashes(self, hash_keys: Sequence[str]) -> list[Piece]:
        """Some hashes (`READ_AT_ONCE` at most), those that are gone left out.

        Raises:
            KeyUnknown: one is something else; so with `documents`.
        """
        try:
            found = await self._store.fields_of_each(hash_keys)
        except StoreRefused:
            await self._require_hashes(hash_keys)
            raise
        return [
            hash_piece(key, fields) for key, fields in zip(hash_keys, found, strict=True) if fields
        ]

    async def entered(self, holdings: Sequence[tuple[str, str]]) -> list[str | None]:
        """The place in a holder's index of some clients and hostnames, where there is one."""
        wanted = []
        for client_id, hostname in holdings:
            key = keys.client_holdings_key(keys.fingerprint(client_id))
            wanted.append((key, [("ZSCORE", key, hostname)]))
        answers = await self._store.answers_of_each(wanted)
        return [None if score is None else _number(score) for (score,) in answers]

    async def others(self, names: Sequence[str]) -> AsyncIterator[Piece]:
        """Keys of any kind, in pieces; those that are gone are left out.

        Raises:
            KeyUnknown: one is of a kind that the gateway does not write.
        """
        for start in range(0, len(names), READ_AT_ONCE):
            some = names[start : start + READ_AT_ONCE]
            asked = [(key, [("TYPE", key), ("PTTL", key)]) for key in some]
            answers = await self._store.answers_of_each(asked)
            kinds: dict[str, str] = {}
            expiries: dict[str, int | None] = {}
            for key, (kind, lifetime_ms) in zip(some, answers, strict=True):
                if kind not in {"none", "stream", *_READING}:
                    what = f"a {kind}, which is nothing that this release keeps"
                    raise KeyUnknown(f"{_shown(key)} is {what}")
                kinds[key] = kind
                expiries[key] = self._now_ms() + lifetime_ms if lifetime_ms >= 0 else None
            read_whole = [
                (key, [_READING[kinds[key]](key)]) for key in some if kinds[key] in _READING
            ]
            found = await self._store.answers_of_each(read_whole)
            for (key, _), (answer,) in zip(read_whole, found, strict=True):
                for piece in _parts(key, kinds[key], _flat(answer), expiries[key]):
                    yield piece
            for key in some:
                if kinds[key] == "stream":
                    async for piece in self._stream(key):
                        yield piece

    async def write(self, batch: Batch) -> None:
        """Write one of `batches`; repeatable, from the first one on."""
        await self._store.answers_of_each(batch)

    async def _require_hashes(self, names: Sequence[str]) -> None:
        """Raises `KeyUnknown` for the first that is there and no hash."""
        kinds = await self._store.answers_of_each([(key, [("TYPE", key)]) for key in names])
        for key, (kind,) in zip(names, kinds, strict=True):
            if kind not in {"hash", "none"}:
                raise KeyUnknown(f"{_shown(key)} is a {kind}, where the gateway keeps a hash")

    async def _stream(self, key: str) -> AsyncIterator[Piece]:
        after, is_first = "-", True
        while True:
            command = ("XRANGE", key, after, "+", "COUNT", PART_SIZE)
            ((entries,),) = await self._store.answers_of_each([(key, [command])])
            if not entries:
                return
            yield Piece(
                key, "stream", [[name, _flat(fields)] for name, fields in entries], is_first
            )
            after, is_first = f"({entries[-1][0]}", False


def batches(pieces: Iterable[Piece]) -> Iterator[Batch]:
    """What writes pieces, in exchanges of a bounded size; each key whole if all its pieces come."""
    commands: dict[str, list[Command]] = {}
    count = size = 0
    for piece in pieces:
        for command in _commands(piece):
            commands.setdefault(piece.key, []).append(command)
            count += 1
            size += sum(len(str(word)) for word in command)
            if count >= COMMANDS_AT_ONCE or size >= BYTES_AT_ONCE:
                yield list(commands.items())
                commands, count, size = {}, 0, 0
    if commands:
        yield list(commands.items())


def _parts(key: str, kind: str, values: list[Any], expires_ms: int | None) -> Iterator[Piece]:
    for start in range(0, len(values), 2 * PART_SIZE):
        yield Piece(key, kind, values[start : start + 2 * PART_SIZE], start == 0, expires_ms)


def _shown(key: str) -> str:
    """A key that somebody else has made, as it may be told: it may be any bytes, of any length."""
    return key if key.isascii() and key.isprintable() and len(key) < 200 else quoted(key)


_READING: Final[dict[str, Callable[[str], Command]]] = {
    "hash": lambda key: ("HGETALL", key),
    "set": lambda key: ("SMEMBERS", key),
    "zset": lambda key: ("ZRANGE", key, 0, -1, "WITHSCORES"),
    "string": lambda key: ("GET", key),
}


def _number(score: Any) -> str:
    """A score as Redis writes it; redis-py has made a number of it."""
    return f"{float(score):.17g}"


def _flat(answer: Any) -> list[Any]:
    """What Redis has answered as a list of texts, whatever redis-py has made of it."""
    if answer is None:
        return []
    if isinstance(answer, str):
        return [answer]
    if isinstance(answer, dict):
        return [text for pair in answer.items() for text in pair]
    return list(answer)


def _commands(piece: Piece) -> list[Command]:
    key, values = piece.key, piece.values
    commands: list[Command] = [("DEL", key)] if piece.is_first else []
    if piece.kind == "hash":
        commands.append(("HSET", key, *values))
    elif piece.kind == "string":
        commands.append(("SET", key, values[0]))
    elif piece.kind == "set":
        commands.append(("SADD", key, *values))
    elif piece.kind == "zset":
        scored = [text for pair in zip(values[1::2], values[::2], strict=True) for text in pair]
        commands.append(("ZADD", key, *scored))
    else:
        commands += [("XADD", key, name, *fields) for name, fields in values]
    if piece.expires_ms is not None:
        commands.append(("PEXPIREAT", key, piece.expires_ms))
    return commands
