"""What a client may do: the three capabilities and how they are spelled.

Responsible for the names and for reading a set of them from the wire, where it is a list of names
or an object of booleans; it is always written as a sorted list. Used by the provisioning request
and by the responses that state a policy.
"""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from gateway.contract.faults import Fault, path_text
from gateway.contract.lists import list_faults
from gateway.contract.scalars import choice_fault, flag_fault
from gateway.contract.schema import as_list, exactly_all, plain_object

Capability = Literal["syncDnsRecords", "requestCertificates", "readCertificates"]

CAPABILITIES: Final[tuple[Capability, ...]] = (
    "syncDnsRecords",
    "requestCertificates",
    "readCertificates",
)


def capability_fault(value: object) -> str | None:
    """What keeps a value from being the name of a capability."""
    return choice_fault(value, CAPABILITIES)


def capabilities_faults(value: object) -> list[Fault]:
    """Every violation of a set of capabilities in one of its two forms; it may be empty."""
    if type(value) is frozenset:
        # The form in which models hold them; never on the wire.
        value = list(value)
    if type(value) is not dict:
        return list_faults(value, capability_fault, of="capabilities")
    faults = []
    for key, flag in plain_object(value).items():
        sentence = flag_fault(flag) if key in CAPABILITIES else "is not a capability"
        if sentence is not None:
            faults.append(Fault(path_text([key]), sentence))
    return faults


def read_capabilities(value: Iterable[str] | dict[str, bool]) -> frozenset[str]:
    """The set that a faultless value spells."""
    if isinstance(value, dict):
        return frozenset(name for name, granted in value.items() if granted)
    return frozenset(value)


CapabilitySet = Annotated[
    frozenset[str],
    exactly_all(capabilities_faults, read_capabilities),
    as_list(sorted),
]
"""A set of capabilities as a field of a model: either form is read, the sorted list is written."""
