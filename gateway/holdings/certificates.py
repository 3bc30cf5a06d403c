"""`getGatewayClientCertificate` and `releaseGatewayClientCertificate`: an ownership's certificate.

Reads and starts; the worker issues and renews. A certificate that has not expired is always handed
out, whatever its renewal does. Called by `access`; knows no token and no policy.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import structlog

from gateway import measures
from gateway.certificates import machine
from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.moves import SHORT_HOLD_MS, Moment
from gateway.certificates.sealing import KeyMissing, SealBroken
from gateway.certificates.states import Issuance, Reason, State, StoredCertificate
from gateway.contract import (
    CertificatePending,
    CertificateRefused,
    HandedOut,
    ReadyFrame,
    ReleaseResponse,
    Unavailable,
)
from gateway.dns.challenges import challenge_name
from gateway.dns.errors import ChallengeUnavailable
from gateway.dns.outcome import Outcome, OutcomeKind
from gateway.holdings import deeds
from gateway.holdings.as_seen import demand_as_seen
from gateway.holdings.hold import (
    HeldByAnother,
    Hold,
    hold_for,
    is_established,
    without_certificate,
)
from gateway.holdings.quotas import Kind
from gateway.holdings.record_answers import demand_means
from gateway.store import keys
from gateway.store.deeds import Role, acting
from gateway.store.documents import Change, Document, Holder
from gateway.store.kept import KEPT, Kept
from gateway.store.trail import NO_TRAIL, Once

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.pace import Pace
    from gateway.certificates.sealing import Keyring, Sealed
    from gateway.contract.names import ClientId, Hostname
    from gateway.dns.challenges import Challenges
    from gateway.dns.owner import Owner
    from gateway.dns.publisher import Publisher
    from gateway.holdings.hold import Holds
    from gateway.holdings.orphans import Orphans
    from gateway.store.documents import Documents
    from gateway.store.routing import Begun
    from gateway.store.trail import Trail

CALL_BOUND_SECONDS: Final = 8.0
KEY_MISSING_RETRY_MS: Final = 10_000

_log = structlog.get_logger(__name__)

Answer = HandedOut | CertificatePending | CertificateRefused


@dataclass(slots=True)
class _Ready:
    """All that a document says of a certificate to hand out to its holder; its key is sealed."""

    document: Document
    holder: Holder
    stored: StoredCertificate
    frame: ReadyFrame
    sealed: Sealed
    told_of: str = ""  # the credential that has the key, as the trail was told last


class Certificates:
    """The certificates of all ownerships. Every method raises `StoreUnavailable`.

    `get` raises `Unavailable` for a certificate whose key only other gateways can open.

    `wake` tells this process's worker, if it has one, of a client's hostname with new work. Without
    `issues`, no authority is configured and nothing is issued.
    """

    def __init__(
        self,
        documents: Documents,
        holds: Holds,
        orphans: Orphans,
        publisher: Publisher,
        challenges: Challenges,
        keyring: Keyring,
        pace: Pace,
        *,
        issues: bool,
        wake: Callable[[Hostname, ClientId], None],
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
        trail: Trail = NO_TRAIL,
    ) -> None:
        self._documents = documents
        self._holds = holds
        self._orphans = orphans
        self._publisher = publisher
        self._challenges = challenges
        self._keyring = keyring
        self._pace = pace
        self._issues = issues
        self._trail = trail
        self._wake = wake
        self._new_id = new_id
        self._now_ms = now_ms
        self._ready: Kept[Hostname, _Ready] = Kept(KEPT)

    def look_ahead(self, hostname: Hostname) -> Begun | None:
        """Ask for what `get` is likely to read; changes nothing. Used by `get`, or dropped."""
        return self._documents.look_ahead(hostname)

    async def get(self, owner: Owner, ahead: Begun | None = None) -> Answer:
        """The certificate, or how far its issuance has come; starts one when there is none.

        `ahead` is what `look_ahead` of its hostname has asked for.

        Raises:
            Overloaded: the client may hold no more certificates, or nobody here can ask the zone.
        """
        document = await self._documents.read(owner.hostname, ahead)
        handed_out = self._again(owner, document)
        if handed_out is not None:
            return handed_out
        holder = Holder(owner.client_id, owner.app_id)
        hold = hold_for(document, holder)
        if hold.is_conflict:
            document = await self._orphans.without_orphan(document, owner)
            hold = hold_for(document, holder)
        if hold.is_conflict:
            return self._refused(owner, _conflict(owner.hostname))
        if hold is Hold.MINE:
            now_ms = self._now_ms()
            handed_out = self._first(owner, holder, document, now_ms)
            if handed_out is not None:
                return handed_out
            issuance = issuance_of(document)
            if issuance is not None and issuance.barred:
                # Whoever asks is allowed to again: it goes on at once.
                return await self._unbar(owner)
            if issuance is not None:
                return self._under_way(owner.hostname, issuance, now_ms)
        return await self._start(owner, holder, document)

    async def release(self, owner: Owner) -> ReleaseResponse:
        """Give up the certificate, its key and any issuance under way; repeatable."""
        given_up = await self.give_up(owner)
        return ReleaseResponse(status="unchanged" if given_up is None else "released")

    async def give_up(self, owner: Owner, as_seen: str | None = None) -> Document | None:
        """The same, of what has this mark (else `HostnameChanged`): what was held, if anything."""
        holder, now_ms = Holder(owner.client_id, owner.app_id), self._now_ms()
        before: Document | None = None

        def decide(document: Document) -> Change | None:
            nonlocal before
            demand_as_seen(document, as_seen)
            held = document.certificate is not None or document.issuance is not None
            before = document if document.holder == holder and held else None
            return None if before is None else without_certificate(document, now_ms)

        after = await self._documents.change(owner.hostname, decide)
        if before is None:
            return None
        if before.issuance is not None:
            measures.issuance_ended(measures.UNKNOWN, "released")
        self._trail.note(deeds.of_release(owner, had_certificate=before.certificate is not None))
        await self._holds.forget(after, holder)
        self._wake(owner.hostname, owner.client_id)
        return before

    def _again(self, owner: Owner, document: Document) -> HandedOut | None:
        """What was handed out before, of the very same document: as nearly every call."""
        ready = self._ready.get(owner.hostname)
        if ready is None or ready.document is not document:
            return None
        holder, now_ms = ready.holder, self._now_ms()
        is_same = holder.app_id == owner.app_id and holder.client_id == owner.client_id
        if not (is_same and ready.stored.may_be_served_at(now_ms)):
            return None
        return self._handed_out(owner, ready, now_ms)

    def _first(
        self, owner: Owner, holder: Holder, document: Document, now_ms: int
    ) -> HandedOut | None:
        """The certificate, None when there is none to hand out: expired, or its key is lost."""
        try:
            ready = self._to_hand_out(holder, document, now_ms)
            if ready is None:
                return None
            handed_out = self._handed_out(owner, ready, now_ms)
        except SealBroken as fault:
            _log.error("a certificate's key does not open", hostname=owner.hostname, why=str(fault))
            return None
        self._ready.keep(owner.hostname, ready)
        return handed_out

    def _to_hand_out(self, holder: Holder, document: Document, now_ms: int) -> _Ready | None:
        """The certificate to hand out, None when there is none that has not expired.

        Raises:
            Unavailable: its key is sealed with one that this gateway does not hold.
            SealBroken: its key is lost.
        """
        stored = certificate_of(document)
        if stored is None or not stored.may_be_served_at(now_ms):
            return None
        hostname = document.hostname
        try:
            sealed = self._keyring.read(
                stored.sealed_key, purpose=KEY_PURPOSE, bound_to=key_binding(holder, hostname)
            )
        except KeyMissing as missing:
            # Another gateway holds it: it came into the keyring file after this one's start.
            _log.error("a certificate's key does not open here", hostname=hostname)
            text = "This gateway does not hold the key that the certificate is sealed with."
            raise Unavailable(KEY_MISSING_RETRY_MS, text) from missing
        frame = ReadyFrame.of(
            hostname,
            stored.chain_pem,
            valid_from=stored.valid_from_ms,
            valid_until=stored.valid_until_ms,
            renew_after=stored.renew_after_ms,
        )
        return _Ready(document, holder, stored, frame, sealed)

    def _handed_out(self, owner: Owner, ready: _Ready, now_ms: int) -> HandedOut:
        """The answer; raises SealBroken."""
        private_key_pem = ready.sealed.open().decode("ascii")
        self._tell_handing_out(owner, ready, now_ms)
        return HandedOut(ready.frame, private_key_pem)

    def _under_way(self, hostname: Hostname, issuance: Issuance, now_ms: int) -> Answer:
        rest_ms = max(issuance.due_at_ms, issuance.told_until_ms or 0) - now_ms
        if issuance.state not in {State.WAITING, State.FAILED}:
            remaining_ms = self._pace.remaining_ms(hostname, issuance, now_ms)
            return CertificatePending(retry_after_ms=max(remaining_ms, rest_ms))
        held_ms = max(rest_ms, 0) + self._pace.whole_ms(hostname)
        if issuance.reason is Reason.RATE_LIMITED and held_ms <= SHORT_HOLD_MS:
            # Under way, as far as a client is concerned.
            return CertificatePending(retry_after_ms=held_ms)
        return CertificateRefused(
            reason=(issuance.reason or Reason.ISSUANCE_FAILED).value,
            message=issuance.message or "The issuance did not succeed.",
            retry_after_ms=held_ms,
        )

    async def _unbar(self, owner: Owner) -> Answer:
        now_ms = self._now_ms()

        def decide(document: Document) -> Change | None:
            issuance = issuance_of(document)
            if issuance is None or not issuance.barred:
                return None
            free = replace(issuance, barred=False, due_at_ms=now_ms)
            return Change({"issuance": free.to_json()}, now_ms, touches_due=True)

        await self._documents.change(owner.hostname, decide)
        self._wake(owner.hostname, owner.client_id)
        return CertificatePending(retry_after_ms=self._pace.whole_ms(owner.hostname))

    async def _start(self, owner: Owner, holder: Holder, document: Document) -> Answer:
        refusal = self._cannot_issue(owner)
        if refusal is None and not is_established(document, holder):
            refusal = await self._judge_zone(owner)
        if refusal is not None:
            return self._refused(owner, refusal)
        now_ms = self._now_ms()
        issuance = machine.request(self._new_id(), Moment(now_ms, 0))
        # One that could not be handed out is there still: replaced only once there is a better one.
        seen = certificate_of(document)
        lost_id = None if seen is None else seen.issuance_id
        newly = Kind.CERTIFICATE if seen is None and document.issuance is None else None
        try:
            is_begun = await self._take(owner.hostname, holder, issuance, lost_id, newly)
        except HeldByAnother:
            return self._refused(owner, _conflict(owner.hostname))
        if is_begun:
            self._trail.note(deeds.of_request(owner, None))
        self._wake(owner.hostname, owner.client_id)
        return CertificatePending(retry_after_ms=self._pace.whole_ms(owner.hostname))

    async def _take(
        self,
        hostname: Hostname,
        holder: Holder,
        issuance: Issuance,
        lost_id: str | None,
        newly: Kind | None,
    ) -> bool:
        """Store the issuance; False where another call of the same ownership was first."""
        after = await self._holds.take(
            hostname,
            holder,
            lambda document: begun(document, issuance, lost_id),
            newly=newly,
        )
        now = issuance_of(after)
        return now is not None and now.issuance_id == issuance.issuance_id

    def _refused(self, owner: Owner, refusal: CertificateRefused) -> CertificateRefused:
        self._trail.note(deeds.of_request(owner, refusal))
        return refusal

    def _tell_handing_out(self, owner: Owner, ready: _Ready, now_ms: int) -> None:
        """Tell the trail, which has mostly just been told the same: to find that out was 2%."""
        actor, stored = acting(), ready.stored
        if actor is not None and actor.role is Role.CLIENT and actor.name != ready.told_of:
            ready.told_of = actor.name
            key = keys.handed_key(owner.hostname, stored.issuance_id, actor.name)
            once = Once(key, max(1, stored.valid_until_ms - now_ms))
            self._trail.note_once(once, lambda: deeds.of_handing_out(owner, stored))

    def _cannot_issue(self, owner: Owner) -> CertificateRefused | None:
        if not self._issues:
            return CertificateRefused(
                reason="authority-unavailable",
                message="No certificate authority is configured at this gateway.",
                retry_after_ms=None,
            )
        try:
            challenge_name(owner.hostname)
        except ChallengeUnavailable as fault:
            return _without_challenge(fault)
        return None

    async def _judge_zone(self, owner: Owner) -> CertificateRefused | None:
        deadline = asyncio.get_running_loop().time() + CALL_BOUND_SECONDS
        outcome: Outcome = await self._publisher.inspect(owner, deadline=deadline)
        if outcome.kind is OutcomeKind.FREE and outcome.found:
            return await self._judge_wildcard(owner, deadline)
        if outcome.kind in {OutcomeKind.FREE, OutcomeKind.OURS}:
            return None
        if outcome.kind is OutcomeKind.CONFLICT:
            return _conflict(owner.hostname)
        demand_means(outcome)
        retry = outcome.retry_after_seconds
        return CertificateRefused(
            reason="zone-unavailable",
            message=outcome.detail,
            retry_after_ms=None if retry is None else int(retry * 1000),
        )

    async def _judge_wildcard(self, owner: Owner, deadline: float) -> CertificateRefused | None:
        """A name that a wildcard answers for: told before an order is placed for nothing."""
        try:
            await self._challenges.locate(owner.hostname, deadline)
        except ChallengeUnavailable as fault:
            return _without_challenge(fault)
        return None


def begun(document: Document, issuance: Issuance, lost_id: str | None) -> Change:
    """What starts an issuance; nothing where one runs, or has come to its certificate already.

    The latter when the zone took so long to judge that another call's issuance was done meanwhile.
    `lost_id` is the issuance of a certificate that cannot be handed out.
    """
    certificate = certificate_of(document)
    is_served = (
        certificate is not None
        and certificate.issuance_id != lost_id
        and certificate.may_be_served_at(issuance.begun_at_ms)
    )
    if document.issuance is not None or is_served:
        return Change()
    return Change({"issuance": issuance.to_json()}, issuance.due_at_ms, touches_due=True)


def _without_challenge(fault: ChallengeUnavailable) -> CertificateRefused:
    retry = fault.retry_after_seconds
    return CertificateRefused(
        reason=fault.reason,
        message=fault.detail,
        retry_after_ms=None if retry is None else int(retry * 1000),
    )


def _conflict(hostname: Hostname) -> CertificateRefused:
    return CertificateRefused(
        reason="hostname-conflict",
        message=f"{hostname} is held by something else.",
        retry_after_ms=None,
    )
