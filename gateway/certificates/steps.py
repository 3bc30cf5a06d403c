"""Carrying out the machine's commands: the calls to the CA, the DNS and the keyring.

Each command is one or two calls, bounded in time, and comes back as one event; whatever goes wrong
comes back as an event too. Stores nothing: that is the worker's part.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog

from gateway.certificates import events, leases, renewal
from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.events import Command
from gateway.certificates.keys import (
    CertificateWrong,
    check_certificate,
    key_and_csr,
)
from gateway.certificates.leases import LeaseOver
from gateway.certificates.ledger import Granted, Held, HeldBy
from gateway.certificates.mishaps import PATIENCE_FAULTS
from gateway.certificates.moves import SHORT_HOLD_MS, Moment, failure_pause_ms
from gateway.certificates.orders import PASSING, AuthorityFault, FaultKind
from gateway.certificates.places import Places
from gateway.certificates.questions import Questions
from gateway.certificates.sealing import KeyMissing, SealBroken
from gateway.certificates.states import Issuance, Reason, StoredCertificate
from gateway.dns.errors import DnsFault
from gateway.store.connection import StoreUnavailable
from gateway.store.documents import Contended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gateway.certificates.authorities import Authorities, Listed
    from gateway.certificates.authority import Authority
    from gateway.certificates.ledger import Ledger
    from gateway.certificates.sealing import Keyring
    from gateway.contract.names import Hostname
    from gateway.dns.challenges import Challenges, ChallengeTarget
    from gateway.dns.propagation import Propagation
    from gateway.store.documents import Holder

ZONE_BOUND_SECONDS: Final = 8.0
SUSPENDED_MS: Final = 300_000
"""How long an authority that could not be reached is skipped by new issuances, given another."""

_log = structlog.get_logger(__name__)


class Steps:
    """Carries out commands for the worker.

    `now_ms` and `jitter` are the clock (epoch milliseconds) and a source of random shares.
    """

    def __init__(
        self,
        authorities: Authorities,
        challenges: Challenges,
        propagation: Propagation,
        keyring: Keyring,
        *,
        now_ms: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self._authorities = authorities
        self._challenges = challenges
        self._propagation = propagation
        self._keyring = keyring
        self._now_ms = now_ms
        self._jitter = jitter
        self._places = Places()
        self._questions = Questions(authorities, now_ms=now_ms, jitter=jitter)
        self._calls: dict[
            Command, Callable[[Hostname, Holder, Issuance], Awaitable[events.Event]]
        ] = {
            Command.CHOOSE_AUTHORITY: self._choose_authority,
            Command.MAKE_KEY: self._make_key,
            Command.PLACE_ORDER: self._place_order,
            Command.READ_ORDER: self._read_order,
            Command.READ_AUTHORIZATION: self._read_authorization,
            Command.LOCATE_CHALLENGE: self._locate_challenge,
            Command.PUBLISH_CHALLENGE: self._publish_challenge,
            Command.CHECK_PROPAGATION: self._check_propagation,
            Command.ANSWER_CHALLENGE: self._answer_challenge,
            Command.FINALIZE: self._finalize,
            Command.FETCH_CERTIFICATE: self._fetch_certificate,
        }

    async def carry_out(
        self, command: Command, hostname: Hostname, holder: Holder, issuance: Issuance
    ) -> events.Event:
        """Do what the machine asked for and say what came of it.

        No time limit here: each call to a CA or a DNS server has its own, and an answer that came
        late is not thrown away.

        Raises:
            StoreUnavailable, Contended: the account or the ledger could not be used; nothing is
                known of the step.
            LeaseOver: the hostname may be another worker's by now; nothing was sent.
        """
        try:
            return await self._calls[command](hostname, holder, issuance)
        except AuthorityFault as fault:
            return await self._failed(fault, hostname, issuance)
        except DnsFault as fault:
            return events.ZoneFailed(fault.detail, fault.retry_after_seconds)
        except CertificateWrong as fault:
            return events.CertificateRejected(fault.reason)
        except (StoreUnavailable, Contended, LeaseOver):
            raise
        except Exception as fault:  # noqa: BLE001 (no fault of one hostname may stop the worker)
            incident_id = secrets.token_hex(6)
            _log.error(
                "step broke",
                incident_id=incident_id,
                hostname=hostname,
                command=command.value,
                error=type(fault).__name__,
                exc_info=True,
            )
            return events.StepBroke(incident_id)

    def authority_name(self, directory_url: str | None) -> str:
        """What people call the authority there."""
        return self._authorities.name_at(directory_url)

    async def ask_renewal(self, certificate: StoredCertificate) -> StoredCertificate:
        """Ask a certificate's authority when to renew it (RFC 9773); the certificate afterwards."""
        return await self._questions.ask(certificate)

    async def give_back(
        self, hostname: Hostname, holder: Holder, issuance: Issuance, *, was_placed: bool
    ) -> None:
        """Return what was granted for an order that has come to no certificate, or to no order.

        Raises:
            StoreUnavailable: it stays spent.
        """
        with contextlib.suppress(AuthorityFault):  # no longer configured
            ledger, kind = self._ledger(issuance), renewal.kind_of(issuance, self._now_ms())
            whose = hostname, holder.client_id
            await ledger.give_back(*whose, renewal=kind, was_placed=was_placed)

    async def _failed(
        self, fault: AuthorityFault, hostname: Hostname, issuance: Issuance
    ) -> events.AuthorityFailed:
        """What a fault means for the issuance; what it means for others goes into the ledger."""
        elsewhere = self._has_alternative(issuance)
        if issuance.directory_url is not None:
            with contextlib.suppress(AuthorityFault):  # no longer configured
                ledger = self._ledger(issuance)
                await self._tell_others(ledger, hostname, issuance, fault, elsewhere=elsewhere)
        return events.AuthorityFailed(
            fault.kind, fault.detail, fault.retry_after_seconds, elsewhere, fault.may_be_done
        )

    async def _tell_others(
        self,
        ledger: Ledger,
        hostname: Hostname,
        issuance: Issuance,
        fault: AuthorityFault,
        *,
        elsewhere: bool,
    ) -> None:
        told_ms = int((fault.retry_after_seconds or 0) * 1000)
        now_ms = self._now_ms()
        if fault.kind is FaultKind.RATE_LIMITED and told_ms:
            await ledger.hold(hostname, now_ms + told_ms, fault.detail, ca_words=fault.detail)
        elif fault.kind is FaultKind.RATE_LIMITED:
            # As long as the issuance rests by itself at least, whatever makes it due before.
            pause_ms = failure_pause_ms(issuance.faults + 1, Moment(now_ms, 1))
            await ledger.hold(hostname, now_ms + pause_ms, fault.detail, ca_words=None)
        elif fault.kind in PASSING:
            is_over = elsewhere and issuance.away + 1 >= PATIENCE_FAULTS
            pause_ms = max(told_ms, SUSPENDED_MS if is_over else 0)
            if pause_ms:
                _log.warning(
                    "authority left alone",
                    authority=ledger.name,
                    in_seconds=pause_ms / 1000,
                    detail=fault.detail,
                )
                await ledger.suspend(now_ms + pause_ms, fault.detail)

    def _has_alternative(self, issuance: Issuance) -> bool:
        passable = self._passable(issuance, self._now_ms())
        return any(each.directory_url != issuance.directory_url for each in passable)

    def _passable(self, issuance: Issuance, now_ms: int) -> list[Listed]:
        """The authorities that the issuance does not pass over, in order of preference."""
        return [
            each
            for each in self._authorities
            if issuance.passed_over.get(each.directory_url, 0) <= now_ms
        ]

    async def _choose_authority(
        self, hostname: Hostname, holder: Holder, issuance: Issuance
    ) -> events.Event:
        # No order is spent on a hostname whose challenge has no place.
        place = await self._challenges.locate(hostname, _deadline())
        now_ms = self._now_ms()
        kind = renewal.kind_of(issuance, now_ms)
        held: list[Held] = []
        for each in self._passable(issuance, now_ms) or self._authorities:
            verdict = await each.ledger.spend(hostname, holder.client_id, renewal=kind)
            if isinstance(verdict, Granted):
                self._places.keep(hostname, place, _now())
                takes_replaces = await _takes_replaces(each, issuance)
                return events.AuthorityChosen(each.directory_url, takes_replaces)
            held.append(verdict)
            if verdict.until_ms - now_ms <= SHORT_HOLD_MS:
                break
        soonest = min(held, key=lambda verdict: verdict.until_ms)
        back_ms = min(issuance.passed_over.values(), default=soonest.until_ms)
        return _held_back(issuance, soonest, now_ms, back_ms)

    async def _make_key(
        self, hostname: Hostname, holder: Holder, issuance: Issuance
    ) -> events.Event:
        key_type = self._authorities.at(issuance.directory_url).key_type
        if key_type.takes_long:
            private_key_pem, csr = await asyncio.to_thread(key_and_csr, key_type, hostname)
        else:  # in 0.1 ms
            private_key_pem, csr = key_and_csr(key_type, hostname)
        sealed = self._keyring.seal(
            private_key_pem, purpose=KEY_PURPOSE, bound_to=key_binding(holder, hostname)
        )
        return events.KeyMade(sealed, base64.b64encode(csr).decode("ascii"))

    async def _place_order(self, hostname: Hostname, _: Holder, issuance: Issuance) -> events.Event:
        listed = self._authorities.at(issuance.directory_url)
        # What was granted may have been held for all since: a refusal told to another hostname.
        held = await listed.ledger.holds_on(hostname)
        if held is not None:
            return _held_back(issuance, held, self._now_ms(), held.until_ms)
        authority = listed.authority
        await authority.ensure_account()
        order = await authority.new_order(hostname, replaces=issuance.replaces)
        _require(hostname, order.hostnames, "order")
        return events.OrderSeen(order)

    async def _read_order(self, hostname: Hostname, _: Holder, issuance: Issuance) -> events.Event:
        order = await self._authority(issuance).read_order(_known(issuance.order_url))
        _require(hostname, order.hostnames, "order")
        return events.OrderSeen(order)

    async def _read_authorization(
        self, hostname: Hostname, _: Holder, issuance: Issuance
    ) -> events.Event:
        listed = self._authorities.at(issuance.directory_url)
        url = _known(issuance.authorization_url)
        authorization = await listed.authority.read_authorization(url)
        _require(hostname, (authorization.hostname,), "authorization")
        if authorization.status == "invalid":
            await listed.ledger.record_failed_validation(hostname)
            if authorization.is_refused:
                raise AuthorityFault(FaultKind.REFUSED, authorization.problem or "CAA")
        return events.AuthorizationSeen(authorization)

    async def _locate_challenge(self, hostname: Hostname, _: Holder, __: Issuance) -> events.Event:
        target = self._places.at(hostname, _now())
        if target is None:
            target = await self._challenges.locate(hostname, _deadline())
            self._places.keep(hostname, target, _now())
        return events.ChallengeLocated(target.zone.name, target.name)

    async def _publish_challenge(
        self, hostname: Hostname, _: Holder, issuance: Issuance
    ) -> events.Event:
        value, target = _known(issuance.challenge_value), self._target(issuance)
        found = self._places.take(hostname, _now())
        leases.check()
        await self._challenges.publish(found if found == target else target, value, _deadline())
        return events.ChallengePublished()

    async def _check_propagation(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        target, value = self._target(issuance), _known(issuance.challenge_value)
        look = await self._propagation.look(target, value, _deadline())
        bound_seconds = target.zone.silent_server_seconds if look.seen else None
        bound_ms = None if bound_seconds is None else int(bound_seconds * 1000)
        return events.PropagationSeen(look.lagging, look.silent, bound_ms)

    async def _answer_challenge(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        url = _known(issuance.challenge_url)
        await self._authority(issuance).answer_challenge(url, issuance.challenge_key)
        return events.ChallengeAnswered()

    async def _finalize(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        url, csr = _known(issuance.finalize_url), base64.b64decode(_known(issuance.csr))
        return events.Finalized(await self._authority(issuance).finalize(url, csr))

    async def _fetch_certificate(
        self, hostname: Hostname, holder: Holder, issuance: Issuance
    ) -> events.Event:
        listed = self._authorities.at(issuance.directory_url)
        chain_pem = await listed.authority.fetch_certificate(_known(issuance.certificate_url))
        sealed_key = _known(issuance.sealed_key)
        try:
            private_key_pem = self._keyring.open(
                sealed_key, purpose=KEY_PURPOSE, bound_to=key_binding(holder, hostname)
            )
        except KeyMissing:
            raise  # another process may hold it: the order must not be given up
        except SealBroken as broken:
            return events.CertificateRejected(f"its private key is lost: {broken}")
        now_ms = self._now_ms()
        now_utc = datetime.fromtimestamp(now_ms / 1000, UTC)
        # In the event loop: a millisecond, less than handing it to a thread and back takes.
        checked = check_certificate(chain_pem, private_key_pem, hostname, now_utc)
        times = renewal.renewal_times(
            checked.not_before_ms, checked.not_after_ms, listed.renewal_share, self._jitter()
        )
        is_offered = await _offers_renewal_info(listed)
        return events.CertificateFetched(
            StoredCertificate(
                issuance_id=issuance.issuance_id,
                chain_pem=checked.chain_pem,
                sealed_key=sealed_key,
                valid_from_ms=checked.not_before_ms,
                valid_until_ms=checked.not_after_ms,
                renew_at_ms=times.renew_at_ms,
                renew_after_ms=times.renew_after_ms,
                share_at_ms=times.share_at_ms,
                serial=checked.serial_hex,
                issuer=checked.issuer,
                directory_url=listed.directory_url,
                ask_at_ms=renewal.first_ask_ms(now_ms, is_offered=is_offered),
            )
        )

    def _authority(self, issuance: Issuance) -> Authority:
        return self._authorities.at(issuance.directory_url).authority

    def _ledger(self, issuance: Issuance) -> Ledger:
        return self._authorities.at(issuance.directory_url).ledger

    def _target(self, issuance: Issuance) -> ChallengeTarget:
        zone, name = _known(issuance.challenge_zone), _known(issuance.challenge_name)
        return self._challenges.target(zone, name)


def _known(value: str | None) -> str:
    """A field that the machine fills before it gives the command that needs it."""
    if value is None:
        raise LookupError("the issuance lacks what its state promises")
    return value


def _require(hostname: Hostname, named: Sequence[str], what: str) -> None:
    """Refuse what the CA answers for another name, before anything is done with it.

    The name is for the log only: it may be another client's.
    """
    if tuple(named) != (hostname,):
        _log.warning("answer for another name", hostname=hostname, what=what, named=named)
        raise AuthorityFault(FaultKind.GONE, f"the authority's {what} is for another name")


def _held_back(
    issuance: Issuance, soonest: Held, now_ms: int, back_ms: int
) -> events.AuthoritiesHeld:
    """`back_ms` is when the first of those that are passed over may be chosen again."""
    is_away = soonest.by is HeldBy.SUSPENDED
    reason = Reason.AUTHORITY_UNAVAILABLE if is_away else Reason.RATE_LIMITED
    until_ms, overdue_at_ms = soonest.until_ms, issuance.overdue_at_ms or 0
    if soonest.by is HeldBy.BUDGET and overdue_at_ms > now_ms:
        # A renewal that came early: once its own time has come, that figure holds it no longer.
        until_ms = min(until_ms, overdue_at_ms)
    if back_ms > now_ms:
        until_ms = min(until_ms, back_ms)
    return events.AuthoritiesHeld(until_ms, reason, soonest.detail)


async def _takes_replaces(listed: Listed, issuance: Issuance) -> bool:
    if issuance.renewal_id is None or issuance.renewed_directory_url != listed.directory_url:
        return False
    return await _offers_renewal_info(listed)


async def _offers_renewal_info(listed: Listed) -> bool:
    try:
        return await listed.authority.offers_renewal_info()
    except AuthorityFault:
        return False  # its directory cannot be read now


def _now() -> float:
    return asyncio.get_running_loop().time()


def _deadline() -> float:
    return _now() + ZONE_BOUND_SECONDS
