"""A CA that says when to renew (RFC 9773), with every request to it seen.

It is the newer Pebble behind the scripted proxy. Where no newer one can be had, the system's is
there in its place and the proxy itself says when to renew; what only a newer Pebble refuses, the
proxy refuses for it.
"""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.lab.acme_calls import Call, Operation, renewal_id
from tests.lab.acme_proxy import AcmeProxy
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.pebble_newer import start_newer_pebble

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NINETY_DAYS_SECONDS = 90 * 86_400

STEADY = {"PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}
"""Without moods of its own: requests are counted."""

Window = tuple[int, int]
"""Start and end in epoch milliseconds."""


@dataclass(frozen=True)
class RenewingCa:
    """The running parts. `is_newer`: it is Pebble itself that says when to renew."""

    pebble: PebbleProcess
    proxy: AcmeProxy
    is_newer: bool

    def say(self, certificate: Mapping[str, Any], window: Window) -> None:
        """Say from now on that a certificate (as it is stored) is to be renewed then."""
        leaf = leaf_of(certificate["chain_pem"])
        start, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in window)
        if self.proxy.renewal_windows is not None:
            self.proxy.renewal_windows.tell(renewal_id(leaf), start, end)
            return
        suggested = {"start": start.isoformat(), "end": end.isoformat()}
        answer = json.dumps({"suggestedWindow": suggested})
        pem = leaf.public_bytes(Encoding.PEM).decode()
        said = httpx.post(
            f"{self.pebble.management_url}/set-renewal-info/",
            json={"certificate": pem, "ariResponse": answer},
            verify=ssl.create_default_context(cafile=self.pebble.ca_file),
            trust_env=False,
        )
        said.raise_for_status()

    def window_of(self, certificate: Mapping[str, Any]) -> Window:
        """The window that the CA suggests for a certificate (as it is stored)."""
        tls = ssl.create_default_context(cafile=self.proxy.ca_file)
        with httpx.Client(verify=tls, trust_env=False) as client:
            base = client.get(self.proxy.directory_url).json()["renewalInfo"].rstrip("/")
            told = client.get(f"{base}/{renewal_id(leaf_of(certificate['chain_pem']))}").json()
        start, end = (
            datetime.fromisoformat(told["suggestedWindow"][each]) for each in ("start", "end")
        )
        return _milliseconds(start), _milliseconds(end)

    def orders(self, hostname: str) -> list[Call]:
        """The orders asked for, refused ones as well, the oldest first."""
        return self.proxy.seen(Operation.NEW_ORDER, hostname)

    def made_orders(self, hostname: str) -> list[Call]:
        """Those of them that Pebble has made."""
        return self.proxy.done(Operation.NEW_ORDER, hostname)

    def questions(self, hostname: str) -> list[Call]:
        """How often, and when, it was asked when to renew."""
        return self.proxy.seen(Operation.RENEWAL_INFO, hostname)


def leaf_of(chain_pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificates(chain_pem.encode())[0]


def name_of(certificate: Mapping[str, Any]) -> str:
    """What a certificate (as it is stored) is called in renewal information and in `replaces`."""
    return renewal_id(leaf_of(certificate["chain_pem"]))


def is_found_by_pebble(certificate: Mapping[str, Any]) -> bool:
    """Whether Pebble finds a certificate by its name.

    Pebble's serial numbers are of 63 bits. Of those whose first byte of eight is zero, some need
    that byte in their name (a DER integer would be negative without), and Pebble 2.10 then answers
    404, or 500 to an order that replaces it: one in 256.
    """
    serial = leaf_of(certificate["chain_pem"]).serial_number
    return serial.bit_length() % 8 != 0


def replaced_by(order: Call) -> str | None:
    """Which certificate an order says that it replaces."""
    assert order.payload is not None
    named: str | None = order.payload.get("replaces")
    return named


@contextmanager
def renewing_ca(
    folder: Path,
    bind: BindPair,
    *,
    validity_seconds: int = NINETY_DAYS_SECONDS,
    settings: Mapping[str, object] | None = None,
) -> Iterator[RenewingCa]:
    """Start one in the new `folder`; `settings` are Pebble's."""
    folder.mkdir()
    validity = {"validity_seconds": validity_seconds}
    with ExitStack() as stack:
        newer = start_newer_pebble(folder, bind.primary, STEADY, settings=settings, **validity)
        pebble = newer or start_pebble(folder, bind.primary, STEADY, settings=settings, **validity)
        stack.callback(pebble.stop)
        proxy = stack.enter_context(AcmeProxy(folder, pebble))
        if newer is None:
            proxy.offer_renewal_info()
        yield RenewingCa(pebble, proxy, newer is not None)


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
