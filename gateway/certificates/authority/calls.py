"""How many calls are under way to one CA.

Waiting for a place is bounded, and whoever waited too long has asked nothing. A call that has begun
is bounded by itself (`caller.CALL_SECONDS`).

Called by `client`, `account` and `registrar`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gateway.certificates.orders import AuthorityFault, FaultKind

WAIT_SECONDS: Final = 30.0
"""How long a call may wait for others to end."""

_T = TypeVar("_T")


class Calls:
    """Lets at most `count` calls run at once; the others begin in the order in which they came."""

    def __init__(self, count: int, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._places = asyncio.Semaphore(count)
        self._wait_seconds = wait_seconds

    async def run(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Answer what `work` does, or raise what it raises.

        Raises AuthorityFault (BUSY) when too many were under way all the time: `work` was and will
        not be begun.
        """
        if self._places.locked():
            await self._wait()
        else:
            await self._places.acquire()
        try:
            return await work()
        finally:
            self._places.release()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._places.acquire()
        except TimeoutError:
            seconds = f"{self._wait_seconds:.0f} s"
            detail = f"the CA was not asked: too many calls to it were under way for {seconds}"
            raise AuthorityFault(FaultKind.BUSY, detail) from None
