"""Everything that can go wrong between the gateway and a DNS server, as one tree.

    DnsFault
      Unreachable            no server took the message: nothing has happened
        NoRoute              this machine has no way to that address at all
      NoReply                a server took the message and was not heard of in time
      ReplyInvalid           a reply that proves nothing: garbage, wrong id, missing or bad TSIG
        ReplyUnsigned        an error without a signature where a signed reply was due
        ReplyTruncated       cut short; TCP has the whole
      ServerFailed           SERVFAIL, or not authoritative for its own zone at the moment
      ServerRefused          any other rcode than the question allows
      TsigRejected           the server says that it cannot accept our signature
      OutcomeUnknown         an UPDATE was sent; whether it was applied could not be found out
      Contended              somebody changed the name in every round
      NameTooFull            what lies at the name does not fit into a message
      OutOfFiles             this machine lets the gateway open no connection more
      Misplaced              the zone does not hold the name: cut, alias or other zone in between
      ChallengeUnavailable   no zone of ours can take the challenge record

`detail` is one sentence for a person, without a secret. `retry_after_seconds` is None when asking
again can't help before somebody changes something outside the gateway.
"""

from typing import ClassVar, Literal

import dns.rcode


class DnsFault(Exception):
    """Base of the tree; raised itself by nobody."""

    _retry_after_seconds: ClassVar[float | None] = None

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after_seconds = self._retry_after_seconds


class Unreachable(DnsFault):
    """No server took the message: refused, unknown host, no connection in time."""

    _retry_after_seconds = 5.0


class NoRoute(Unreachable):
    """This machine has no route to the address, e.g. no IPv6."""


class NoReply(DnsFault):
    """The message was sent and not answered in time; it may have been acted on."""

    _retry_after_seconds = 5.0


class ReplyInvalid(DnsFault):
    """A reply that can't be read or doesn't prove that it comes from the server."""

    _retry_after_seconds = 5.0


class ReplyUnsigned(ReplyInvalid):
    """An error code without a signature, as some servers answer a key they do not know."""

    _retry_after_seconds = 30.0

    def __init__(self, detail: str, rcode: dns.rcode.Rcode) -> None:
        super().__init__(detail)
        self.rcode = rcode


class ReplyTruncated(ReplyInvalid):
    """The reply didn't fit into its datagram."""


class ServerFailed(DnsFault):
    """The server can't answer for the zone at the moment."""

    _retry_after_seconds = 10.0


class ServerRefused(DnsFault):
    """The server won't: REFUSED, NOTAUTH, NOTZONE, NOTIMP, FORMERR and the like."""

    _retry_after_seconds = 30.0

    def __init__(self, detail: str, rcode: dns.rcode.Rcode) -> None:
        super().__init__(detail)
        self.rcode = rcode


class TsigRejected(DnsFault):
    """BADKEY, BADSIG, BADTIME or BADTRUNC, said by the server.

    `server_ahead_seconds` is how much later the server's clock is than ours, when it told.
    """

    _retry_after_seconds = 30.0

    def __init__(
        self, detail: str, rcode: dns.rcode.Rcode, server_ahead_seconds: int | None = None
    ) -> None:
        super().__init__(detail)
        self.rcode = rcode
        self.server_ahead_seconds = server_ahead_seconds


class OutcomeUnknown(DnsFault):
    """An UPDATE was sent and its effect couldn't be read afterwards."""

    _retry_after_seconds = 2.0


class Contended(DnsFault):
    """The name changed between reading and writing, every time; nothing was written."""

    _retry_after_seconds = 2.0


class NameTooFull(DnsFault):
    """Some 64 KB of records at one name, which prerequisites would have to repeat."""


class OutOfFiles(DnsFault):
    """The process has as many files open as it may: no fault of any server's."""

    _retry_after_seconds = 1.0


class Misplaced(DnsFault):
    """A delegation, a DNAME or another zone lies between the zone and the name."""


class ChallengeUnavailable(DnsFault):
    """The challenge of a hostname can't be published in any configured zone."""

    reason: Literal["zone-unavailable"] = "zone-unavailable"

    def __init__(self, detail: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds
