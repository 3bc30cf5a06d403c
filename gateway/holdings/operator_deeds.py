"""What an operator does to one hostname by hand: try it again, release, withdraw, claim.

The same for the command line and the page. Each does what a client's own call would, or makes an
issuance due; each is told in the audit trail as whoever acts in the context, refused ones too.
Whose a hostname is, is said by whoever asks: what another has come to hold meanwhile is not
touched. Who has seen more than that gives its mark (`as_seen`), and nothing else is touched then.
Must not: print, or know a terminal or a browser.

Built by `gateway.interventions`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NoReturn

from gateway.certificates import deeds as certificate_deeds
from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.certificates.leases import has_lapsed
from gateway.certificates.retrying import (
    Asked,
    NotDue,
    Retried,
    RetryRefused,
    Standing,
    retry,
    standing,
)
from gateway.dns.outcome import PublishedOtherwise
from gateway.holdings import deeds
from gateway.holdings.as_seen import HostnameChanged, demand_as_seen
from gateway.holdings.claims import ClaimRefused
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.holdings.remembered import require_readable
from gateway.store.deeds import Action
from gateway.store.documents import Holder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from gateway.certificates.authorities import Authorities
    from gateway.certificates.ledger import Held
    from gateway.certificates.states import Issuance, StoredCertificate
    from gateway.contract import DnsRecord, SyncDnsRecordResponse
    from gateway.contract.names import ClientId, Hostname
    from gateway.dns.outcome import FoundRecord
    from gateway.dns.owner import Owner
    from gateway.holdings.certificates import Certificates
    from gateway.holdings.claims import Claim, Claims
    from gateway.holdings.records import Records
    from gateway.store.documents import Change, Document, Documents
    from gateway.store.trail import Trail

_NO_AUTHORITY: Final = "No certificate authority is configured."

LOOK_SECONDS: Final = 0.1
"""How often a retry is looked at while it is watched."""


class DeedRefused(Exception):
    """Why nothing was done: one sentence for the operator."""


class RenewalNotDue(DeedRefused):
    """There is a certificate at rest, and nobody has said that it is to be renewed already."""


class DeedOutrun(DeedRefused):
    """What is held is not what was seen (`holdings.as_seen`)."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What has come of a retry so far, at `now_ms`. `worker` has it in its hands now."""

    standing: Standing
    issuance: Issuance | None
    certificate: StoredCertificate | None
    worker: str | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class Released:
    """`is_released`: there was something to release. `keeps_record`: its record is there still.

    `had_certificate`: it was one that was released, and not only an issuance.
    """

    owner: Owner
    is_released: bool
    keeps_record: bool
    had_certificate: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What came of it in the zone, as a client is answered; its certificate may be there still.

    `known` is the record that Redis had as published, `removed` what the zone had of it. `remains`:
    what was found otherwise than it was published, or is left there, in words.
    """

    owner: Owner
    answer: SyncDnsRecordResponse
    keeps_certificate: bool
    known: DnsRecord | None = None
    removed: tuple[FoundRecord, ...] = ()
    remains: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether no record of the ownership is left in the zone."""
        return self.answer.status == "managed-deleted"


