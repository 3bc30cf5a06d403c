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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.names import Hostname
from gateway.store import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.contract.names import AppId, ClientId
    from gateway.store.connection import Store

Json = dict[str, Any]

ATTEMPTS: Final = 20
"""How often a change is decided anew when others keep changing the same document."""


class Contended(Exception):
    """A document changed under every attempt to change it; asking again is safe."""


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

    def is_held_by(self, holder: Holder) -> bool:
        """Whether this very ownership holds the hostname."""
        return self.holder == holder


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

    async def read(self, hostname: Hostname) -> Document:
        """The document of a hostname; an empty one (no version) when nothing is known of it."""
        return _parse(hostname, await self._store.fields(keys.host_key(hostname)))

    async def change(
        self, hostname: Hostname, decide: Callable[[Document], Change | None]
    ) -> Document:
        """Let `decide` choose a change, commit it atomically, and return the document after it.

        `decide` must be pure: it is called again when the document changed meanwhile, and whatever
        it raises passes through. None from it means that the document is right as it is.

        Raises:
            Contended: after `ATTEMPTS` changes by others.
        """
        for _ in range(ATTEMPTS):
            document = await self.read(hostname)
            change = decide(document)
            if change is None:
                return document
            changed = await self.commit(document, change)
            if changed is not None:
                return changed
        raise Contended(f"{hostname} is being changed by too many callers at once")

    async def postpone(self, hostname: Hostname, until_ms: int) -> None:
        """Move a hostname back in the due queue, whatever its document holds; never forward."""
        queue = keys.due_key(keys.bucket_of(hostname))
        await self._store.raise_score(queue, hostname, until_ms)

    async def commit(self, document: Document, change: Change) -> Document | None:
        """Make one change if the document is still as it was read; None when it is not."""
        after = replace(document, **change.fields)  # type: ignore[arg-type]
        dropped = all(getattr(after, name) in _NOTHING for name in _STATE_FIELDS)
        score = ""
        if change.touches_due or dropped:
            score = "-" if change.due_ms is None or dropped else str(change.due_ms)
        version = await self._store.commit(
            keys.host_key(document.hostname),
            keys.due_key(keys.bucket_of(document.hostname)),
            expected_version=document.version,
            member=document.hostname,
            score=score,
            drop="drop" if dropped and document.version else "",
            sets={
                name: _text(value)
                for name, value in change.fields.items()
                if value not in _NOTHING and not dropped
            },
            deletes=[
                name for name, value in change.fields.items() if value in _NOTHING and not dropped
            ],
        )
        if version is None:
            return None
        return Document(document.hostname) if dropped else replace(after, version=version)

    async def due(self, now_ms: int, limit_per_bucket: int) -> list[Hostname]:
        """Hostnames with work due at `now_ms` (epoch milliseconds), over all buckets."""
        queues = [keys.due_key(bucket) for bucket in range(keys.BUCKETS)]
        found = await self._store.due_members(queues, now_ms, limit_per_bucket)
        entries = sorted((score, name) for queue in found for name, score in queue)
        return [Hostname(name) for _, name in entries]


_STATE_FIELDS: Final = ("holder", "record", "claim", "certificate", "issuance", "debts")
"""A document with none of these says nothing and is dropped."""

_NOTHING: Final[tuple[object, ...]] = (None, (), [])
"""Field values that are stored by leaving the field out."""


def _text(value: object) -> str:
    if isinstance(value, Holder):
        value = {"clientId": value.client_id, "appId": value.app_id}
    elif isinstance(value, Lease):
        value = {"worker": value.worker, "fence": value.fence, "untilMs": value.until_ms}
    return json.dumps(value, separators=(",", ":"))


def _parse(hostname: Hostname, fields: Mapping[str, str]) -> Document:
    def value(name: str) -> Any:
        return json.loads(fields[name]) if name in fields else None

    holder = value("holder")
    lease = value("lease")
    return Document(
        hostname=hostname,
        version=fields.get("version", ""),
        holder=holder and Holder(holder["clientId"], holder["appId"]),
        record=value("record"),
        claim=value("claim"),
        certificate=value("certificate"),
        issuance=value("issuance"),
        debts=tuple(value("debts") or ()),
        lease=lease and Lease(lease["worker"], lease["fence"], lease["untilMs"]),
        fence=value("fence") or 0,
    )
