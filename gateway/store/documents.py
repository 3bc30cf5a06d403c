"""Documents: all that Redis knows about one hostname, read whole and changed by compare-and-swap.

Every rule of the gateway is a pure function `decide(document, …) -> Change`; `Documents.change`
reads the document, lets the rule decide, and commits the change only if the document is still the
one that was read; else it reads and asks again. So no rule needs a lock, two processes never
overwrite each other, and a process that was stopped for an hour changes nothing when it goes on.

Locks held while deciding were the alternative: they must outlive the slowest decision and be fenced
anyway. Rules as Lua scripts were another: they would put each rule into a second language.

This module knows the fields and their JSON shapes, not what they mean. Called by `holdings` and
`certificates`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store import keys
from gateway.store.kept import KEPT, Kept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from gateway.store.connection import Entry, Store
    from gateway.store.routing import Begun

Json = dict[str, Any]

READ_AT_ONCE: Final = 200
"""How many documents are asked for at once where all are read."""

ATTEMPTS: Final = 20
"""How often a change is decided anew when others keep changing the same document."""


class Contended(Exception):
    """A document changed under every attempt to change it; asking again is safe."""


class Unreadable(ValueError):
    """What Redis has of a hostname is in no shape that this release knows."""

    def __init__(self, hostname: Hostname) -> None:
        super().__init__(f"What Redis has of {hostname} is not readable by this release")
        self.hostname = hostname


@dataclass(frozen=True, slots=True)
class Holder:
    """The ownership that holds a hostname."""

    client_id: ClientId
    app_id: AppId


@dataclass(frozen=True, slots=True)
class Lease:
    """Who works on a hostname, until when, under which fencing number (it only ever grows)."""

    worker: str
    fence: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Document:
    """What Redis holds about one hostname. The JSON fields belong to the layers named.

    `record` (holdings): `{type, value, ttl, published, edition}`, published last or about to be.
    `claim` (holdings): `{sinceMs, note}`. `certificate`, `issuance` (certificates): see
    `certificates.states`.
    `debts` (certificates): a list of what must still be cleaned up. `fence` is the last fencing
    number given out.
    """

    hostname: Hostname
    version: str = ""
    holder: Holder | None = None
    record: Json | None = None
    claim: Json | None = None
    certificate: Json | None = None
    issuance: Json | None = None
    debts: tuple[Json, ...] = ()
    lease: Lease | None = None
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What a rule wants: the fields to set (None deletes one) and when work is due next.

    `fields` are those of `Document` by name, in the types it has them. `due_ms` None takes the
    hostname out of the queue; without `touches_due` the queue stays as it is.
    """

    fields: Mapping[str, object] = field(default_factory=dict)
    due_ms: int | None = None
    touches_due: bool = False


