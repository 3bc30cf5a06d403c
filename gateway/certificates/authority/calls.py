"""The few threads on which the blocking half runs.

Waiting for a free one is bounded, and whoever waited too long has asked nothing. A call that has
begun is another matter: the CA may act on it, so its answer is waited for, also by a caller that
was cancelled meanwhile, and handed over. It is bounded by itself (`caller.CALL_SECONDS`). Only
`close` ends that wait: the process is about to end.

Calls that answer the same when they are made again are left alone by a cancelled caller; they end
by themselves in their thread, so no connection or nonce is left half used.

Called by `client`, `account` and `registrar`.
"""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from gateway.certificates.orders import AuthorityFault, FaultKind

WAIT_SECONDS: Final = 30.0
"""How long a call may wait for a free thread."""

_T = TypeVar("_T")


class Threads:
    """Runs blocking work beside the event loop."""

    def __init__(self, count: int, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="authority")
        self._wait_seconds = wait_seconds
        self._outlasting: set[asyncio.Future[Any]] = set()

    async def run(self, work: Callable[[], _T], *, may_be_left: bool = False) -> _T:
        """Answer what `work` does, or raise what it raises.

        Raises AuthorityFault (BUSY) when no thread was free in time: `work` was and will not be
        begun. A cancelled caller gets the answer all the same once `work` has begun, unless it
        `may_be_left`.
        """
        # The context goes along, so that log lines keep what their caller bound to them.
        begun = self._pool.submit(contextvars.copy_context().run, work)
        answer = asyncio.wrap_future(begun)
        try:
            await asyncio.wait({answer}, timeout=self._wait_seconds)
            # Succeeds for what has not begun, and only for that.
            if begun.cancel():
                detail = f"the CA was not asked: no thread was free for {self._wait_seconds:.0f} s"
                raise AuthorityFault(FaultKind.BUSY, detail)
            await asyncio.wait({answer})
        except asyncio.CancelledError:
            if begun.cancel() or may_be_left:
                answer.cancel()
                raise
            await self._outlast(answer)
        return answer.result()

    def close(self) -> None:
        """Take no more work; what still runs ends by its own bounds, and nobody waits for it."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for answer in self._outlasting:
            answer.cancel()

    async def _outlast(self, answer: "asyncio.Future[_T]") -> None:
        """Wait for an answer, however often the caller is cancelled."""
        self._outlasting.add(answer)
        try:
            while not answer.done():
                try:
                    await asyncio.wait({answer})
                except asyncio.CancelledError:
                    continue
        finally:
            self._outlasting.discard(answer)
