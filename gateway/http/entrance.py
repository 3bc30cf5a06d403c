"""The entrance to the endpoint: from where a call comes, and whether there is room for it.

Responsible for putting together who calls (`remote`), floods (`flood`) and crowds (`crowd`), and
for what an answer says about the caller's address and token. Outlives reloads: what was counted
stays, and goes by the limits of the configuration that holds. Must not: answer a call. Called by
the endpoint.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from gateway import measures
from gateway.access.tokens import CALLER_KEY, digest_of
from gateway.contract import (
    CallError,
    EnvelopeInvalid,
    Internal,
    MethodUnknown,
    Overloaded,
    Unauthorized,
    Unavailable,
)
from gateway.http import remote
from gateway.http.crowd import Crowd, CrowdLimits, Place
from gateway.http.flood import FloodGate, FloodLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Scope

    from gateway.contract import RequestEnvelope

_FORWARDED: Final = remote.HEADER.encode()
_FORWARDED_SCHEME: Final = remote.SCHEME_HEADER.encode()

_SHORTEST_PAUSE_SECONDS: Final = 0.5
_PAUSES: Final = 64
"""So many different ones there are, over a second."""

MOST_PAUSES: Final = 1_024
"""More calls than these are refused without one: each keeps its request in memory."""

_SHUT_OUT: Final = "Too many calls without a good token came from here: this one was not read."
_TOLD_EVERY_SECONDS: Final = 10.0
_SAY_NOTHING_OF_THE_TOKEN: Final = (Overloaded, Unavailable, Internal)

_log = structlog.get_logger(__name__)


class ShutOut(Overloaded):
    """The call was not looked at: too many were refused before it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the configuration says about callers at large."""

    trusted_proxies: Sequence[remote.Network]
    flood: FloodLimits
    crowd: CrowdLimits
    pauses: int = MOST_PAUSES
    """How many calls may be kept waiting for their refusal: each holds a connection."""


def digest_shown(envelope: RequestEnvelope) -> str | None:
    """The digest of what a call shows as its token; None where that can be none."""
    token = envelope.request.get(CALLER_KEY)
    return digest_of(token) if isinstance(token, str) and token.isascii() else None


class Entrance:
    """One for a process. `digest` is as `digest_shown` answers it, None also of what is no call."""

    def __init__(self, bounds: Bounds) -> None:
        self._trusted_proxies = bounds.trusted_proxies
        self._flood = FloodGate(bounds.flood, lambda: time.monotonic_ns() // 1_000)
        self._crowd = Crowd(bounds.crowd, time.monotonic)
        self._pausing = 0
        self._most_pauses = bounds.pauses
        self._shut_out = self._told = 0
        self._told_at = -_TOLD_EVERY_SECONDS
        self._has_told_of_proxy = False

    def use(self, bounds: Bounds) -> None:
        """Go by other bounds from the next call on."""
        self._trusted_proxies = bounds.trusted_proxies
        self._flood.use(bounds.flood)
        self._crowd.limits = bounds.crowd
        self._most_pauses = bounds.pauses

    def remote_of(self, scope: Scope) -> str:
        """The address of whoever calls."""
        for name, _ in scope["headers"]:
            if name == _FORWARDED:
                return self._told_of(scope)
        return remote.remote_of(_peer_of(scope), (), ())

    def _told_of(self, scope: Scope) -> str:
        """The same of a call that somebody has passed on."""
        peer, forwarded = _peer_of(scope), _values_of(scope, _FORWARDED)
        address = remote.remote_of(peer, forwarded, self._trusted_proxies)
        if not self._has_told_of_proxy and address == remote.remote_of(peer, (), ()):
            self._has_told_of_proxy = True
            _log.warning("a proxy that is not in http.trusted_proxies", remote=address)
        return address

    def is_encrypted(self, scope: Scope) -> bool:
        """Whether TLS ends here or at a trusted proxy, as far as is known here."""
        if scope["scheme"] == "https":
            return True
        told = _values_of(scope, _FORWARDED_SCHEME)
        return remote.is_told_encrypted(_peer_of(scope), told, self._trusted_proxies)

    def is_shut_out(self, address: str) -> bool:
        """Whether only known tokens pass from an address; it is as `remote_of` answers it."""
        return self._flood.wait_ms(remote.subscriber_of(address)) > 0

    async def demand_calm(self, address: str, body: bytes) -> str | None:
        """What vouches for a call from an address that is shut out; None from any other.

        The body need not be a call.

        Raises:
            ShutOut: nothing does.
        """
        if not self.is_shut_out(address):
            return None
        voucher = self._flood.voucher_in(body)
        if voucher is None:
            raise await self._refusal(address)
        return voucher

    async def demand_known(self, address: str, digests: Sequence[str]) -> str:
        """The one of these tokens that was right lately, else the first.

        Raises:
            ShutOut: the address is shut out, and none of them was.
        """
        known = [digest for digest in digests if self._flood.is_known(digest)]
        if not known and self.is_shut_out(address):
            raise await self._refusal(address)
        return (known or digests)[0]

    async def demand_own(self, address: str, digest: str | None, voucher: str) -> None:
        """Raises `ShutOut` where what vouched for a call is not the token it is made with."""
        if not self._flood.is_known(digest):
            self._flood.charge(voucher)
            raise await self._refusal(address)

    async def _refusal(self, address: str) -> ShutOut:
        """After a pause: whoever calls again as soon as he is answered is slowed down by it.

        Most of what a flood costs is its calls, not its answers.
        """
        self._tell_of_flood()
        if self._pausing < self._most_pauses:
            self._pausing += 1
            # Not the same for all: they would come again all at once.
            seconds = _SHORTEST_PAUSE_SECONDS + self._shut_out % _PAUSES / _PAUSES
            try:
                await asyncio.sleep(seconds)
            finally:
                self._pausing -= 1
        subscriber = remote.subscriber_of(address)
        return ShutOut(max(self._flood.wait_ms(subscriber), 1), _SHUT_OUT)

    def place(self, address: str, digest: str | None) -> Place:
        """A place among the calls under way; see there."""
        name = digest or remote.subscriber_of(address)
        return Place(self._crowd, name, is_known=self._flood.is_known(digest))

    def note(
        self,
        address: str,
        voucher: str | None,
        digest: str | None,
        refusal: CallError | None,
    ) -> None:
        """Take note of how a call ended; `voucher` as `demand_calm` answered it."""
        if refusal is None:  # mostly
            self._flood.remember(digest)
        elif isinstance(refusal, (Unauthorized, MethodUnknown, EnvelopeInvalid)):
            if voucher is None:
                self._flood.refused(remote.subscriber_of(address))
            else:
                self._flood.charge(voucher)
            if isinstance(refusal, Unauthorized):
                self._flood.forget(digest)
        elif not isinstance(refusal, _SAY_NOTHING_OF_THE_TOKEN):
            self._flood.remember(digest)

    def _tell_of_flood(self) -> None:
        """Say how many were shut out, one line for many: a line for each would be a flood too."""
        measures.limit_reached("unauthenticated")
        self._shut_out += 1
        now = time.monotonic()
        if now - self._told_at >= _TOLD_EVERY_SECONDS:
            calls = self._shut_out - self._told
            _log.warning("calls shut out", calls=calls)
            self._told_at, self._told = now, self._shut_out


def _peer_of(scope: Scope) -> str | None:
    client: tuple[str, int] | None = scope.get("client")
    return None if client is None else client[0]


def _values_of(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]
