"""Asking CAs when to renew (RFC 9773), so that a CA that does not answer delays nothing else.

Nobody waits for these answers, while issuances, for which somebody does, share with them the few
calls that go to an authority at once. So few are asked for at a time, each for seconds only, and an
authority that let one wait for so long is asked for no other for a while: whatever has no answer is
asked about later.

Calls of their own were the alternative. They would keep more connections open to a CA that is in
trouble, and the questions of a thousand certificates would still wait for one another.

Called by `steps`; stores nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from gateway.certificates import renewal
from gateway.certificates.keys import renewal_id
from gateway.certificates.moves import Moment
from gateway.certificates.orders import AuthorityFault, FaultKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.authorities import Authorities
    from gateway.certificates.authority import Authority
    from gateway.certificates.orders import RenewalInfo
    from gateway.certificates.states import StoredCertificate

AT_ONCE: Final = 2
"""A small part of the calls that an authority takes at once."""

ANSWER_SECONDS: Final = 10.0
LEFT_ALONE_MS: Final = 60_000

_log = structlog.get_logger(__name__)


class Questions:
    """The questions of one process. `now_ms` and `jitter` are as those of `steps.Steps`."""

    def __init__(
        self,
        authorities: Authorities,
        *,
        now_ms: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self._authorities = authorities
        self._now_ms = now_ms
        self._jitter = jitter
        self._turns = {each.directory_url: asyncio.Semaphore(AT_ONCE) for each in authorities}
        self._left_alone_until_ms: dict[str, int] = {}

    async def ask(self, certificate: StoredCertificate) -> StoredCertificate:
        """Ask the certificate's authority when to renew it; the certificate afterwards.

        An authority that does not answer, or is not configured any more, changes nothing but when
        it is asked again.
        """
        name = renewal_id(certificate.chain_pem)
        is_offered, info, told_seconds = False, None, None
        try:
            authority = self._authorities.at(certificate.directory_url).authority
            if name is not None:
                # Until its directory says otherwise, which may be away just now.
                is_offered = True
                info = await self._ask(authority, name)
                is_offered = info is not None
        except AuthorityFault as fault:
            told_seconds = fault.retry_after_seconds
            _log.info("no renewal information", serial=certificate.serial, detail=fault.detail)
        moment = Moment(self._now_ms(), self._jitter())
        return renewal.asked(
            certificate, info, moment, is_offered=is_offered, retry_after_seconds=told_seconds
        )

    async def _ask(self, authority: Authority, name: str) -> RenewalInfo | None:
        """What the authority says, None when it gives no renewal information."""
        url = authority.directory_url
        async with self._turns[url]:
            if self._now_ms() < self._left_alone_until_ms.get(url, 0):
                raise AuthorityFault(FaultKind.UNREACHABLE, "it did not answer another question")
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await authority.renewal_info(name)
            except TimeoutError:
                self._left_alone_until_ms[url] = self._now_ms() + LEFT_ALONE_MS
                raise AuthorityFault(FaultKind.UNREACHABLE, "no answer in time") from None
