"""What the listener shows of itself in TLS, and keeping that current while connections come.

A `Source` says what is to be shown now; an `Identity` looks again and again and has the context for
the next handshake. One that cannot be used changes nothing: the one before goes on, and the fault
is told. Called by `gateway.listening` and `server`.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from gateway.files import Reading, read_file, reason_of
from gateway.http.listener.contexts import Pair, Piece, TlsInvalid, server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

PAUSE_SECONDS: Final = 1.0
READ_SECONDS: Final = 5.0
_MAX_FILE_BYTES: Final = 1 << 20
_LATE_SHARE: Final = 0.1
_NOT_TAKEN: Final = "tls certificate not taken"
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"

_log = structlog.get_logger(__name__)


class Missing(Exception):
    """There is nothing to be shown yet; the text says why and may be shown to anybody.

    `is_coming`: nothing is wrong, it takes its time.
    """

    def __init__(self, said: str, *, is_coming: bool = False) -> None:
        super().__init__(said)
        self.is_coming = is_coming


class Source(Protocol):
    """Where the certificate comes from."""

    async def look(self) -> Pair:
        """What is to be shown now.

        Raises:
            Missing: nothing yet.
            TlsInvalid: what is there cannot be used.
        """


class CertificateFiles:
    """A certificate's chain and its key in two PEM files, which may be replaced at any time."""

    def __init__(self, certificate_file: Path, key_file: Path) -> None:
        self._certificate_file = certificate_file
        self._key_file = key_file
        self._reading = Reading(self.read, READ_SECONDS)

    async def look(self) -> Pair:
        """Both files as they are now."""
        try:
            return await self._reading.result()
        except TimeoutError:
            files = f"{self._certificate_file} and {self._key_file}"
            raise TlsInvalid(f"{files} were not read within {READ_SECONDS:g} seconds") from None

    def read(self) -> Pair:
        """The same, however long it takes; raises TlsInvalid."""
        chain_pem = read_pem(self._certificate_file, Piece.CERTIFICATE)
        return Pair(chain_pem, read_pem(self._key_file, Piece.KEY))


class Identity:
    """The TLS context of each moment.

    `first` is shown until there is another; `stands_in` says that it is worth nothing by itself.
    With `client_ca_pem` only clients with a certificate of that authority get in. `now` is this
    machine's clock.
    """

    def __init__(
        self,
        first: Pair,
        now: Callable[[], datetime],
        *,
        client_ca_pem: bytes | None = None,
        stands_in: bool = False,
    ) -> None:
        self._shown = first
        self._now = now
        self._client_ca_pem = client_ca_pem
        self._stands_in = stands_in
        self._context = server_context(first, client_ca_pem)
        self._fault: str | None = None
        self._doubted: Pair | None = None

    @property
    def context(self) -> ssl.SSLContext:
        """For the next handshake."""
        return self._context

    @property
    def valid_until(self) -> str:
        """The end of what is shown."""
        return f"{self._shown.validity()[1]:{_TIME}}"

    async def keep(self, source: Source, pause_seconds: float = PAUSE_SECONDS) -> None:
        """Look, again and again, until cancelled."""
        while True:
            await self._look(source)
            await asyncio.sleep(pause_seconds)

    def useless(self) -> str | None:
        """Why no client can trust what is shown, if so: a sentence for anybody."""
        if self._stands_in:
            return self._fault or "There is no certificate yet."
        why = self._why_invalid(self._shown)
        return None if why is None else f"The certificate {why}."

    def fault(self) -> str | None:
        """What an operator has to see to, if anything: a sentence for anybody."""
        start, end = self._shown.validity()
        fault = self.useless() or self._fault
        if fault is None and end - self._now() < _LATE_SHARE * (end - start):
            return f"The certificate expires at {self.valid_until} and was not replaced yet."
        return fault

    async def _look(self, source: Source) -> None:
        try:
            pair = await source.look()
        except Missing as reason:
            self._tell(str(reason), is_coming=reason.is_coming)
            return
        except TlsInvalid as invalid:
            self._tell(f"{invalid}.")
            return
        try:
            if pair != self._shown:
                self._take(pair)
        except TlsInvalid as invalid:
            # Two files are not replaced at one moment: told only when it is no passing state.
            if pair == self._doubted:
                self._tell(f"The new certificate cannot be used: {invalid}.")
            self._doubted = pair
            return
        self._fault = self._doubted = None

    def _take(self, pair: Pair) -> None:
        context = server_context(pair, self._client_ca_pem)
        why = self._why_invalid(pair)
        if why is not None and self.useless() is None:
            raise TlsInvalid(f"it {why}")
        self._context = context
        self._shown, self._stands_in = pair, False
        _log.info("tls certificate taken", valid_until=self.valid_until)

    def _why_invalid(self, pair: Pair) -> str | None:
        start, end = pair.validity()
        now = self._now()
        if now < start:
            return f"is not valid before {start:{_TIME}}"
        return f"expired at {end:{_TIME}}" if end <= now else None

    def _tell(self, fault: str, *, is_coming: bool = False) -> None:
        if fault != self._fault:
            say = _log.info if is_coming else _log.warning
            say("tls certificate waited for" if is_coming else _NOT_TAKEN, why=fault)
        self._fault = fault


def read_pem(path: Path, piece: Piece) -> bytes:
    """A file's content; raises TlsInvalid, with the file's name."""
    try:
        return read_file(path, _MAX_FILE_BYTES)
    except (OSError, ValueError) as fault:
        raise TlsInvalid(f"{path} cannot be read: {reason_of(fault)}", piece) from None


def utc_now() -> datetime:
    """This machine's clock."""
    return datetime.now(UTC)
