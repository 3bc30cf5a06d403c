"""What `gateway check` finds of the HTTP listener: its TLS files as they are now, before a start.

Called by `cli.findings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.cli.finding import Finding, State
from gateway.cli.page_finding import page_finding
from gateway.config import is_loopback
from gateway.http.listener.contexts import Piece, TlsInvalid
from gateway.listening import judge_tls

if TYPE_CHECKING:
    from gateway.config import Settings

_PART: Final = "http"
_REMEDIES: Final = {
    Piece.CERTIFICATE: "It is PEM: the chain, its own certificate first.",
    Piece.KEY: "It is PEM, not encrypted: the key of the first certificate in the chain.",
    Piece.CLIENT_CA: "It is PEM: the certificates of the authority that signs its clients'.",
}


def listener_findings(settings: Settings) -> list[Finding]:
    """What there is to say of its TLS, and of the operator's page on it."""
    of_tls = _tls_finding(settings)
    return [*([] if of_tls is None else [of_tls]), page_finding(settings)]


def _tls_finding(settings: Settings) -> Finding | None:
    """None of plain HTTP that stays on this machine."""
    http = settings.http
    try:
        identity = judge_tls(settings)
    except TlsInvalid as invalid:
        return Finding(_PART, State.FAILED, f"{invalid}.", _REMEDIES[invalid.piece])
    if identity is None:
        if is_loopback(http.host):
            return None
        return Finding(
            _PART,
            State.WARNING,
            f"Other machines can reach {http.listen}, and it is plain HTTP.",
            "Put a proxy with TLS in front, or set http.tls: tokens and private keys pass here.",
        )
    if http.tls == "self":
        said = f"The certificate of {http.tls_hostname} is issued by the gateway itself."
        return Finding(_PART, State.OK, said)
    fault = identity.fault()
    if fault is not None:
        if identity.useless() is None:
            return Finding(_PART, State.WARNING, fault, f"Renew {http.certificate_file}.")
        remedy = f"Put one that is valid now into {http.certificate_file}, and its key beside it."
        return Finding(_PART, State.FAILED, fault, remedy)
    return Finding(_PART, State.OK, f"{http.listen} has TLS until {identity.valid_until}.")