class OperatorDeeds:
    """Every method raises `StoreUnavailable`, `Contended` and `Unreadable`.

    `as_seen` is the mark of what was seen of the hostname (`holdings.as_seen.mark_of`), compared in
    the step that changes it; None stands for whatever is there. `DeedOutrun` says that it differs.

    `why_not_renewed` says why a holder may have no new order, `wake` tells this process's worker,
    if it has one, of a client's hostname with new work.
    """

    def __init__(
        self,
        documents: Documents,
        certificates: Certificates,
        records: Records,
        claims: Claims,
        authorities: Authorities,
        *,
        why_not_renewed: Callable[[Holder, Hostname], Awaitable[str | None]],
        wake: Callable[[Hostname, ClientId], None],
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
        trail: Trail,
    ) -> None:
        self._documents = documents
        self._certificates = certificates
        self._records = records
        self._claims = claims
        self._authorities = authorities
        self._why_not_renewed = why_not_renewed
        self._wake = wake
        self._new_id = new_id
        self._now_ms = now_ms
        self._trail = trail

    async def retry(
        self, hostname: Hostname, *, renews: bool = False, as_seen: str | None = None
    ) -> Retried:
        """Have an issuance that waits or failed, or a renewal that is due, tried now; repeatable.

        `renews`: a certificate at rest is renewed though its time has not come. Returns when it is
        due, not when it is done.

        Raises:
            RenewalNotDue: a certificate rests there, whose time has not come.
            DeedRefused: nothing rests there, or what rests is held by what the CA has said.
        """
        if len(self._authorities) == 0:
            self._refuse(Action.CERTIFICATE_RETRY, hostname, _NO_AUTHORITY)
        asked = await self._asked(await self._documents.read(hostname), renews=renews)
        done: list[Retried] = []

        def decide(document: Document) -> Change:
            require_readable(document)
            demand_as_seen(document, as_seen)
            change, retried = retry(document, asked)
            done[:] = [retried]
            return change

        try:
            with self._outrun(Action.CERTIFICATE_RETRY, hostname):
                await self._documents.change(hostname, decide)
        except RetryRefused as refused:
            kind = RenewalNotDue if isinstance(refused, NotDue) else DeedRefused
            self._refuse(Action.CERTIFICATE_RETRY, hostname, str(refused), kind)
        (retried,) = done
        self._trail.note(certificate_deeds.of_retry(retried))
        self._wake(hostname, retried.holder.client_id)
        return retried

    async def why_no_retry(self, document: Document, *, renews: bool = False) -> str | None:
        """Why `retry` would refuse what a document has; None where it would not. Changes nothing.

        Raises nothing but what every method does.
        """
        if len(self._authorities) == 0:
            return _NO_AUTHORITY
        try:
            retry(document, await self._asked(document, renews=renews))
        except RetryRefused as refused:
            return str(refused)
        return None

    async def why_denied(self, document: Document) -> str | None:
        """Why who holds a hostname may have no new certificate, as the end of a sentence."""
        holder = document.holder
        return None if holder is None else await self._why_not_renewed(holder, document.hostname)

    async def _asked(self, document: Document, *, renews: bool) -> Asked:
        """What a retry is asked with, and all that it depends on."""
        holder, denied = document.holder, await self.why_denied(document)
        asked = Asked(
            now_ms=self._now_ms(),
            renews=renews,
            issuance_id=self._new_id(),
            allowed=holder if denied is None else None,
            holds=await self._holds_on(document.hostname),
        )
        return asked if denied is None else replace(asked, denied=denied)

    async def watch(self, retried: Retried, seconds: float) -> Watched:
        """What comes of a retry: once it is settled, or after so many seconds as it stands then.

        A pause that is over by then is waited for.
        """
        end_ms = self._now_ms() + int(seconds * 1000)
        while True:
            document = await self._documents.read(retried.hostname)
            require_readable(document)
            seen = _watched(document, retried, self._now_ms())
            if seen.now_ms >= end_ms or _is_settled(seen, end_ms):
                return seen
            await asyncio.sleep(LOOK_SECONDS)

    async def release(self, owner: Owner, as_seen: str | None = None) -> Released:
        """Give up an ownership's certificate, its key and any issuance, as its client does.

        Repeatable.

        Raises:
            DeedRefused: another ownership holds the hostname, or the gateway itself.
        """
        document = await self._held(owner, Action.CERTIFICATE_RELEASE)
        with self._outrun(Action.CERTIFICATE_RELEASE, owner.hostname):
            before = await self._certificates.give_up(owner, as_seen)
        if before is None:
            return Released(owner, is_released=False, keeps_record=document.record is not None)
        had_certificate = before.certificate is not None
        return Released(owner, True, before.record is not None, had_certificate)

    async def withdraw(self, owner: Owner, as_seen: str | None = None) -> Withdrawn:
        """Withdraw an ownership's record, as its client does; repeatable.

        Where nobody holds the hostname, the zone is asked all the same: it may carry the
        ownership's record though Redis knows of none.

        Raises:
            DeedRefused: another ownership holds the hostname, or the gateway itself; or the zone
                has another record of the ownership than was seen.
            Overloaded: this process can't ask the zone.
        """
        document = await self._held(owner, Action.RECORD_SYNC)
        try:
            with self._outrun(Action.RECORD_SYNC, owner.hostname):
                done = await self._records.withdrawal(owner, as_seen)
        except PublishedOtherwise as found:
            self._refuse(Action.RECORD_SYNC, owner.hostname, otherwise_words(owner, found))
        keeps = document.certificate is not None or document.issuance is not None
        return Withdrawn(owner, done.answer, keeps, done.known, done.outcome.removed, done.remains)

    async def claim(self, hostname: Hostname, note: str = "", as_seen: str | None = None) -> Claim:
        """Hold a hostname against every client, or change the claim's note; repeatable.

        Raises:
            DeedRefused: a client holds the hostname.
        """
        try:
            with self._outrun(Action.CLAIM_ADD, hostname):
                return await self._claims.add(hostname, note, as_seen)
        except ClaimRefused as refused:
            raise DeedRefused(f"{refused}.") from None

    async def unclaim(self, hostname: Hostname, as_seen: str | None = None) -> bool:
        """Take a claim back; False when there was none."""
        with self._outrun(Action.CLAIM_REMOVE, hostname):
            return await self._claims.remove(hostname, as_seen)

    async def _held(self, owner: Owner, action: Action) -> Document:
        """The document, which nobody holds but the ownership. Who holds it later is seen later."""
        document = await self._documents.read(owner.hostname)
        refusal = why_not(document, owner)
        if refusal is not None:
            self._refuse(action, owner.hostname, refusal)
        return document

    async def _holds_on(self, hostname: Hostname) -> dict[str, Held]:
        """What the ledgers hold of a hostname beside their figures, by directory URL."""
        found = {
            each.directory_url: await each.ledger.holds_on(hostname) for each in self._authorities
        }
        return {url: held for url, held in found.items() if held is not None}

    @contextmanager
    def _outrun(self, action: Action, hostname: Hostname) -> Iterator[None]:
        """What is refused in here since it has changed is told as any refusal is."""
        try:
            yield
        except HostnameChanged as changed:
            self._refuse(action, hostname, f"{changed}.", DeedOutrun)

    def _refuse(
        self,
        action: Action,
        hostname: Hostname,
        why: str,
        kind: type[DeedRefused] = DeedRefused,
    ) -> NoReturn:
        self._trail.note(deeds.of_refused_command(action, hostname, why))
        raise kind(why)