class Documents:
    """The documents of all hostnames. Every method raises `StoreUnavailable` without Redis."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: Kept[Hostname, tuple[Mapping[str, str], Document]] = Kept(KEPT)

    def look_ahead(self, hostname: Hostname) -> Begun | None:
        """Ask for a document that is likely to be read, together with what follows.

        Reading changes nothing, so it may be asked for before it is known whether it is to be read.
        Else it is dropped. A wait for Redis less was a tenth of a call for a ready certificate.
        """
        return self._store.begin_hash(keys.host_key(hostname))

    async def read(self, hostname: Hostname, ahead: Begun | None = None) -> Document:
        """The document of a hostname; an empty one (no version) when nothing is known of it.

        The very same one as last time where nothing has changed: a fifth of a call for a ready
        certificate was to read the same texts again. `ahead` is as `look_ahead` has begun it.

        Raises:
            Unreadable: a newer release has written it, or somebody has altered it.
        """
        if ahead is None:
            (fields,) = await self._store.hashes([keys.host_key(hostname)])
        else:
            fields = await self._store.begun_hash(ahead)
        kept = self._kept.get(hostname)
        if kept is not None and kept[0] == fields:
            return kept[1]
        document = as_document(hostname, fields)
        if fields:
            self._kept.keep(hostname, (fields, document))
        return document

    async def read_many(self, hostnames: Sequence[Hostname]) -> list[Document | Unreadable]:
        """The documents of some hostnames (hundreds, not all there are), in the same order.

        One that cannot be read does not hide the others: the error is in its place.
        """
        found = await self._store.hashes([keys.host_key(name) for name in hostnames])
        return [_parsed(name, fields) for name, fields in zip(hostnames, found, strict=True)]

    async def all_hostnames(self) -> AsyncIterator[Hostname]:
        """Every hostname that has a document, each once, in no order; never all at a time.

        One that is added or dropped meanwhile may be there or not. While a Cluster moves slots, one
        may be missed: whoever needs them all asks again when that is over.
        """
        seen = set()
        async for hostname in self.listed_hostnames():
            if hostname not in seen:
                seen.add(hostname)
                yield hostname

    async def listed_hostnames(self) -> AsyncIterator[Hostname]:
        """As `all_hostnames`, but one may come twice while Redis makes room for more keys.

        For who would rather count one twice than keep all their names meanwhile.
        """
        async for key in self._store.keys_like(keys.HOST_KEYS):
            if keys.is_host_key(key):
                yield Hostname(keys.hostname_in(key))

    async def all(self) -> AsyncIterator[Document | Unreadable]:
        """Every document, found as `all_hostnames` has it and read as by `read_many`."""
        hostnames = [hostname async for hostname in self.all_hostnames()]
        for start in range(0, len(hostnames), READ_AT_ONCE):
            for each in await self.read_many(hostnames[start : start + READ_AT_ONCE]):
                if isinstance(each, Unreadable) or each.version:
                    yield each

    async def change(
        self,
        hostname: Hostname,
        decide: Callable[[Document], Change | None],
        seen: Document | None = None,
        entry: Entry | None = None,
    ) -> Document:
        """Let `decide` choose a change, commit it atomically, and return the document after it.

        `decide` must be pure: it is called again when the document changed meanwhile, and whatever
        it raises passes through. None from it means that the document is right as it is.

        `seen` is the document as the caller has read or written it, which mostly it still is: it is
        decided upon first, and believed if the commit finds it unchanged. A reading less, of the
        three of a new record.

        Raises:
            Contended: after `ATTEMPTS` changes by others.
            EntryRefused, KeysApart: of the `entry`, which is made together with the change, as
                `Store.commit` says; nothing was changed.
            Unreadable: as in `read`; nothing was changed.
        """
        if seen is not None and (change := decide(seen)) is not None:
            changed = await self.commit(seen, change, entry)
            if changed is not None:
                return changed
        for _ in range(ATTEMPTS):
            document = await self.read(hostname)
            change = decide(document)
            if change is None:
                return document
            changed = await self.commit(document, change, entry)
            if changed is not None:
                return changed
        raise Contended(f"{hostname} is being changed by too many callers at once")

    async def postpone(self, hostname: Hostname, until_ms: int) -> None:
        """Move a hostname back in the due queue, whatever its document holds; never forward."""
        queue = keys.due_key(keys.bucket_of(hostname))
        await self._store.raise_score(queue, hostname, until_ms)

    async def commit(
        self, document: Document, change: Change, entry: Entry | None = None
    ) -> Document | None:
        """Make one change if the document is still as it was read; None when it is not.

        `entry` is as in `change`.
        """
        after: dict[str, Any] = {name: getattr(document, name) for name in _FIELDS}
        after.update(change.fields)
        dropped = not any(_is_stored(after[name]) for name in _STATE_FIELDS)
        sets: dict[str, str] = {}
        deletes: list[str] = []
        for name, value in () if dropped else change.fields.items():
            if _is_stored(value):
                sets[name] = _text(value)
            else:
                deletes.append(name)
        score = ""
        if change.touches_due or dropped:
            score = "-" if change.due_ms is None or dropped else str(change.due_ms)
        bucket = keys.bucket_of(document.hostname)
        version = await self._store.commit(
            keys.host_key(document.hostname),
            keys.due_key(bucket),
            expected_version=document.version,
            member=document.hostname,
            score=score,
            drop="drop" if dropped and document.version else "",
            sets=sets,
            deletes=deletes,
            list_key=keys.names_key(bucket),
            entry=entry,
        )
        if version is None:
            return None
        after["version"] = version
        return Document(document.hostname) if dropped else Document(**after)

    async def due(self, now_ms: int, limit_per_bucket: int) -> list[Hostname]:
        """Hostnames with work due at `now_ms` (epoch milliseconds), over all buckets."""
        queues = [(keys.due_key(bucket), 0) for bucket in range(keys.BUCKETS)]
        found = await self._store.due_members(queues, now_ms, limit_per_bucket)
        entries = sorted((score, name) for queue in found for name, score in queue)
        return [Hostname(name) for _, name in entries]

    async def due_pages(
        self, now_ms: int, pages: Sequence[tuple[int, int]], limit: int
    ) -> list[list[Hostname]]:
        """For each bucket and offset, hostnames with work due at `now_ms`, the longest due first.

        The queues move between two calls: what one offset has passed by may be behind it.
        """
        queues = [(keys.due_key(bucket), offset) for bucket, offset in pages]
        found = await self._store.due_members(queues, now_ms, limit)
        return [[Hostname(name) for name, _ in members] for members in found]

    async def first_due_ms(self, now_ms: int) -> int | None:
        """Since when the hostname waits that is due the longest at `now_ms`; None with none due."""
        queues = [(keys.due_key(bucket), 0) for bucket in range(keys.BUCKETS)]
        found = await self._store.due_members(queues, now_ms, 1)
        scores = [score for queue in found for _, score in queue]
        # Whoever may write to Redis may have put anything there, infinity too.
        return int(max(0.0, min(scores))) if scores else None

    async def are_held(
        self, client_id: ClientId, hostnames: Sequence[Hostname], fields: Sequence[str]
    ) -> list[bool]:
        """Whether a client holds each hostname with any of these fields, in the same order."""
        hosts = [keys.host_key(hostname) for hostname in hostnames]
        found = await self._store.some_fields_of_each(hosts, ("holder", *fields))
        return [
            present is not None
            and _client_in(present.get("holder")) == client_id
            and any(name in present for name in fields)
            for present in found
        ]

    async def clients_of(self, hostnames: Sequence[Hostname]) -> list[ClientId | None]:
        """The client that holds each hostname; None where nobody does, or it cannot be read."""
        hosts = [keys.host_key(hostname) for hostname in hostnames]
        found = await self._store.some_fields_of_each(hosts, ("holder",))
        return [_client_in((present or {}).get("holder")) for present in found]


_STATE_FIELDS: Final = ("holder", "record", "claim", "certificate", "issuance", "debts")
"""A document with none of these says nothing and is dropped."""

_LONGEST_WORD: Final = 1_024
"""Of an id, in characters: none is nearly as long."""

_FIELDS: Final = tuple(Document.__dataclass_fields__)
_WRITTEN: Final = json.JSONEncoder(separators=(",", ":")).encode


def _is_stored(value: object) -> bool:
    """Whether a field with this value is there; None and an empty list are stored by no field."""
    return value is not None and bool(value or type(value) not in {tuple, list})


def _text(value: object) -> str:
    if isinstance(value, Holder):
        value = {"clientId": value.client_id, "appId": value.app_id}
    elif isinstance(value, Lease):
        value = {"worker": value.worker, "fence": value.fence, "untilMs": value.until_ms}
    return _WRITTEN(value)


def _client_in(holder: str | None) -> ClientId | None:
    try:
        return ClientId(_word(json.loads(holder or "null")["clientId"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _parsed(hostname: Hostname, fields: Mapping[str, str] | None) -> Document | Unreadable:
    try:
        return as_document(hostname, fields)
    except Unreadable as fault:
        return fault


def as_document(hostname: Hostname, fields: Mapping[str, str] | None) -> Document:
    """A document from the fields of its hash; None stands for what is none. Raises `Unreadable`."""
    if fields is None:
        raise Unreadable(hostname)
    try:
        return _document(hostname, fields)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise Unreadable(hostname) from None


def _holder(stored: Json) -> Holder:
    return Holder(ClientId(_word(stored["clientId"])), AppId(_word(stored["appId"])))


def _word(value: object) -> str:
    """What may be an id; raises TypeError, and ValueError for half a character of UTF-16."""
    if type(value) is not str or len(value) > _LONGEST_WORD:
        raise TypeError("no id")
    value.encode()
    return value


def _lease(stored: Json) -> Lease:
    """A lease; whatever time it ends at, since `certificates.leases` judges one that none can."""
    worker, fence, until_ms = stored["worker"], stored["fence"], stored["untilMs"]
    if type(worker) is not str or type(fence) is not int or type(until_ms) is not int:
        raise TypeError("lease")
    return Lease(worker, fence, until_ms)


def _document(hostname: Hostname, fields: Mapping[str, str]) -> Document:
    def value(name: str, kind: type = dict) -> Any:
        found = json.loads(fields[name]) if name in fields else None
        if not isinstance(found, kind | None):
            raise TypeError(name)
        return found

    holder = value("holder")
    lease = value("lease")
    debts = tuple(value("debts", list) or ())
    if not all(isinstance(debt, dict) for debt in debts):
        raise TypeError("debts")
    return Document(
        hostname=hostname,
        version=fields.get("version", ""),
        holder=None if holder is None else _holder(holder),
        record=value("record"),
        claim=value("claim"),
        certificate=value("certificate"),
        issuance=value("issuance"),
        debts=debts,
        lease=None if lease is None else _lease(lease),
        fence=value("fence", int) or 0,
    )
