"""Renewal information (RFC 9773) for the certificates of a CA that gives none.

Responsible for: a window for each certificate that passed the proxy, which a test may move.
Must not: stand in where Pebble has it (2.6 and later).
Called by: `tests.lab.acme_proxy`.
"""

import datetime
import json

from cryptography import x509

from tests.lab.acme_calls import Answer, renewal_id
from tests.lab.acme_moods import window

_ASK_AGAIN_SECONDS = 21600
_SHARE_BEFORE = 0.5
_SHARE_AFTER = 0.75


class RenewalWindows:
    """What is told about each certificate, by its renewal id."""

    def __init__(self) -> None:
        self._windows: dict[str, dict[str, str]] = {}

    def issued(self, chain_pem: bytes) -> None:
        """Take in a certificate: to be renewed around the middle of its second half."""
        leaf = x509.load_pem_x509_certificates(chain_pem)[0]
        begin = leaf.not_valid_before_utc
        lifetime = leaf.not_valid_after_utc - begin
        self.tell(
            renewal_id(leaf), begin + lifetime * _SHARE_BEFORE, begin + lifetime * _SHARE_AFTER
        )

    def tell(self, name: str, start: datetime.datetime, end: datetime.datetime) -> None:
        """Say from now on that the certificate of this renewal id is to be renewed then."""
        self._windows[name] = window(start, end)

    def answer(self, path: str) -> Answer:
        """Answer a request for the renewal id at the end of the path."""
        known = self._windows.get(path.rpartition("/")[2])
        if known is None:
            problem = {"type": "urn:ietf:params:acme:error:malformed", "detail": "not known here"}
            kind = ("Content-Type", "application/problem+json")
            return Answer(404, (kind,), json.dumps(problem).encode())
        headers = (
            ("Content-Type", "application/json"),
            ("Retry-After", str(_ASK_AGAIN_SECONDS)),
        )
        return Answer(200, headers, json.dumps({"suggestedWindow": known}).encode())
