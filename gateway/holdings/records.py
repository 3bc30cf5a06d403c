"""`syncGatewayClientDnsRecord`: an ownership's one address record, published and withdrawn.

The zone is the truth and every answer states what it holds; Redis remembers who holds the hostname
and what was published last. A hostname is taken in Redis before the zone is touched, so that two
ownerships never publish side by side, and given up again when the zone turns out to hold something
foreign. Called by `access`; knows no token and no policy but the hostname's.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gateway.contract import (
    DnsRecord,
    Overloaded,
    SyncDnsRecordResponse,
    Unauthorized,
)
from gateway.dns.outcome import Outcome, OutcomeKind
from gateway.holdings import deeds
from gateway.holdings.as_seen import demand_as_seen
from gateway.holdings.conflicts_met import ConflictsMet
from gateway.holdings.hold import HeldByAnother, given_up, hold_for, is_established, owner_of
from gateway.holdings.orphans import is_intent
from gateway.holdings.quotas import Kind
from gateway.holdings.record_answers import (
    PUBLISHED,
    Withdrawal,
    answer_of,
    came_to_nothing,
    demand_means,
)
from gateway.holdings.remembered import (
    is_published,
    kept_record,
    published_record,
    remembered_record,
    says,
    sought_records,
)
from gateway.store.documents import Change, Contended, Document, Holder
from gateway.store.trail import NO_TRAIL

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.contract.names import Hostname
    from gateway.dns.owner import Owner
    from gateway.dns.publisher import Publisher
    from gateway.holdings.hold import Holds
    from gateway.holdings.orphans import Orphans
    from gateway.store.documents import Documents
    from gateway.store.routing import Begun
    from gateway.store.trail import Trail

CALL_BOUND_SECONDS: Final = 8.0
EVIDENCE_BOUND_SECONDS: Final = 2.0
ROUNDS: Final = 5
SOUGHT_BOUND: Final = 8
"""Of how many unknown outcomes a document keeps the records, the last ones."""


class _Overtaken(HeldByAnother):
    """The hostname was taken by another ownership after it had been read as free."""


class Records:
    """The address records of all ownerships. Every method raises `StoreUnavailable`.

    What a document remembers of a record carries an *edition*, a name that each write makes anew,
    so that a call can tell its own intent and what it has read from what another call has written
    since, be it the same record again.
    """

    def __init__(
        self,
        documents: Documents,
        holds: Holds,
        orphans: Orphans,
        publisher: Publisher,
        *,
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
        trail: Trail = NO_TRAIL,
    ) -> None:
        self._documents = documents
        self._holds = holds
        self._orphans = orphans
        self._publisher = publisher
        self._trail = trail
        self._new_id = new_id
        self._now_ms = now_ms
        self._conflicts_met = ConflictsMet()

    def look_ahead(self, hostname: Hostname) -> Begun | None:
        """Ask for what `publish` is likely to read; changes nothing. Used by it, or dropped."""
        return self._documents.look_ahead(hostname)

    async def publish(
        self, owner: Owner, wanted: DnsRecord, ahead: Begun | None = None
    ) -> SyncDnsRecordResponse:
        """Publish or replace the ownership's record; repeatable.

        `ahead` is what `look_ahead` of its hostname has asked for.

        Raises:
            Contended: another call withdrew the record each time it was published.
            Overloaded: the client may hold no more records, or this process can't ask the zone.
            Unauthorized: the client was removed meanwhile; nothing of the call is left.
        """
        deadline = _deadline()
        published: SyncDnsRecordResponse | None = None
        for each in range(ROUNDS):
            try:
                answer, is_kept = await self._publish_once(
                    owner, wanted, deadline, ahead if each == 0 else None
                )
            except HeldByAnother as fault:
                if isinstance(fault, _Overtaken) and published is None:
                    continue
                # What an earlier round has published is nobody's any more.
                if published is not None:
                    await self._take_out(owner, wanted, deadline)
                return await self._held_against(owner, wanted)
            except (Unauthorized, Overloaded) as refusal:
                # Removed meanwhile, or without room: what an earlier round has published goes too.
                if published is not None or isinstance(refusal, Unauthorized):
                    await self._take_out(owner, wanted, deadline)
                raise
            if published is not None and answer.status == "managed-unchanged":
                answer = published  # by an earlier round of this call
            if is_kept:
                return answer
            published = answer
        raise Contended(f"{owner.hostname} is being published and withdrawn at once")

    async def withdraw(self, owner: Owner) -> SyncDnsRecordResponse:
        """Withdraw the ownership's record, if it has one; repeatable.

        Raises:
            Contended: another call published the record each time it was withdrawn.
            Overloaded: this process can't ask the zone.
        """
        return (await self.withdrawal(owner)).answer

    async def withdrawal(self, owner: Owner, as_seen: str | None = None) -> Withdrawal:
        """The same, with what became of the zone; raises as `withdraw`.

        `as_seen`: the mark of the document whose record goes, and no other, neither in Redis nor in
        the zone. What the client publishes meanwhile stays, and is told.

        Raises:
            HostnameChanged: the document has another mark; nothing was done.
            PublishedOtherwise: the zone has another record of the ownership, and still has it.
        """
        holder = Holder(owner.client_id, owner.app_id)
        deadline = _deadline()
        so_far: Withdrawal | None = None
        for _ in range(ROUNDS):
            document = await self._documents.read(owner.hostname)
            demand_as_seen(document, as_seen)
            if hold_for(document, holder).is_conflict:
                return await self._withdraw_unheld(owner, document)
            remembered, sought = remembered_record(document), sought_records(document)
            outcome = await self._publisher.withdraw(
                owner,
                remembered=remembered,
                sought=sought,
                only=None if as_seen is None or remembered is None else (remembered, *sought),
                deadline=deadline,
            )
            known = published_record(document)
            done = Withdrawal(answer_of(owner.hostname, outcome), outcome, known)
            if so_far is None or not done.is_idle:
                self._told(owner, outcome, None, known)
            demand_means(outcome)
            so_far = done if so_far is None else so_far.then(done)
            if outcome.kind is not OutcomeKind.DELETED or await self._forget(document, holder):
                return so_far
            if as_seen is not None:
                now = await self._documents.read(owner.hostname)
                return replace(so_far, since=remembered_record(now))
        raise Contended(f"{owner.hostname} is being published and withdrawn at once")

    async def _withdraw_unheld(self, owner: Owner, document: Document) -> Withdrawal:
        """Something else holds the hostname; yet the zone may carry the ownership's record.

        So it is when Redis was emptied, and another asks for the hostname first or an operator
        claims it. A hold that was judged against the zone is different: whatever of the caller's
        has come to lie there since (an old marker beside the same address), it is the holder's.
        """
        outcome = _NOTHING_TO_WITHDRAW
        if document.claim is not None or is_intent(document):
            withdrawn = await self._publisher.withdraw(
                owner, remembered=None, sparing=owner_of(document), deadline=_deadline()
            )
            if withdrawn.kind is not OutcomeKind.DELETED:
                outcome = withdrawn
        return Withdrawal(self._told(owner, outcome, None), outcome)

    async def _publish_once(
        self, owner: Owner, wanted: DnsRecord, deadline: float, ahead: Begun | None
    ) -> tuple[SyncDnsRecordResponse, bool]:
        """One round; not so when the record was withdrawn again before it could be remembered.

        Raises:
            HeldByAnother, Unauthorized: the hostname could not be taken.
            _Overtaken: another took it just now, which is to be judged like one that had it before.
        """
        holder = Holder(owner.client_id, owner.app_id)
        document = await self._documents.read(owner.hostname, ahead)
        if hold_for(document, holder).is_conflict:
            document = await self._orphans.without_orphan(document, owner)
        if hold_for(document, holder).is_conflict:
            raise HeldByAnother(owner.hostname)
        edition = self._new_id()
        remembered = remembered_record(document, wanted)
        intended = document.record is None
        latest = document
        if intended:
            intent = {**kept_record(wanted, edition, published=False), "sinceMs": self._now_ms()}
            latest = await self._take(document, holder, intent)
        outcome = await self._publisher.publish(
            owner,
            wanted,
            held=is_established(document, holder),
            remembered=remembered,
            sought=sought_records(document),
            deadline=deadline,
        )
        known = remembered if is_published(document) else None
        answer = self._told(owner, outcome, wanted, known)
        if outcome.kind in PUBLISHED:
            if not await self._remember(latest, holder, outcome, edition):
                return answer, False
        elif outcome.unknown:
            await self._note(owner.hostname, holder, wanted)
        elif came_to_nothing(outcome, intended=intended):
            await self._take_back(owner.hostname, holder, edition if intended else None)
        demand_means(outcome)
        return answer, True

    async def _take_out(self, owner: Owner, record: DnsRecord, deadline: float) -> None:
        outcome = await self._publisher.withdraw(owner, remembered=record, deadline=deadline)
        self._told(owner, outcome, None, record)

    async def _take(
        self, document: Document, holder: Holder, intent: dict[str, object]
    ) -> Document:
        def choose(now: Document) -> Change:
            return Change({"record": intent} if now.record is None else {})

        try:
            return await self._holds.take(
                document.hostname, holder, choose, newly=Kind.RECORD, seen=document
            )
        except HeldByAnother as fault:
            raise _Overtaken(document.hostname) from fault

    async def _held_against(self, owner: Owner, wanted: DnsRecord) -> SyncDnsRecordResponse:
        """A conflict that Redis knows of; what lies at the name is shown as far as readable."""
        deadline = asyncio.get_running_loop().time() + EVIDENCE_BOUND_SECONDS
        found = await self._publisher.records_at(owner.hostname, deadline)
        detail = f"{owner.hostname} is held by something else."
        return self._told(owner, Outcome(OutcomeKind.CONFLICT, detail, found=found), wanted)

    def _told(
        self,
        owner: Owner,
        outcome: Outcome,
        wanted: DnsRecord | None,
        known: DnsRecord | None = None,
    ) -> SyncDnsRecordResponse:
        """The answer. The audit trail is told at once, whatever Redis is to remember afterwards."""
        answer = answer_of(owner.hostname, outcome)
        is_over = self._conflicts_met.is_ended_by(owner, outcome.kind)
        if outcome.kind is not OutcomeKind.UNCHANGED or is_over:
            deed = deeds.of_sync(owner, answer, wanted=wanted, known=known, outcome=outcome)
            self._trail.note(deed)
        return answer

    async def _remember(
        self, document: Document, holder: Holder, outcome: Outcome, edition: str
    ) -> bool:
        """Write down what was published; False when another call was faster, or gave the hold up.

        `document` is as the call has last seen it. Never takes the hostname: whoever gave it
        up has taken the record out of the zone as well.
        """
        record = outcome.record
        if record is None:
            return True
        is_unchanged = outcome.kind is OutcomeKind.UNCHANGED
        if is_unchanged and is_published(document) and says(document, record):
            return True
        is_mine = False

        def decide(now: Document) -> Change | None:
            nonlocal is_mine
            is_mine = now.holder == holder and now.record is not None
            if not is_mine or now.record == document.record:
                kept = kept_record(record, edition, published=True)
                return Change({"record": kept}) if is_mine else None
            # Another call has published meanwhile, and only the zone tells who came last.
            is_mine = is_published(now) and says(now, record)
            return None

        await self._documents.change(document.hostname, decide, document)
        return is_mine

    async def _note(self, hostname: Hostname, holder: Holder, wanted: DnsRecord) -> None:
        """The zone may carry this record instead of the one that is remembered, with its marker."""

        def decide(now: Document) -> Change | None:
            record = now.record
            known = (remembered_record(now), *sought_records(now))
            if now.holder != holder or record is None or wanted in known:
                return None
            sought = [*record.get("sought", ()), wanted.to_wire()][-SOUGHT_BOUND:]
            return Change({"record": {**record, "edition": self._new_id(), "sought": sought}})

        await self._documents.change(hostname, decide)

    async def _forget(self, seen: Document, holder: Holder) -> bool:
        """Give the record up; False when another call has published since it was read.

        Compares the record and not the document, which a worker may be busy with. There may have
        been none to give up, and yet be one now: it was taken out of the zone with the rest.
        """

        def decide(now: Document) -> Change | None:
            same = now.holder == holder and now.record == seen.record
            if not same or now.record is None:
                return None
            return Change(given_up(now, {"record": None}))

        after = await self._documents.change(seen.hostname, decide)
        if after.holder == holder and after.record is not None:
            return False
        if seen.record is None:
            return True
        await self._holds.forget(after, holder)
        return True

    async def _take_back(self, hostname: Hostname, holder: Holder, edition: str | None) -> None:
        """Give up an intent that came to nothing: of this edition, or any that a crash left."""

        def decide(document: Document) -> Change | None:
            record = document.record
            if document.holder != holder or record is None or record["published"]:
                return None
            if edition is not None and record["edition"] != edition:
                return None
            return Change(given_up(document, {"record": None}))

        await self._holds.forget(await self._documents.change(hostname, decide), holder)


_NOTHING_TO_WITHDRAW: Final = Outcome(
    OutcomeKind.DELETED, "This ownership has no record here; what others have was not touched."
)


def _deadline() -> float:
    return asyncio.get_running_loop().time() + CALL_BOUND_SECONDS
