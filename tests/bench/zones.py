"""Puts the records of a stock into the lab's zones, each with the owner marker that proves it.

Into the zones' files, before anything is published: the servers stop and load them. By updates, the
first form of this, a million took half an hour. Reads the zones as well. Called by `stocking`,
`syncs`.
"""

from pathlib import Path

import dns.message
import dns.query
import dns.rdatatype
import dns.xfr
import dns.zone

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.marker import Markers
from gateway.dns.owner import Owner
from gateway.dns.records import A
from tests.bench.stock import APP_ID, TTL, Stock, address, client_id, zone_of
from tests.lab.bind import BindPair, is_authoritative
from tests.lab.lab import Lab
from tests.lab.process import wait_until

_LIMIT_SECONDS = 300.0
"""A million names are read, transferred and answered for by then, on a busy machine too."""


def load_zones(lab: Lab, stock: Stock, markers: Markers) -> None:
    """Have both servers answer for all but the first, which is to be published by a call.

    Nothing may have been published so far. Raises: LabFault.
    """
    bind = lab.bind
    bind.stop()
    for place, zone in enumerate(bind.zones):
        file = lab.folder / "bind" / "primary" / f"{zone}.zone"
        _write(file, stock, range(stock.clients)[place :: len(bind.zones)], markers)
    bind.primary_process.start(lambda: True)
    wait_until(
        lambda: all(is_authoritative(bind.primary, zone) for zone in bind.zones),
        "the primary has all records",
        _LIMIT_SECONDS,
    )
    bind.start_secondary()
    for zone in bind.zones:
        last = next(
            (
                number
                for number in reversed(range(1, stock.holdings))
                if zone_of(stock.client_of(number)) == zone
            ),
            None,
        )
        if last is not None:
            _await_secondary(bind, stock.hostname(last))


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


def _write(file: Path, stock: Stock, clients: range, markers: Markers) -> None:
    text = file.read_text()
    with file.open("w") as zone:
        # The secondary goes by the serial, which is the first number there.
        zone.write(text.replace("hostmaster 1 ", "hostmaster 2 "))
        for client in clients:
            for number in range(client, stock.holdings, stock.clients):
                if number:
                    zone.write(_lines(stock, number, markers))


def _lines(stock: Stock, number: int, markers: Markers) -> str:
    owner, value = owner_of(stock, number), address(number)
    marker = markers.sign(owner, A.name, value)
    return f'{owner.hostname}. {TTL} A {value}\n{owner.hostname}. {TTL} TXT "{marker}"\n'


def _await_secondary(bind: BindPair, hostname: str) -> None:
    question = dns.message.make_query(hostname, dns.rdatatype.A)
    host, port = bind.secondary

    def is_there() -> bool:
        return bool(dns.query.tcp(question, host, _LIMIT_SECONDS, port).answer)

    wait_until(is_there, "the secondary has all records", _LIMIT_SECONDS)
