"""The hostnames in order: a page of them by prefix, of as many as there are.

Each bucket has a list of its hostnames beside its documents, a sorted set of one score, which Redis
keeps by name. The script that writes or drops a document changes its list in the same step
(`store.documents`), so they agree whatever dies between. A page is merged from all lists: a few
names of each are asked for at once, and more of those lists only whose names may come before the
page's last, which makes two exchanges with Redis where names are spread evenly.

One list of all was the alternative: on a Cluster it would lie in another slot than the documents,
and a crash between two writes would leave it wrong.

A document of a former release, which has no lists, or a list that somebody deleted, is entered by
the census (`certificates.enumerator`), which also sifts each list: what has no document goes, as
one that a former release dropped, and what no gateway has listed. Whoever reads a name whose
document is gone puts that right at once. Something else in the place of a list reads as empty.
Must not: know what a document holds. Called by `certificates` and `http.page`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.contract.names import Hostname
from gateway.store import keys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from gateway.store.connection import Store
    from gateway.store.nodes import Command

_IN_HOSTNAMES: Final = re.compile(r"[a-z0-9.-]{0,253}")

SIFTED_AT_ONCE: Final = 500
"""About how many names of a list are judged at once."""

_PUT_RIGHT: Final = """\
if redis.call("TYPE", KEYS[1]).ok ~= "zset" then redis.call("DEL", KEYS[1]) end
for i = 1, #ARGV do
  if redis.call("EXISTS", KEYS[i + 1]) == 1 then
    redis.call("ZADD", KEYS[1], 0, ARGV[i])
  else
    redis.call("ZREM", KEYS[1], ARGV[i])
  end
end
return 1
"""
"""KEYS: a list, then documents, all of one slot; ARGV: their hostnames. Each is in the list then
exactly if its document is there. What is no sorted set is replaced."""


class NamePage(NamedTuple):
    """Hostnames in order, and whether more follow behind the last."""

    names: list[Hostname]
    has_more: bool


class NameIndex:
    """All hostnames that have a document. Every method raises StoreUnavailable and StoreRefused."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, prefix: str, after: str | None, limit: int) -> NamePage:
        """At most `limit` (1 or more) hostnames that begin with `prefix`, behind `after`, in order.

        Capitals in the prefix are read as small letters. A prefix that could not be in a hostname
        matches nothing; behind any ASCII text it goes on, since what somebody has put there may end
        a page. Names that come or go meanwhile may be there or not.
        """
        wanted, begins = limit + 1, prefix.lower() if prefix.isascii() else prefix
        if not (_IN_HOSTNAMES.fullmatch(begins) and (after or "").isascii()):
            return NamePage([], has_more=False)
        columns = [Column(bucket, after if after and after >= begins else None) for bucket in _ALL]
        names: list[str] = []
        asked, each = columns, _first_share(wanted)
        while asked:
            await self._read_on(asked, begins, each)
            names, asked = merged(columns, wanted)
            each = wanted
        return NamePage([Hostname(name) for name in names[:limit]], len(names) > limit)

    async def put_right(self, hostnames: Iterable[Hostname]) -> None:
        """Enter each hostname (some thousands at most) that has a document, take out the others.

        Judged and changed in one step for each bucket; may be repeated. Does not wait for replicas.
        """
        of_bucket: dict[int, list[Hostname]] = {}
        for hostname in hostnames:
            of_bucket.setdefault(keys.bucket_of(hostname), []).append(hostname)
        wanted: list[tuple[str, list[Command]]] = []
        for bucket, some in of_bucket.items():
            named = [keys.names_key(bucket), *map(keys.host_key, some)]
            wanted.append((named[0], [("EVAL", _PUT_RIGHT, len(named), *named, *some)]))
        await self._store.answers_of_each(wanted)

    async def sift(self) -> AsyncIterator[int]:
        """Take out of every list what has no document, or is no hostname of its bucket.

        Each is judged and changed in steps of its own; tells after each step how many names it has
        judged, for whoever is to rest then. What is entered meanwhile may be judged or not.
        """
        for bucket in _ALL:
            key, cursor = keys.names_key(bucket), "0"
            while True:
                scan = ("ZSCAN", key, cursor, "COUNT", SIFTED_AT_ONCE)
                (answers,) = await self._store.fitting_answers_of_each([(key, [scan])])
                if answers is None:
                    await self._store.answers_of_each([(key, [("EVAL", _PUT_RIGHT, 1, key)])])
                    break
                cursor, scored = answers[0]
                members = [member for member, _ in scored]
                await self._sift(bucket, members)
                yield len(members)
                if str(cursor) == "0":
                    break

    async def _sift(self, bucket: int, members: Sequence[str]) -> None:
        own = [Hostname(each) for each in members if _is_of(bucket, each)]
        await self.put_right(own)
        foreign = [each for each in members if not _is_of(bucket, each)]
        if foreign:
            key = keys.names_key(bucket)
            await self._store.answers_of_each([(key, [("ZREM", key, *foreign)])])

    async def _read_on(self, columns: Sequence[Column], prefix: str, count: int) -> None:
        end = f"({prefix[:-1]}{chr(ord(prefix[-1]) + 1)}" if prefix else "+"
        wanted = []
        for column in columns:
            start = f"({column.behind}" if column.behind else f"[{prefix}" if prefix else "-"
            key = keys.names_key(column.bucket)
            command = ("ZRANGE", key, start, end, "BYLEX", "LIMIT", 0, count)
            wanted.append((key, [command]))
        answers = await self._store.fitting_answers_of_each(wanted)
        for column, answer in zip(columns, answers, strict=True):
            members = [] if answer is None else answer[0]
            fitting = [each for each in members if each.startswith(prefix)]
            column.add(fitting, is_last=len(members) < count)


@dataclass(slots=True)
class Column:
    """What was read of one bucket's list: its names up to `behind`, or all of them."""

    bucket: int
    behind: str | None = None
    names: list[str] = field(default_factory=list)
    is_read_out: bool = False

    def add(self, members: Sequence[str], *, is_last: bool) -> None:
        """The next of the list. What is no hostname of this bucket was not written by a gateway.

        Nor was another score than 0, which has Redis answer out of order: what is not behind what
        was read is left out, so that each page ends.
        """
        start = "" if self.behind is None else self.behind
        behind = [each for each in members if _in_bytes(each) > _in_bytes(start)]
        self.names += [each for each in behind if _is_of(self.bucket, each)]
        self.is_read_out = is_last or not behind
        if behind:
            self.behind = max(behind, key=_in_bytes)


def merged(columns: Sequence[Column], wanted: int) -> tuple[list[str], list[Column]]:
    """The first `wanted` names read so far, and the columns that may have others before the last.

    They are the first of all once there are no such columns.
    """
    names = sorted(name for column in columns for name in column.names)[:wanted]
    is_full = len(names) == wanted
    unsettled = [
        column
        for column in columns
        if not column.is_read_out
        and not (is_full and column.behind is not None and column.behind >= names[-1])
    ]
    return names, unsettled


_ALL: Final = range(keys.BUCKETS)


def _first_share(wanted: int) -> int:
    """How many names of each bucket are enough for a page nearly always, spread as they are."""
    share = wanted / keys.BUCKETS
    return math.ceil(share + 3 * math.sqrt(share)) + 2


def _is_of(bucket: int, member: str) -> bool:
    return member.isascii() and keys.bucket_of(member) == bucket


def _in_bytes(member: str) -> bytes:
    """A member as Redis has it in order; of what is no UTF-8 too."""
    return member.encode(errors="surrogateescape")
