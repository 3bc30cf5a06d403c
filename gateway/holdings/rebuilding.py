"""What the zones hold and what Redis says of it, brought together after Redis was lost.

Each name with a marker is read and its marker tried for every candidate. What is proven and unknown
to Redis is written there; what is not is told with the reason, and its owner's next call proves it
by itself. A document that says something else is never overwritten, and no zone is ever changed.

A zone that allows a transfer is read whole. Of another one only those names are looked at that
somebody knows: Redis, or the caller. Called by `gateway holdings rebuild`, which has the words.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gateway.certificates.agenda import debts_of
from gateway.contract import Unauthorized
from gateway.contract.hostnames import is_gateway_client_hostname
from gateway.dns.errors import DnsFault, Unreachable
from gateway.dns.survey import Remembered, Sight, Verdict
from gateway.dns.transfer import Challenge
from gateway.holdings.hold import HeldByAnother, owner_of
from gateway.holdings.orphans import is_intent
from gateway.holdings.remembered import remembered_record
from gateway.store.documents import Change, Contended, Document, Holder, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname, ZoneName
    from gateway.dns.owner import Owner
    from gateway.dns.survey import Surveyor
    from gateway.dns.zones import Zone, Zones
    from gateway.holdings.candidates import Candidates
    from gateway.holdings.restoring import Restoring
    from gateway.store.documents import Documents

READ_AT_ONCE: Final = 100
AT_ONCE: Final = 16
BOUND_SECONDS: Final = 8.0
GIVEN_UP_AFTER: Final = 3
"""Names of one zone in a row that could not be read; each may have taken its whole time."""

TRIED_SHOWN: Final = 5
"""Ownerships that are named where none of them is proven."""


class Upshot(StrEnum):
    """What came of one name."""

    RESTORED = "restored"
    RESTORABLE = "restorable"
    KNOWN = "known"
    DISAGREES = "disagrees"
    CLIENT_UNKNOWN = "client-unknown"
    UNPROVEN = "unproven"
    UNKNOWN_KEY = "unknown-key"
    MALFORMED = "malformed"
    ADDRESS_GONE = "address-gone"
    ADDRESS_EDITED = "address-edited"
    AMBIGUOUS = "ambiguous"
    NO_HOSTNAME = "no-hostname"
    NOT_IN_ZONE = "not-in-zone"
    CHANGED = "changed"
    UNREAD = "unread"
    UNREADABLE = "unreadable"


SETTLED: Final = frozenset({Upshot.RESTORED, Upshot.RESTORABLE, Upshot.KNOWN})
"""What leaves nothing for a person to do."""

_OF_VERDICT: Final = {
    Verdict.AMBIGUOUS: Upshot.AMBIGUOUS,
    Verdict.EDITED: Upshot.ADDRESS_EDITED,
    Verdict.ADDRESS_GONE: Upshot.ADDRESS_GONE,
    Verdict.UNPROVEN: Upshot.UNPROVEN,
    Verdict.UNKNOWN_KEY: Upshot.UNKNOWN_KEY,
    Verdict.MALFORMED: Upshot.MALFORMED,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One name. `owner` is who is proven, `record` what is; `detail` says more, or is empty."""

    hostname: str
    outcome: Upshot
    owner: Owner | None = None
    record: DnsRecord | None = None
    detail: str = ""
    key_ids: tuple[str, ...] = ()
    markers: int = 0


@dataclass(slots=True)
class ZoneReport:
    """One zone. `partial` says why it was not read whole; then only known names were looked at.

    `read` counts the names that were read, whatever they carry. `challenges` are TXT values at
    challenge names that no document owes.
    """

    zone: ZoneName
    partial: str | None = None
    looked_at: int = 0
    read: int = 0
    findings: list[Finding] = field(default_factory=list)
    challenges: list[Challenge] = field(default_factory=list)

    @property
    def is_unreadable(self) -> bool:
        """Is nothing known of the zone, neither by a transfer nor by a single name?"""
        return self.partial is not None and not self.read

    @property
    def is_settled(self) -> bool:
        """Is all that was looked at proven, and known to Redis?"""
        return not self.is_unreadable and all(each.outcome in SETTLED for each in self.findings)


