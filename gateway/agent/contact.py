"""The agent's way to the gateway: at most a few calls at once, and one gate for all of them.

Responsible for: bounding the calls under way, and the gate. When a call finds that no call can work
(the gateway is away, the token is not taken), the gate closes: nobody else tries until a pause is
over, and then one does, for all. So an agent of 500 hostnames asks an absent gateway once in five
minutes, and all of them go on as soon as it is back. Each keeper trying by itself was the
alternative: the last would notice minutes late, and a gateway that hangs would be held by 500 calls
in turn. The token is read at every call, so that a rotated one is taken without a restart.

A call that hangs, or to which the gateway answers that it cannot now, may be the fault of that one
hostname. The gate closes for it once several hostnames in a row had that, and none anything else.

Must not: decide what to ask for. Used by the keepers; opened by `service` and `once`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn, Self, TypeVar

import structlog

from gateway.agent.clocks import moment
from gateway.agent.disk import FILES
from gateway.agent.gate import Gate
from gateway.agent.rounds import (
    OPERATOR_PAUSE_MS,
    Fault,
    fault_of_call,
    is_suspect,
    pause_of_call_ms,
    wait_of_call_ms,
)
from gateway.agent.telling import Telling, Word
from gateway.client import AsyncGatewayClient, GatewayError, Unauthorized
from gateway.client.tokens import TokenUnreadable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from gateway.agent.clocks import Clocks
    from gateway.agent.config import GatewaySettings
    from gateway.contract import Hostname

CALLS_AT_ONCE: Final = 4
SUSPECTS: Final = 3
"""So many hostnames in a row are no chance: it is the gateway."""

OUT_OF_TIME: Final = Fault("the time given was over before there was an answer", mends=True)

_SHARE_OF_A_CALL: Final = 0.9
"""Of all the time that there is: a call that ends before it says why it had no answer."""

_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


class ContactInvalid(Exception):
    """No call can ever be made with these settings; the text says why."""


class CallFailed(Exception):
    """A call came to nothing; `fault` says why, `pause_ms` when asking again makes sense.

    `was_made`: whether there was a call at all. If so it counts for the caller, even if every call
    has its fault: the next one tells whether it was the caller's own. `told_ms` is the wait that
    the gateway asked this caller for.
    """

    def __init__(self, fault: Fault, pause_ms: int, *, was_made: bool, told_ms: int = 0) -> None:
        super().__init__(fault.sentence)
        self.told_ms = told_ms
        self.fault = fault
        self.pause_ms = pause_ms
        self.was_made = was_made


class Contact:
    """All calls of one agent. An asynchronous context manager: it keeps connections.

    `outlook` says how long what is on disk is good, for the lines about a gateway that is away.
    `limit_seconds` is how long there are calls at all, from now on.

    Raises:
        ContactInvalid: the URL or the CA file cannot be used.

    """

    def __init__(
        self,
        settings: GatewaySettings,
        clocks: Clocks,
        outlook: Callable[[], str] = lambda: "",
        limit_seconds: float | None = None,
    ) -> None:
        self._clocks = clocks
        self._outlook = outlook
        self._source = settings.token
        self._token = ""
        self._token_is_refused = False
        self._end_ms: int | None = None
        deadline = clocks.pace.call_seconds
        if limit_seconds is not None:
            self._end_ms = clocks.steady_ms() + round(limit_seconds * 1000)
            deadline = min(deadline, limit_seconds * _SHARE_OF_A_CALL)
        try:
            self._client = AsyncGatewayClient(
                settings.url,
                lambda: self._token,
                deadline=deadline,
                ca_file=settings.ca_file,
                allow_plain_http=settings.allow_plain_http,
            )
        except ValueError as wrong:
            raise ContactInvalid(str(wrong)) from None
        self._places = asyncio.Semaphore(CALLS_AT_ONCE)
        self._gate = Gate()
        self._suspects: set[Hostname] = set()
        self._telling = Telling()
        self._opened = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    @property
    def fault(self) -> Fault | None:
        """Why no call can work at the moment; None while calls can."""
        return self._gate.fault

    async def opened(self) -> None:
        """Wait until calls work again after they could not."""
        await self._opened.wait()

    async def call(
        self,
        hostname: Hostname,
        work: Callable[[AsyncGatewayClient], Awaitable[_T]],
        failures: int,
    ) -> _T:
        """Make a call for a hostname; its caller has had so many `failures` in a row before it.

        Raises:
            CallFailed: whatever the reason; also without a call, while the gate is closed.

        """
        try:
            async with asyncio.timeout(self._left_seconds()), self._places:
                return await self._call(hostname, work, failures)
        except TimeoutError:
            raise CallFailed(OUT_OF_TIME, OPERATOR_PAUSE_MS, was_made=False) from None

    def _left_seconds(self) -> float | None:
        if self._end_ms is None:
            return None
        return max(self._end_ms - self._clocks.steady_ms(), 0) / 1000

    async def _call(
        self,
        hostname: Hostname,
        work: Callable[[AsyncGatewayClient], Awaitable[_T]],
        failures: int,
    ) -> _T:
        await self._enter()
        try:
            self._token = await FILES.run(self._source.read)
            answer = await work(self._client)
        except TokenUnreadable as unreadable:
            self._token, self._token_is_refused = "", True
            self._shut(_unreadable(unreadable), OPERATOR_PAUSE_MS)
        except GatewayError as error:
            self._fail(hostname, error, failures)
        except BaseException:
            self._gate = self._gate.left()
            raise
        self._open()
        return answer

    async def _enter(self) -> None:
        if self._wait_ms() > 0 and not await self._has_another_token():
            fault = self._gate.fault
            if fault is not None:
                raise CallFailed(fault, self._wait_ms(), was_made=False)
        self._gate = self._gate.entered()

    def _wait_ms(self) -> int:
        return self._gate.wait_ms(self._clocks.steady_ms())

    async def _has_another_token(self) -> bool:
        """Whether a token that was not taken, or not there, has been replaced since."""
        if not self._token_is_refused or self._gate.is_tried:
            return False
        try:
            token = await FILES.run(self._source.read)
        except TokenUnreadable:
            return False
        # Meanwhile somebody else may have begun to try.
        return token != self._token and not self._gate.is_tried

    def _fail(self, hostname: Hostname, error: GatewayError, failures: int) -> NoReturn:
        fault = fault_of_call(error)
        self._token_is_refused = isinstance(error, Unauthorized)
        first_ms = self._clocks.pace.first_pause_ms
        pause_ms = pause_of_call_ms(error, failures + 1, self._clocks.jitter(), first_ms)
        told_ms = wait_of_call_ms(error)
        if is_suspect(error):
            self._suspects.add(hostname)
            if self._gate.fault is not None or len(self._suspects) >= SUSPECTS:
                fault = replace(fault, is_shared=True)
        if fault.is_shared:
            self._shut(fault, told_ms if fault.mends else pause_ms)
        if not is_suspect(error):
            self._open()
        raise CallFailed(fault, pause_ms, was_made=True, told_ms=told_ms) from None

    def _shut(self, fault: Fault, least_ms: int) -> NoReturn:
        clocks = self._clocks
        self._gate = self._gate.shut(
            fault,
            clocks.steady_ms(),
            clocks.jitter(),
            least_ms=least_ms,
            first_ms=clocks.pace.first_pause_ms,
        )
        self._opened.clear()
        self._tell(fault)
        raise CallFailed(fault, self._wait_ms(), was_made=True) from None

    def _open(self) -> None:
        self._token_is_refused = False
        self._suspects.clear()
        self._gate = Gate()
        self._opened.set()
        self._tell(None)

    def _tell(self, fault: Fault | None) -> None:
        since_ms = self._telling.since_ms
        now_ms, steady_ms = self._clocks.now_ms(), self._clocks.steady_ms()
        sentence = None if fault is None else fault.sentence
        self._telling, word = self._telling.note(sentence, now_ms, steady_ms)
        if word is Word.BEGUN:
            _log.warning("the gateway cannot be used", why=str(fault), meanwhile=self._outlook())
        elif word is Word.STILL and since_ms is not None:
            since, outlook = moment(since_ms), self._outlook()
            _log.warning("no gateway still", since=since, why=str(fault), meanwhile=outlook)
        elif word is Word.OVER and since_ms is not None:
            _log.info("the gateway can be used again", was_away_since=moment(since_ms))


def _unreadable(unreadable: TokenUnreadable) -> Fault:
    return Fault(f"{unreadable}.", mends=False, is_shared=True)
