"""Paying debts: taking away what issuances left in a zone or at the CA."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from gateway.certificates.orders import AuthorityFault, FaultKind
from gateway.certificates.states import Debt, DebtKind
from gateway.dns.errors import DnsFault
from gateway.store.connection import StoreUnavailable

if TYPE_CHECKING:
    from gateway.certificates.authority import Authority
    from gateway.dns.challenges import Challenges

PAYMENT_BOUND_SECONDS: Final = 45.0
ZONE_BOUND_SECONDS: Final = 8.0

_OVER: Final = {FaultKind.GONE, FaultKind.MALFORMED, FaultKind.ACCOUNT_MISSING}
"""Answers after which there is nothing left at the CA to take back."""

_log = structlog.get_logger(__name__)


class Cleaner:
    """Pays debts for the worker; each payment may be repeated."""

    def __init__(self, authority: Authority, challenges: Challenges) -> None:
        self._authority = authority
        self._challenges = challenges

    async def pay(self, debt: Debt) -> bool:
        """Pay one debt; False when it must be tried again later.

        Raises:
            StoreUnavailable: the account could not be read.
        """
        try:
            async with asyncio.timeout(PAYMENT_BOUND_SECONDS):
                await self._pay(debt)
        except AuthorityFault as fault:
            if fault.kind in _OVER:
                return True
            return _put_off(debt, fault.detail)
        except DnsFault as fault:
            return _put_off(debt, fault.detail)
        except TimeoutError:
            return _put_off(debt, "no answer in time")
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001 (one debt must not hold up its hostname's issuance)
            _log.exception("cleanup broke", kind=debt.kind.value, name=debt.name)
            return False
        return True

    async def _pay(self, debt: Debt) -> None:
        if debt.kind is DebtKind.CHALLENGE_RECORD:
            target = self._challenges.target(debt.zone or "", debt.name or "")
            deadline = asyncio.get_running_loop().time() + ZONE_BOUND_SECONDS
            await self._challenges.remove(target, debt.value or "", deadline)
        elif debt.kind is DebtKind.AUTHORIZATION:
            await self._deactivate(debt.url or "")
        else:
            order = await self._authority.read_order(debt.url or "")
            for url in order.authorization_urls:
                await self._deactivate(url)

    async def _deactivate(self, url: str) -> None:
        """Deactivate an authorization that is still pending (RFC 8555 section 7.5.2)."""
        authorization = await self._authority.read_authorization(url)
        if authorization.status == "pending":
            await self._authority.deactivate_authorization(url)


def _put_off(debt: Debt, detail: str) -> bool:
    _log.warning("cleanup put off", kind=debt.kind.value, name=debt.name, detail=detail)
    return False
