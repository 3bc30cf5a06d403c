"""The thread in which a blocking client's event loop runs.

Responsible for its beginning and its end, and for carrying a call over and its result back. The
thread is a daemon: a program that forgets to close its client ends all the same. anyio's own
`start_blocking_portal` would wait for it at the program's end, for good. Used by `blocking`.
"""

import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Final, ParamSpec, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from gateway.client.errors import Unreachable
from gateway.client.exchange import CLOSED, FORKED

_P = ParamSpec("_P")
_T = TypeVar("_T")

CUT_OFF: Final = "The client was closed before the answer came."
WITHIN: Final = (
    "This is the client's own thread, which runs its callbacks and would wait for itself: they can"
    " neither call nor close it. An exception that one raises ends the call."
)


class Crossing:
    """Runs coroutines in a thread of its own, within the block of what they all use."""

    def __init__(self, block: AbstractAsyncContextManager[object]) -> None:
        self._pid = os.getpid()
        self._is_closed = False
        started: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(
            target=_run, args=[block, started], name="gateway-client", daemon=True
        )
        self._thread.start()
        self._portal = started.result()
        # One that nobody has any more takes its thread along; at the program's end nothing has to.
        weakref.finalize(self, _stop, self._portal).atexit = False

    def run(self, method: Callable[_P, Awaitable[_T]], *args: _P.args, **named: _P.kwargs) -> _T:
        """The result of a method.

        Raises:
            RuntimeError: the thread is closed, or left behind by a fork, or this one.
            Unreachable: it was closed meanwhile, by another thread.

        """
        if os.getpid() != self._pid:
            raise RuntimeError(FORKED)
        self._refuse_own_thread()
        if self._is_closed:
            raise RuntimeError(CLOSED)
        running = self._portal.start_task_soon(partial(method, *args, **named))
        try:
            return running.result()
        except CancelledError:
            raise Unreachable(CUT_OFF, may_have_arrived=True) from None
        finally:
            # Does nothing but where ^C ended the waiting for it.
            running.cancel()

    def close(self) -> None:
        """End the calls that still run, leave the block, end the thread; may be repeated.

        Raises:
            RuntimeError: this is the thread itself.

        """
        if os.getpid() == self._pid and not self._is_closed:
            self._refuse_own_thread()
            self._is_closed = True
            _stop(self._portal)
            self._thread.join()

    def _refuse_own_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError(WITHIN)


def _run(block: AbstractAsyncContextManager[object], started: Future[BlockingPortal]) -> None:
    try:
        anyio.run(_serve, block, started)
    except OSError as error:  # there are no more files to open, for one
        started.set_exception(error)


async def _serve(
    block: AbstractAsyncContextManager[object], started: Future[BlockingPortal]
) -> None:
    async with block, BlockingPortal() as portal:
        started.set_result(portal)
        await portal.sleep_until_stopped()


def _stop(portal: BlockingPortal) -> None:
    # In its own thread, where only the collector of garbage can call this, it cannot be told.
    with suppress(RuntimeError):
        portal.start_task_soon(portal.stop, True)
