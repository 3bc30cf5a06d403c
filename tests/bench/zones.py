"""Puts the records of a stock into the lab's zones, each with the owner marker that proves it.

By updates as large as a message may be, signed with the gateway's key. The zones are the
lab's own and new, so what is there is not looked at before. Called by `stocking`, `syncs`.
"""

import socket

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.update
import dns.xfr
import dns.zone

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.marker import Markers
from gateway.dns.owner import Owner
from gateway.dns.records import A, address_rdata, txt_rdata
from tests.bench.stock import APP_ID, TTL, Stock, address, client_id, zone_of
from tests.lab.bind import BindPair
from tests.lab.process import LabFault, wait_until

_NAMES_AT_ONCE = 400
"""In one UPDATE: about 45 of the 64 KiB that a message may have."""

_LIMIT_SECONDS = 60.0


def fill_zones(bind: BindPair, stock: Stock, markers: Markers) -> None:
    """Put in all but the first, which was published by a call; wait until the secondary has them.

    Raises: LabFault.
    """
    for zone in bind.zones:
        numbers = [
            number
            for number in range(1, stock.holdings)
            if zone_of(stock.client_of(number)) == zone
        ]
        with socket.create_connection(bind.primary, _LIMIT_SECONDS) as connection:
            for start in range(0, len(numbers), _NAMES_AT_ONCE):
                update = dns.update.UpdateMessage(zone, keyring=bind.tsig.key())
                for number in numbers[start : start + _NAMES_AT_ONCE]:
                    _add(update, stock, number, markers)
                _send(bind, connection, update)
        _await_secondary(bind, stock.hostname(numbers[-1]))


def published(bind: BindPair) -> dict[str, tuple[tuple[str, ...], int]]:
    """What the primary has at each name with an address: the addresses, and how many TXT values."""
    host, port = bind.primary
    seen = {}
    for zone in bind.zones:
        transfer = dns.zone.Zone(zone)
        question, _ = dns.xfr.make_query(transfer, keyring=bind.tsig.key())
        dns.query.inbound_xfr(host, transfer, question, port=port, lifetime=_LIMIT_SECONDS)
        for name in transfer:
            values = transfer.get_rdataset(name, dns.rdatatype.A)
            if values is not None:
                markers = transfer.get_rdataset(name, dns.rdatatype.TXT) or ()
                hostname = name.derelativize(transfer.origin).to_text(omit_final_dot=True)
                seen[hostname] = (tuple(each.address for each in values), len(markers))
    return seen


def owner_of(stock: Stock, number: int) -> Owner:
    """The ownership of the holding of this number."""
    holder = ClientId(client_id(stock.client_of(number)))
    return Owner(holder, AppId(APP_ID), Hostname(stock.hostname(number)))


def _add(update: dns.update.UpdateMessage, stock: Stock, number: int, markers: Markers) -> None:
    owner = owner_of(stock, number)
    name = dns.name.from_text(owner.hostname)
    update.add(name, TTL, address_rdata(A.name, address(number)))
    update.add(name, TTL, txt_rdata(markers.sign(owner, A.name, address(number))))


def _send(bind: BindPair, connection: socket.socket, update: dns.update.UpdateMessage) -> None:
    host, port = bind.primary
    answer = dns.query.tcp(update, host, _LIMIT_SECONDS, port, sock=connection)
    if answer.rcode() != dns.rcode.NOERROR:
        raise LabFault(f"the primary refuses records: {dns.rcode.to_text(answer.rcode())}")


def _await_secondary(bind: BindPair, hostname: str) -> None:
    question = dns.message.make_query(hostname, dns.rdatatype.A)
    host, port = bind.secondary

    def is_there() -> bool:
        return bool(dns.query.tcp(question, host, _LIMIT_SECONDS, port).answer)

    wait_until(is_there, "the secondary has all records", _LIMIT_SECONDS)
