"""`getGatewayClientCertificate` and `releaseGatewayClientCertificate`: an ownership's certificate.

Reads and starts; the worker issues and renews. A certificate that has not expired is always handed
out, whatever its renewal does. Called by `access`; knows no token and no policy.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gateway.certificates import debts, machine
from gateway.certificates.agenda import certificate_of, debts_of, issuance_of
from gateway.certificates.machine import Moment
from gateway.certificates.states import Issuance, Reason, State, StoredCertificate
from gateway.certificates.steps import KEY_PURPOSE, key_binding
from gateway.contract import (
    Certificate,
    CertificatePending,
    CertificateReady,
    CertificateRefused,
    ReleaseResponse,
)
from gateway.dns.outcome import Outcome, OutcomeKind
from gateway.holdings.hold import HeldByAnother, Hold, given_up, hold_for, is_established
from gateway.store.documents import Change, Document, Holder

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.pace import Pace
    from gateway.certificates.sealing import Keyring
    from gateway.contract.names import Hostname
    from gateway.dns.owner import Owner
    from gateway.dns.publisher import Publisher
    from gateway.holdings.hold import Holds
    from gateway.store.documents import Documents

CALL_BOUND_SECONDS: Final = 8.0
CHALLENGE_LABEL: Final = "_acme-challenge."
LONGEST_NAME: Final = 253

Answer = CertificateReady | CertificatePending | CertificateRefused


class Certificates:
    """The certificates of all ownerships. Every method raises `StoreUnavailable`.

    `wake` tells this process's worker, if it has one, of a hostname with new work. Without
    `issues`, no authority is configured and nothing is issued.
    """

    def __init__(
        self,
        documents: Documents,
        holds: Holds,
        publisher: Publisher,
        keyring: Keyring,
        pace: Pace,
        *,
        issues: bool,
        wake: Callable[[Hostname], None],
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
    ) -> None:
        self._documents = documents
        self._holds = holds
        self._publisher = publisher
        self._keyring = keyring
        self._pace = pace
        self._issues = issues
        self._wake = wake
        self._new_id = new_id
        self._now_ms = now_ms

    async def get(self, owner: Owner) -> Answer:
        """The certificate, or how far its issuance has come; starts one when there is none."""
        holder = Holder(owner.client_id, owner.app_id)
        document = await self._documents.read(owner.hostname)
        hold = hold_for(document, holder)
        if hold.is_conflict:
            return _conflict(owner.hostname)
        if hold is Hold.MINE:
            now_ms = self._now_ms()
            certificate = certificate_of(document)
            if certificate is not None and certificate.may_be_served_at(now_ms):
                return CertificateReady(certificate=self._opened(owner, holder, certificate))
            issuance = issuance_of(document)
            if issuance is not None:
                return self._under_way(issuance, now_ms)
        return await self._start(owner, holder, document)

    async def release(self, owner: Owner) -> ReleaseResponse:
        """Give up the certificate, its key and any issuance under way; repeatable."""
        holder = Holder(owner.client_id, owner.app_id)
        now_ms = self._now_ms()
        released = False

        def decide(document: Document) -> Change | None:
            nonlocal released
            held = document.certificate is not None or document.issuance is not None
            released = document.holder == holder and held
            if not released:
                return None
            issuance = issuance_of(document)
            more = () if issuance is None else debts.debts_of_release(issuance)
            owed = debts.with_debts(debts_of(document), more)
            gone = {"certificate": None, "issuance": None, "lease": None}
            fields = given_up(document, gone)
            fields["debts"] = debts.as_stored(owed)
            return Change(fields, now_ms if owed else None, touches_due=True)

        after = await self._documents.change(owner.hostname, decide)
        if released:
            await self._holds.forget(after, holder)
            self._wake(owner.hostname)
        return ReleaseResponse(status="released" if released else "unchanged")

    def _opened(self, owner: Owner, holder: Holder, stored: StoredCertificate) -> Certificate:
        private_key_pem = self._keyring.open(
            stored.sealed_key, purpose=KEY_PURPOSE, bound_to=key_binding(holder, owner.hostname)
        )
        return Certificate(
            hostname=owner.hostname,
            chain_pem=stored.chain_pem,
            private_key_pem=private_key_pem.decode("ascii"),
            valid_from=stored.valid_from_ms,
            valid_until=stored.valid_until_ms,
            renew_after=stored.renew_after_ms,
        )

    def _under_way(self, issuance: Issuance, now_ms: int) -> Answer:
        if issuance.state not in {State.WAITING, State.FAILED}:
            remaining_ms = self._pace.remaining_ms(now_ms - issuance.begun_at_ms)
            return CertificatePending(retry_after_ms=remaining_ms)
        return CertificateRefused(
            reason=(issuance.reason or Reason.ISSUANCE_FAILED).value,
            message=issuance.message or "The issuance did not succeed.",
            retry_after_ms=max(issuance.due_at_ms - now_ms, 0) + self._pace.remaining_ms(0),
        )

    async def _start(self, owner: Owner, holder: Holder, document: Document) -> Answer:
        refusal = self._cannot_issue(owner)
        if refusal is None and not is_established(document, holder):
            refusal = await self._judge_zone(owner)
        if refusal is not None:
            return refusal
        now_ms = self._now_ms()
        issuance = machine.request(self._new_id(), Moment(now_ms, 0))
        try:
            await self._take(owner.hostname, holder, issuance)
        except HeldByAnother:
            return _conflict(owner.hostname)
        self._wake(owner.hostname)
        return CertificatePending(retry_after_ms=self._pace.remaining_ms(0))

    async def _take(self, hostname: Hostname, holder: Holder, issuance: Issuance) -> None:
        """Store the issuance, unless another call of the same ownership was first."""
        await self._holds.take(hostname, holder, lambda document: begun(document, issuance))

    def _cannot_issue(self, owner: Owner) -> CertificateRefused | None:
        if not self._issues:
            return CertificateRefused(
                reason="authority-unavailable",
                message="No certificate authority is configured at this gateway.",
                retry_after_ms=None,
            )
        challenge_name = CHALLENGE_LABEL + owner.hostname
        if len(challenge_name) > LONGEST_NAME:
            return CertificateRefused(
                reason="issuance-failed",
                message=f"The challenge name {challenge_name} would be {len(challenge_name)} "
                f"characters long, and {LONGEST_NAME} are possible.",
                retry_after_ms=None,
            )
        return None

    async def _judge_zone(self, owner: Owner) -> CertificateRefused | None:
        deadline = asyncio.get_running_loop().time() + CALL_BOUND_SECONDS
        outcome: Outcome = await self._publisher.inspect(owner, deadline=deadline)
        if outcome.kind in {OutcomeKind.FREE, OutcomeKind.OURS}:
            return None
        if outcome.kind is OutcomeKind.CONFLICT:
            return _conflict(owner.hostname)
        retry = outcome.retry_after_seconds
        return CertificateRefused(
            reason="zone-unavailable",
            message=outcome.detail,
            retry_after_ms=None if retry is None else int(retry * 1000),
        )


def begun(document: Document, issuance: Issuance) -> Change:
    """What starts an issuance; nothing where one runs, or has come to its certificate already.

    The latter when the zone took so long to judge that another call's issuance was done meanwhile.
    """
    certificate = certificate_of(document)
    is_served = certificate is not None and certificate.may_be_served_at(issuance.begun_at_ms)
    if document.issuance is not None or is_served:
        return Change()
    return Change({"issuance": issuance.to_json()}, issuance.due_at_ms, touches_due=True)


def _conflict(hostname: Hostname) -> CertificateRefused:
    return CertificateRefused(
        reason="hostname-conflict",
        message=f"{hostname} is held by something else.",
        retry_after_ms=None,
    )