class Rebuilding:
    """One run. Without `writes` it only reports. Every method raises `StoreUnavailable`."""

    def __init__(
        self,
        documents: Documents,
        zones: Zones,
        surveyor: Surveyor,
        restoring: Restoring,
        candidates: Candidates,
        *,
        writes: bool,
    ) -> None:
        self._documents = documents
        self._zones = zones
        self._surveyor = surveyor
        self._restoring = restoring
        self._candidates = candidates
        self._writes = writes
        self._recorded: set[Hostname] = set()
        self._owed: set[Challenge] = set()
        self._silences = 0

    async def survey_redis(self) -> None:
        """Note what Redis knows: names with a record, `appId`s, challenges that are owed."""
        async for document in self._documents.all():
            if isinstance(document, Unreadable):
                # To be told, also where the zone has no marker there or can't be transferred.
                self._recorded.add(document.hostname)
                continue
            if document.record is not None:
                self._recorded.add(document.hostname)
            if document.holder is not None:
                self._candidates.add_app_id(document.holder.app_id)
            self._owed.update(_owed(document))

    async def rebuild(self, zone: Zone, given: Iterable[Hostname] = ()) -> ZoneReport:
        """Go through one zone; `given` are names that the caller knows, of any zone."""
        report = ZoneReport(zone.name)
        names: set[str] = set(self._recorded) | set(given)
        self._silences = 0
        try:
            contents = await self._surveyor.contents(zone)
        except DnsFault as fault:
            report.partial = fault.detail
            if isinstance(fault, Unreachable):
                # No name could be read either.
                self._silences = GIVEN_UP_AFTER
        else:
            names.update(contents.marked)
            report.challenges = list(contents.challenges)
        mine = sorted(name for name in names if self._zones.holding(name) == zone)
        report.looked_at = len(mine)
        for start in range(0, len(mine), READ_AT_ONCE):
            await self._visit(zone, mine[start : start + READ_AT_ONCE], report)
        report.challenges = [each for each in report.challenges if each not in self._owed]
        return report

    async def _visit(self, zone: Zone, names: list[str], report: ZoneReport) -> None:
        places = asyncio.Semaphore(AT_ONCE)

        async def visit_one(name: str) -> Finding | None:
            async with places:
                return await self._found(zone, name, report)

        tasks = [asyncio.create_task(visit_one(name)) for name in names]
        try:
            findings = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        report.findings += [finding for finding in findings if finding is not None]

    async def _found(self, zone: Zone, name: str, report: ZoneReport) -> Finding | None:
        if not is_gateway_client_hostname(name):
            return Finding(name, Upshot.NO_HOSTNAME)
        if self._silences >= GIVEN_UP_AFTER:
            return Finding(name, Upshot.UNREAD, detail="The zone did not answer for others.")
        try:
            document = await self._documents.read(name)
            remembered = _remembered(document)
        except Unreadable:
            return Finding(name, Upshot.UNREADABLE)
        deadline = asyncio.get_running_loop().time() + BOUND_SECONDS
        try:
            sight = await self._surveyor.look(
                zone, name, self._candidates.of(name), remembered, deadline=deadline
            )
            if report.partial is not None:
                report.challenges += await self._surveyor.challenges_of(
                    zone, name, deadline=deadline
                )
        except DnsFault as fault:
            self._silences += fault.retry_after_seconds is not None
            return Finding(name, Upshot.UNREAD, detail=fault.detail)
        self._silences = 0
        report.read += 1
        return await self._settled(document, sight)

    async def _settled(self, document: Document, sight: Sight) -> Finding | None:
        finding = judge(document, sight)
        if finding is not None and finding.outcome is Upshot.UNPROVEN:
            return replace(finding, detail=self._tried_words(document))
        if finding is None or finding.outcome is not Upshot.RESTORABLE or not self._writes:
            return finding
        return await self._restored(finding, document)

    def _tried_words(self, document: Document) -> str:
        """Whom an unproven marker was tried for, and what would have it proven."""
        hostname, remembered = document.hostname, _remembered(document)
        owners = self._candidates.of(hostname)
        if remembered is not None:
            owners = list(dict.fromkeys([*owners, remembered.owner]))
        names = [f"{owner.client_id}:{owner.app_id}" for owner in owners]
        more = len(names) - TRIED_SHOWN
        tried = ", ".join([*names[:TRIED_SHOWN], *([f"and {more} more"] if more > 0 else [])])
        words = f"Tried: {tried}. " if tried else ""
        if not self._candidates.clients_of(hostname):
            return f"{words}No client is provisioned whose patterns match: provision it first."
        if not tried:
            words = "No appId is known to try: give --app-id or --owners. "
        return f"{words}If the address was not edited, its owner's next sync proves it by itself."

    async def _restored(self, finding: Finding, seen: Document) -> Finding:
        owner, record = finding.owner, finding.record
        if owner is None or record is None:  # restorable is only what is proven
            return finding

        def choose(now: Document) -> Change:
            if (now.holder, now.record, now.claim) != (seen.holder, seen.record, seen.claim):
                raise HeldByAnother(owner.hostname)
            return Change()

        try:
            is_there = await self._restoring.restore(owner, record, choose, instead_of=seen.holder)
        except Unauthorized:
            return replace(finding, outcome=Upshot.CLIENT_UNKNOWN)
        except (HeldByAnother, Contended, Unreadable):
            why = "Redis's document was changed at the same moment."
            return replace(finding, outcome=Upshot.CHANGED, detail=why)
        if not is_there:
            why = "The record left the zone at the same moment."
            return replace(finding, outcome=Upshot.CHANGED, detail=why)
        return replace(finding, outcome=Upshot.RESTORED)


