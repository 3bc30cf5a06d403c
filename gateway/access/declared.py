"""Clients and route claims as a file under version control declares them: reading it. Pure.

    [[clients]]
    id = "cluster-a"
    type = "cloudly"
    patterns = ["relay.*.example.com"]
    allow = ["198.51.100.0/24"]
    capabilities = ["syncDnsRecords", "requestCertificates", "readCertificates"]

    [[claims]]
    hostname = "www.example.com"
    note = "the web team's"

Every value is judged as provisioning judges it, and every fault is told at once with its place.
Called by `gateway clients apply`.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gateway.contract import ClientSpec
from gateway.contract.faults import described, quoted
from gateway.contract.hostnames import hostname_fault, is_gateway_client_hostname

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gateway.contract.names import Hostname

_CLIENT_KEYS: Final = {
    "id": "clientId",
    "type": "clientType",
    "patterns": "hostnamePatterns",
    "allow": "allowedDnsRecordAddresses",
    "capabilities": "capabilities",
}
"""What the file calls the parts of a policy, and what the wire calls them."""

_CLAIM_KEYS: Final = ("hostname", "note")
_TABLES: Final = ("clients", "claims")


@dataclass(frozen=True, slots=True)
class DeclaredClaim:
    """A hostname to be claimed, with the operator's note."""

    hostname: Hostname
    note: str


@dataclass(frozen=True, slots=True)
class Declared:
    """What a file declares; None is what it does not speak of, which is not the same as none."""

    clients: tuple[ClientSpec, ...] | None
    claims: tuple[DeclaredClaim, ...] | None


def read_declared(text: str) -> tuple[Declared, list[str]]:
    """What a file's text declares, and every fault in it, each with its place."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as fault:  # a number of more digits than Python reads, too
        return Declared(None, None), [f"is not TOML: {fault}"]
    faults = _key_faults(tables, _TABLES)
    clients = _Clients(tables.get("clients"))
    claims = _Claims(tables.get("claims"))
    faults += [*clients.faults, *claims.faults]
    return Declared(
        tuple(clients.found) if "clients" in tables else None,
        tuple(claims.found) if "claims" in tables else None,
    ), faults


class _Clients:
    def __init__(self, value: object) -> None:
        self.found: list[ClientSpec] = []
        self.faults: list[str] = []
        places: dict[str, str] = {}
        for place, table in _entries("clients", value, self.faults):
            client_id = table.get("id")
            named = f"{place} ({quoted(client_id)})" if isinstance(client_id, str) else place
            self.faults += [f"{named}: {fault}" for fault in _key_faults(table, _CLIENT_KEYS)]
            wire = {_CLIENT_KEYS[key]: value for key, value in table.items() if key in _CLIENT_KEYS}
            spec, faults = ClientSpec.from_wire(wire)
            self.faults += [f"{named}: {_as_in_file(str(fault))}" for fault in faults]
            if spec is None:
                continue
            if spec.client_id in places:
                self.faults.append(f"{named}: id is that of {places[spec.client_id]} already")
            places.setdefault(spec.client_id, place)
            self.found.append(spec)


class _Claims:
    def __init__(self, value: object) -> None:
        self.found: list[DeclaredClaim] = []
        self.faults: list[str] = []
        places: dict[str, str] = {}
        for place, table in _entries("claims", value, self.faults):
            self.faults += [f"{place}: {fault}" for fault in _key_faults(table, _CLAIM_KEYS)]
            hostname, note = table.get("hostname"), table.get("note", "")
            if type(note) is not str:
                self.faults.append(f"{place}: note must be text, not {described(note)}")
                continue
            if not is_gateway_client_hostname(hostname):
                self.faults.append(f"{place}: hostname {_hostname_fault(hostname)}")
                continue
            if hostname in places:
                self.faults.append(f"{place}: hostname is that of {places[hostname]} already")
            places.setdefault(hostname, place)
            self.found.append(DeclaredClaim(hostname, note))


def _hostname_fault(value: object) -> str:
    return "is missing" if value is None else str(hostname_fault(value))


def _entries(name: str, value: object, faults: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each table of a list of tables, with its place; what is none is a fault."""
    if value is None:
        return
    if not isinstance(value, list):
        faults.append(f"{name} must be a list of tables ([[{name}]]), not {described(value)}")
        return
    for number, entry in enumerate(value):
        if isinstance(entry, dict):
            yield f"{name}[{number}]", entry
        else:
            faults.append(f"{name}[{number}] must be a table, not {described(entry)}")


def _key_faults(table: dict[str, Any], known: dict[str, str] | tuple[str, ...]) -> list[str]:
    unknown = [key for key in table if key not in known]
    return [f"{quoted(key)} is not known here; {_likely(key, known)}" for key in unknown]


def _likely(key: str, known: Collection[str]) -> str:
    """What may be meant by an unknown key: the one that is spelled like it, else any."""
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def _as_in_file(fault: str) -> str:
    """A fault in the words of the file: it begins with the wire's name of the key."""
    for key, wire in _CLIENT_KEYS.items():
        if fault.startswith(wire):
            return key + fault.removeprefix(wire)
    return fault
