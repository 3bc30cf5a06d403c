"""What is left behind, from first hand: Pebble's log and objects, the zones, Redis and its log.

Responsible for: saying what is there. Reads with the gateway's own parts where a secret is needed:
the account key lies sealed in Redis, and the CA shows orders to their account only.
Must not: change anything.
Called by: the tests of this package.
"""

import asyncio
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import dns.query
import dns.xfr
import dns.zone
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.certificates.authority import Authority
from gateway.certificates.orders import AuthorityFault, FaultKind
from gateway.config import load_settings
from gateway.contract.names import Hostname
from gateway.store.connection import Store
from gateway.store.documents import Document, Documents
from gateway.wiring import open_gateway
from tests.lab.lab import Lab

_TRANSFER_LIMIT_SECONDS = 10.0
_ADDED_ORDER = re.compile(r'Added order "([^"]+)" to the db')
_ADDED_ACCOUNT = re.compile(r"There are now \d+ accounts in memory")
_STORED_ORDER = re.compile(rb'"order_url":"([^"]+)"')


@dataclass(frozen=True)
class Order:
    """An order that Pebble took, as the account sees it now."""

    url: str
    hostname: str
    status: str
    authorization_status: str


def public_key(signed: str | x509.CertificateSigningRequest) -> bytes:
    """The public key of a certificate request, or of the leaf of a PEM chain, to compare."""
    if isinstance(signed, str):
        key = x509.load_pem_x509_certificates(signed.encode())[0].public_key()
    else:
        key = signed.public_key()
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


class Evidence:
    """Everything there is to see in one lab."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._hostname_of_order: dict[str, str] = {}

    def orders(self, hostnames: Collection[str], *, besides: Collection[Order] = ()) -> list[Order]:
        """Every order that Pebble ever took for these hostnames, oldest first.

        Pebble's log names each once, when it is added; a request that it rejected is not there.
        Orders that are known to be other hostnames', and those `besides`, are not read again:
        Pebble (2.4.0 to 2.9.0 at least) never answers for an authorization again whose challenge is
        answered after it was deactivated, since showing it leaves its challenges locked.
        """
        log = self._lab.pebble.process.log_file.read_text()
        base = self._lab.pebble.directory_url.removesuffix("/dir")
        urls = [f"{base}/my-order/{order_id}" for order_id in _ADDED_ORDER.findall(log)]
        left_out = {order.url for order in besides}
        known = self._hostname_of_order
        wanted = [url for url in urls if url not in known or known[url] in hostnames]
        orders = asyncio.run(self._read_orders([url for url in wanted if url not in left_out]))
        known |= {order.url: order.hostname for order in orders}
        return [order for order in orders if order.hostname in hostnames]

    def counts(self) -> tuple[int, int]:
        """How many accounts and orders Pebble has made so far."""
        log = self._lab.pebble.process.log_file.read_text()
        return len(_ADDED_ACCOUNT.findall(log)), len(_ADDED_ORDER.findall(log))

    def stored_order_urls(self) -> set[str]:
        """The order URLs that any gateway ever stored.

        The append-only files of its Redis, synced at every write, have all that was ever written,
        also what was deleted since, and what a primary took that was then killed. (A replica's
        begins with a snapshot that hides what is in it, but its primary's has the same.)
        """
        folders = [folder / "appendonlydir" for folder in self._lab.redis.data_folders]
        files = [file for folder in folders for file in folder.glob("*.aof")]
        return {url.decode() for file in files for url in _STORED_ORDER.findall(file.read_bytes())}

    def challenge_names(self) -> set[str]:
        """The names of all challenge records in the primary's zones."""
        return {
            f"{name}.{zone}"
            for zone in self._lab.bind.zones
            for name in self._names_in(zone)
            if name.startswith("_acme-challenge.")
        }

    def documents(self, hostnames: Iterable[str]) -> dict[str, Document]:
        """What Redis holds about hostnames."""
        return asyncio.run(self._read_documents([Hostname(name) for name in hostnames]))

    async def _read_orders(self, urls: list[str]) -> list[Order]:
        settings = load_settings(self._lab.config.config_file, {})
        async with open_gateway(settings) as gateway:
            authority = gateway.authorities.at(self._lab.pebble.directory_url).authority
            return [await _read_order(authority, url) for url in urls]

    async def _read_documents(self, hostnames: list[Hostname]) -> dict[str, Document]:
        store = Store(self._lab.redis.url)
        try:
            documents = Documents(store)
            return {hostname: await documents.read(hostname) for hostname in hostnames}
        finally:
            await store.close()

    def _names_in(self, zone_name: str) -> list[str]:
        key = self._lab.bind.tsig.key()
        zone = dns.zone.Zone(zone_name)
        query, _ = dns.xfr.make_query(zone, keyring=key, keyalgorithm=key.algorithm)
        host, port = self._lab.bind.primary
        dns.query.inbound_xfr(host, zone, query, port=port, lifetime=_TRANSFER_LIMIT_SECONDS)
        return [name.to_text() for name in zone]


async def _read_order(authority: Authority, url: str) -> Order:
    try:
        order = await authority.read_order(url)
    except AuthorityFault as fault:
        if fault.kind is not FaultKind.GONE:
            raise
        return Order(url, hostname="", status="another account's", authorization_status="")
    authorization = await authority.read_authorization(order.authorization_urls[0])
    return Order(url, authorization.hostname, order.status, authorization.status)
