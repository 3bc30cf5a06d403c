"""An answer over HTTP/1.1, read as it comes in, byte by byte if need be, and bounded in size.

Responsible for where it ends, and for whether the next one may come over the same connection.
llhttp (httptools), which the listener has as well, reads it. Knows no connection and no time.

Called by `connections`.
"""

from typing import Any, Final

import httptools

from gateway.certificates.authority.replies import Reply

MAX_BODY_BYTES: Final = 1024 * 1024
MAX_HEAD_BYTES: Final = 65536

_FIRST_FINAL_STATUS: Final = 200


class NoAnswer(Exception):
    """There is none; a sentence says why. `is_unsent`: nothing was asked either."""

    is_unsent = False


class Cut(NoAnswer):
    """The connection ended, or brought what is no HTTP, before an answer was complete."""

    def __init__(self) -> None:
        super().__init__("the CA cut the connection off before its answer was complete")


class TooLong(Exception):
    """The answer is longer than any that a CA gives."""


class Answer:
    """What llhttp tells of one. Of one to HEAD there is no body, whatever its headers say."""

    def __init__(self, *, is_head: bool) -> None:
        self.is_complete = False
        self._is_head = is_head
        self._received = 0
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._has_head = False
        self._is_more = False
        self._is_current = False
        self._parser: Any = httptools.HttpResponseParser(self)

    @property
    def reply(self) -> Reply:
        """What was answered; once it is complete."""
        return Reply(self._status, self._headers, bytes(self._body))

    @property
    def lets_keep(self) -> bool:
        """Whether the next answer may come over the same connection."""
        is_kept = "close" not in self._headers.get("connection", "").lower()
        return is_kept and self._is_current and self._is_delimited and not self._is_more

    @property
    def _is_delimited(self) -> bool:
        """Whether it ends before its connection does."""
        told = self._headers.keys() & {"content-length", "transfer-encoding"}
        return bool(told) or self._is_head or self._status in {204, 304}

    def feed(self, chunk: bytes) -> None:
        """Take what has come; nothing means that the connection has ended. Raises: Cut, TooLong."""
        if not chunk:
            if not self._has_head or self._is_delimited:
                raise Cut
            self.is_complete = True
            return
        self._received += len(chunk)
        try:
            self._parser.feed_data(chunk)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            raise Cut from None
        if self.is_complete:
            self._parser = None  # They name each other: nobody has to find that out.
        head_bytes = self._received - len(self._body)
        if len(self._body) > MAX_BODY_BYTES or (not self._has_head and head_bytes > MAX_HEAD_BYTES):
            raise TooLong

    # What llhttp calls.

    def on_message_begin(self) -> None:
        """One begins."""
        self._is_more = self.is_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, whole."""
        if self._has_head:
            return  # of another answer, or after a body in chunks
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        told = self._headers.get(key)
        self._headers[key] = text if told is None else f"{told}, {text}"

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self._has_head:
            return
        self._status = self._parser.get_status_code()
        self._is_current = self._parser.get_http_version() == "1.1"
        if self._status < _FIRST_FINAL_STATUS:
            self._headers.clear()  # The answer itself is still to come.
            return
        self._has_head = True
        self.is_complete = self._is_head

    def on_body(self, data: bytes) -> None:
        """A part of a body."""
        if not self.is_complete:
            self._body += data

    def on_message_complete(self) -> None:
        """One is whole."""
        self.is_complete = self._has_head