def judge(document: Document, sight: Sight) -> Finding | None:
    """What a name's document and its zone come to; None where neither says anything. Pure."""

    def told(outcome: Upshot, detail: str = "") -> Finding:
        owner = sight.owner
        return Finding(
            document.hostname, outcome, owner, sight.record, detail, sight.key_ids, sight.markers
        )

    if sight.owner is not None and sight.record is not None:
        outcome, detail = _of_proven(document, sight.owner, sight.record)
        return told(outcome, detail)
    if sight.verdict in _OF_VERDICT:
        return told(_OF_VERDICT[sight.verdict])
    record = remembered_record(document)
    if document.record is None or record is None or not document.record["published"]:
        return None
    lies = ", ".join(f"{each.type} {each.value}" for each in sight.found)
    instead = f"; at the name is {lies}" if lies else ""
    return told(Upshot.NOT_IN_ZONE, f"Redis says {record.type} {record.value}{instead}.")


def _of_proven(document: Document, owner: Owner, record: DnsRecord) -> tuple[Upshot, str]:
    if document.claim is not None:
        return Upshot.DISAGREES, "Redis says that the hostname is claimed by an operator."
    holder = document.holder
    if holder is None:
        return Upshot.RESTORABLE, ""
    if holder != Holder(owner.client_id, owner.app_id):
        if is_intent(document):
            # It can only come to a conflict: the zone says whose the hostname is (`orphans`).
            return Upshot.RESTORABLE, ""
        said = f"Redis says that {holder.client_id} holds it for {holder.app_id}."
        return Upshot.DISAGREES, said
    known = remembered_record(document)
    if known is None:
        return Upshot.RESTORABLE, ""
    if (known.type, known.value) == (record.type, record.value):
        return Upshot.KNOWN, ""
    return Upshot.DISAGREES, f"Redis says that the record is {known.type} {known.value}."


def _remembered(document: Document) -> Remembered | None:
    owner, record = owner_of(document), remembered_record(document)
    if owner is None or record is None:
        return None
    return Remembered(owner, record)


def _owed(document: Document) -> Iterable[Challenge]:
    try:
        debts = debts_of(document)
    except (KeyError, TypeError, ValueError):  # of a newer release
        return ()
    return tuple(Challenge(each.name, each.value) for each in debts if each.name and each.value)