def why_not(document: Document, owner: Owner) -> str | None:
    """Why nothing of an ownership is given up at a hostname: another holds it. Pure."""
    holder = document.holder
    if holder == THE_GATEWAY:
        return (
            f"{document.hostname} is the gateway's own: `gateway holdings give-up"
            f" {document.hostname}` gives it up once it is http.tls_hostname no more."
        )
    if holder is None or holder == Holder(owner.client_id, owner.app_id):
        return None
    return (
        f"{document.hostname} is held by {holder.client_id} for {holder.app_id}, not by"
        f" {owner.client_id} for {owner.app_id}."
    )


def otherwise_words(owner: Owner, found: PublishedOtherwise) -> str:
    """Why nothing was withdrawn: the zone has another record than was seen. Pure."""
    hostname, whose = owner.hostname, f"{owner.client_id} for {owner.app_id}"
    return (
        f"{hostname} has {found} of {whose} in the zone by now, which was not what was to be"
        " withdrawn, and it stays. Once its client is done, look again; `gateway holdings withdraw"
        f" {hostname} --from {owner.client_id}:{owner.app_id}` takes out whatever of it is there."
    )


def _watched(document: Document, retried: Retried, now_ms: int) -> Watched:
    lease = document.lease
    worker = None if lease is None or has_lapsed(lease, now_ms) else lease.worker
    return Watched(
        standing(document, retried, now_ms),
        issuance_of(document),
        certificate_of(document),
        worker,
        now_ms,
    )


def _is_settled(seen: Watched, end_ms: int) -> bool:
    if seen.standing in {Standing.ISSUED, Standing.GONE}:
        return True
    if not seen.standing.is_refusal or seen.issuance is None:
        return False
    return seen.issuance.due_at_ms >= end_ms
