"""What became of a request to the zone; `holdings` maps it to the contract's statuses."""

from dataclasses import dataclass
from enum import Enum

from gateway.contract import DnsRecord


class PublishedOtherwise(Exception):
    """The owner's record in the zone is not what was to be withdrawn: `found`, left as it is."""

    def __init__(self, found: "tuple[FoundRecord, ...]") -> None:
        super().__init__(", ".join(f"{each.type} {each.value}" for each in found))
        self.found = found


class OutcomeKind(Enum):
    """How it ended; FREE and OURS are answers of `inspect` only."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"
    FREE = "free"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """One record seen at a name; `name` without trailing dot, `value` as a zone file shows it."""

    name: str
    type: str
    value: str
    ttl: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The zone's answer.

    `record` is what the zone holds now for the owner (CREATED, UPDATED, UNCHANGED). `found` is all
    that lies at the name (CONFLICT, OURS), or what a wildcard answers for one that is free (FREE);
    `marked`: a marker of any owner is among it. `unknown`: FAILED, and a change may have been made.
    `detail` is one sentence for a person. `short`: UNAVAILABLE, but not by the zone's fault: this
    process may open no socket more.

    `removed` are the owner's addresses that the zone had and has no more. Of a withdrawal:
    `unmarked`, a marker of the owner went; `left`, addresses and aliases that lie there still.
    """

    kind: OutcomeKind
    detail: str
    record: DnsRecord | None = None
    found: tuple[FoundRecord, ...] = ()
    marked: bool = False
    retry_after_seconds: float | None = None
    unknown: bool = False
    short: bool = False
    removed: tuple[FoundRecord, ...] = ()
    unmarked: bool = False
    left: tuple[FoundRecord, ...] = ()
