"""A client's policy as a form has it: what was typed, what is wrong with it, what it would change.

Pure. Judges nothing itself: the contract does, as for an admin's call, and its faults are brought
to the field and the line that they are about. Called by `policies`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gateway.access.clients import with_policy
from gateway.access.declared import Declared
from gateway.access.difference import difference
from gateway.contract import CAPABILITIES, ClientSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.access.clients import Client
    from gateway.access.difference import Detail
    from gateway.contract.faults import Fault

_FIELDS: Final = {
    "clientId": "client_id",
    "clientType": "client_type",
    "hostnamePatterns": "patterns",
    "allowedDnsRecordAddresses": "prefixes",
    "capabilities": "capabilities",
}
"""The form's names of the fields, by the wire's."""

_PATH: Final = re.compile(r"(\w+)(?:\[(\d+)\])?.*")


@dataclass(frozen=True, slots=True)
class Typed:
    """What the fields hold: patterns and prefixes are lines, capabilities what is ticked."""

    client_id: str = ""
    client_type: str = ""
    patterns: str = ""
    prefixes: str = ""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """The policy that was typed, or what is wrong with each field, a sentence each."""

    spec: ClientSpec | None
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)


def typed_as(policy: Client | ClientSpec) -> Typed:
    """A policy as the form has it: a client's before anybody types, or one that was typed."""
    return Typed(
        policy.client_id,
        policy.client_type,
        "\n".join(policy.hostname_patterns),
        "\n".join(policy.allowed_dns_record_addresses),
        tuple(sorted(policy.capabilities)),
    )


def judged(typed: Typed) -> Judged:
    """Read what was typed; white space around a line and empty lines mean nothing."""
    patterns, prefixes = _lines(typed.patterns), _lines(typed.prefixes)
    wire = {
        "clientId": typed.client_id.strip(),
        "clientType": typed.client_type.strip(),
        "hostnamePatterns": [text for _, text in patterns],
        "allowedDnsRecordAddresses": [text for _, text in prefixes],
        "capabilities": list(typed.capabilities),
    }
    spec, faults = ClientSpec.from_wire(wire)
    numbers = {"patterns": patterns, "prefixes": prefixes}
    told: dict[str, list[str]] = {}
    for fault in faults:
        name, sentence = _told(fault, numbers)
        told.setdefault(name, []).append(sentence)
    return Judged(spec, told)


def would_change(spec: ClientSpec, client: Client | None) -> bool:
    """Whether the client would be made, or have another policy."""
    return client is None or with_policy(client, spec) != client


def details(spec: ClientSpec, client: Client | None) -> tuple[Detail, ...]:
    """What each field gains and loses; nothing where only the order of entries differs."""
    declared = Declared(clients=(spec,), claims=None)
    steps = difference(declared, [] if client is None else [client], {}, {}, prune=False).clients
    return steps[0].details if steps else ()


def ticked(values: Sequence[str]) -> tuple[str, ...]:
    """The capabilities that are ticked, each once, in the contract's order."""
    return tuple(name for name in CAPABILITIES if name in values)


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines that say something, with their numbers from 1."""
    stripped = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in stripped if line]


def _told(fault: Fault, numbers: Mapping[str, Sequence[tuple[int, str]]]) -> tuple[str, str]:
    """The field that a fault is about, and its sentence; the line first, where there are lines."""
    found = _PATH.fullmatch(fault.path)
    wire, place = (fault.path, None) if found is None else found.groups()
    name = _FIELDS.get(wire, "client_id")
    sentence = fault.sentence[:1].upper() + fault.sentence[1:]
    if place is None or name not in numbers:
        return name, f"{sentence}."
    number, _ = numbers[name][int(place)]
    return name, f"Line {number} {fault.sentence}."
