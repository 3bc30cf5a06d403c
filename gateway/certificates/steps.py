"""Carrying out the machine's commands: the calls to the CA, the DNS and the keyring.

Each command is one or two calls, bounded in time, and comes back as one event; whatever goes wrong
comes back as an event too. Stores nothing: that is the worker's part.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog

from gateway.certificates import events
from gateway.certificates.events import Command
from gateway.certificates.keys import CertificateWrong, check_certificate, csr_for, new_private_key
from gateway.certificates.orders import AuthorityFault, FaultKind
from gateway.certificates.renewal import renewal_times
from gateway.certificates.states import Issuance, StoredCertificate
from gateway.dns.errors import DnsFault
from gateway.store.connection import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.certificates.authority import Authority
    from gateway.certificates.keys import KeyType
    from gateway.certificates.sealing import Keyring
    from gateway.contract.names import Hostname
    from gateway.dns.challenges import Challenges, ChallengeTarget
    from gateway.dns.propagation import Propagation
    from gateway.store.documents import Holder

STEP_BOUND_SECONDS: Final = 45.0
ZONE_BOUND_SECONDS: Final = 8.0
KEY_PURPOSE: Final = "certificate-key"

_log = structlog.get_logger(__name__)


def key_binding(holder: Holder, hostname: Hostname) -> tuple[str, str, str]:
    """What a certificate's sealed key is bound to: moved elsewhere, it does not open."""
    return (holder.client_id, holder.app_id, hostname)


class Steps:
    """Carries out commands for the worker.

    `renewal_share` is the share of a certificate's lifetime after which its renewal starts;
    `now_ms` and `jitter` are the clock (epoch milliseconds) and a source of random shares.
    """

    def __init__(
        self,
        authority: Authority,
        challenges: Challenges,
        propagation: Propagation,
        keyring: Keyring,
        *,
        directory_url: str,
        key_type: KeyType,
        renewal_share: float,
        now_ms: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self._authority = authority
        self._challenges = challenges
        self._propagation = propagation
        self._keyring = keyring
        self._directory_url = directory_url
        self._key_type = key_type
        self._renewal_share = renewal_share
        self._now_ms = now_ms
        self._jitter = jitter
        self._calls: dict[
            Command, Callable[[Hostname, Holder, Issuance], Awaitable[events.Event]]
        ] = {
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

        Raises:
            StoreUnavailable: the account could not be read; nothing is known of the step.
        """
        try:
            async with asyncio.timeout(STEP_BOUND_SECONDS):
                return await self._calls[command](hostname, holder, issuance)
        except AuthorityFault as fault:
            return events.AuthorityFailed(fault.kind, fault.detail, fault.retry_after_seconds)
        except DnsFault as fault:
            return events.ZoneFailed(fault.detail, fault.retry_after_seconds)
        except TimeoutError:
            detail = f"the step was not done within {STEP_BOUND_SECONDS:.0f} seconds"
            return events.AuthorityFailed(FaultKind.UNREACHABLE, detail)
        except CertificateWrong as fault:
            return events.CertificateRejected(fault.reason)
        except StoreUnavailable:
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

    async def _make_key(self, hostname: Hostname, holder: Holder, _: Issuance) -> events.Event:
        # RSA takes up to seconds to find primes: never in the event loop's own thread.
        private_key_pem = await asyncio.to_thread(new_private_key, self._key_type)
        sealed = self._keyring.seal(
            private_key_pem, purpose=KEY_PURPOSE, bound_to=key_binding(holder, hostname)
        )
        csr = base64.b64encode(csr_for(private_key_pem, hostname)).decode("ascii")
        return events.KeyMade(sealed, csr)

    async def _place_order(self, hostname: Hostname, _: Holder, __: Issuance) -> events.Event:
        await self._authority.ensure_account()
        return events.OrderSeen(await self._authority.new_order(hostname))

    async def _read_order(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        return events.OrderSeen(await self._authority.read_order(_known(issuance.order_url)))

    async def _read_authorization(
        self, _: Hostname, __: Holder, issuance: Issuance
    ) -> events.Event:
        url = _known(issuance.authorization_url)
        return events.AuthorizationSeen(await self._authority.read_authorization(url))

    async def _locate_challenge(self, hostname: Hostname, _: Holder, __: Issuance) -> events.Event:
        target = await self._challenges.locate(hostname, _deadline())
        return events.ChallengeLocated(target.zone.name, target.name)

    async def _publish_challenge(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        value = _known(issuance.challenge_value)
        await self._challenges.publish(self._target(issuance), value, _deadline())
        return events.ChallengePublished()

    async def _check_propagation(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        target, value = self._target(issuance), _known(issuance.challenge_value)
        missing = await self._propagation.missing_servers(target, value, _deadline())
        return events.PropagationSeen(missing)

    async def _answer_challenge(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        await self._authority.answer_challenge(_known(issuance.challenge_url))
        return events.ChallengeAnswered()

    async def _finalize(self, _: Hostname, __: Holder, issuance: Issuance) -> events.Event:
        csr = base64.b64decode(_known(issuance.csr))
        return events.Finalized(await self._authority.finalize(_known(issuance.finalize_url), csr))

    async def _fetch_certificate(
        self, hostname: Hostname, holder: Holder, issuance: Issuance
    ) -> events.Event:
        chain_pem = await self._authority.fetch_certificate(_known(issuance.certificate_url))
        sealed_key = _known(issuance.sealed_key)
        private_key_pem = self._keyring.open(
            sealed_key, purpose=KEY_PURPOSE, bound_to=key_binding(holder, hostname)
        )
        now_utc = datetime.fromtimestamp(self._now_ms() / 1000, UTC)
        checked = check_certificate(chain_pem, private_key_pem, hostname, now_utc)
        times = renewal_times(
            checked.not_before_ms, checked.not_after_ms, self._renewal_share, self._jitter()
        )
        return events.CertificateFetched(
            StoredCertificate(
                issuance_id=issuance.issuance_id,
                chain_pem=checked.chain_pem,
                sealed_key=sealed_key,
                valid_from_ms=checked.not_before_ms,
                valid_until_ms=checked.not_after_ms,
                renew_at_ms=times.renew_at_ms,
                renew_after_ms=times.renew_after_ms,
                serial=checked.serial_hex,
                issuer=checked.issuer,
                directory_url=self._directory_url,
            )
        )

    def _target(self, issuance: Issuance) -> ChallengeTarget:
        zone, name = _known(issuance.challenge_zone), _known(issuance.challenge_name)
        return self._challenges.target(zone, name)


def _known(value: str | None) -> str:
    """A field that the machine fills before it gives the command that needs it."""
    if value is None:
        raise LookupError("the issuance lacks what its state promises")
    return value


def _deadline() -> float:
    return asyncio.get_running_loop().time() + ZONE_BOUND_SECONDS
