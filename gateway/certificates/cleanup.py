"""Paying debts: taking away what issuances left in a zone or at the CA."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from gateway.certificates.leases import LeaseOver
from gateway.certificates.orders import AuthorityFault, FaultKind
from gateway.certificates.states import Debt, DebtKind
from gateway.dns.errors import DnsFault
from gateway.store.connection import StoreUnavailable

if TYPE_CHECKING:
    from gateway.certificates.authorities import Authorities
    from gateway.certificates.authority import Authority
    from gateway.contract.names import Hostname
    from gateway.dns.challenges import Challenges

ZONE_BOUND_SECONDS: Final = 8.0

UNKNOWN_HERE_TRIES: Final = 24
"""How often a debt at an authority that is not configured is put off: half a day. By then its
authorization has expired, or nobody knows the authority any more."""

_OVER: Final = {FaultKind.GONE, FaultKind.MALFORMED, FaultKind.ACCOUNT_MISSING}
"""Answers after which there is nothing left at the CA to take back."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Payment:
    """What came of paying a debt; when it was not paid, the server may say when to try again."""

    paid: bool
    retry_after_seconds: float | None = None


class Cleaner:
    """Pays debts for the worker; each payment may be repeated."""

    def __init__(self, authorities: Authorities, challenges: Challenges) -> None:
        self._authorities = authorities
        self._challenges = challenges

    async def pay(self, debt: Debt, hostname: Hostname) -> Payment:
        """Pay one debt of a hostname.

        Raises:
            StoreUnavailable: the account could not be read.
        """
        try:
            await self._pay(debt, hostname)
        except AuthorityFault as fault:
            if fault.kind in _OVER or _is_hopeless(fault, debt):
                return Payment(paid=True)
            return _put_off(debt, fault.detail, fault.retry_after_seconds)
        except DnsFault as fault:
            return _put_off(debt, fault.detail, fault.retry_after_seconds)
        except (StoreUnavailable, LeaseOver):
            raise
        except Exception:  # noqa: BLE001 (one debt must not hold up its hostname's issuance)
            _log.exception("cleanup broke", kind=debt.kind.value, name=debt.name)
            return Payment(paid=False)
        return Payment(paid=True)

    async def _pay(self, debt: Debt, hostname: Hostname) -> None:
        if debt.kind is DebtKind.CHALLENGE_RECORD:
            target = self._challenges.target(debt.zone or "", debt.name or "")
            deadline = asyncio.get_running_loop().time() + ZONE_BOUND_SECONDS
            await self._challenges.remove(target, debt.value or "", deadline)
            return
        authority = self._authorities.at(debt.directory_url).authority
        urls: tuple[str, ...] = (debt.url or "",)
        if debt.kind is DebtKind.ORDER:
            urls = (await authority.read_order(debt.url or "")).authorization_urls
        for url in urls:
            await _deactivate(authority, url, hostname)


async def _deactivate(authority: Authority, url: str, hostname: Hostname) -> None:
    """Deactivate an authorization that is still pending (RFC 8555 section 7.5.2).

    One of another hostname stays: a CA that answers an order twice must not cost the other one.
    """
    authorization = await authority.read_authorization(url)
    if authorization.status == "pending" and authorization.hostname == hostname:
        await authority.deactivate_authorization(url)


def _is_hopeless(fault: AuthorityFault, debt: Debt) -> bool:
    return fault.kind is FaultKind.NOT_CONFIGURED and debt.tries >= UNKNOWN_HERE_TRIES


def _put_off(debt: Debt, detail: str, retry_after_seconds: float | None) -> Payment:
    _log.warning("cleanup put off", kind=debt.kind.value, name=debt.name, detail=detail)
    return Payment(paid=False, retry_after_seconds=retry_after_seconds)
