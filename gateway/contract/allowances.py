"""The addresses an operator allows a client to publish.

Responsible for the list of prefixes and for asking whether an address lies in one of them. Knows
nothing of the record's other fields. Used by the access layer (compiled, at every call), by the
provisioning schema and by the record helpers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from gateway.contract.addresses import Prefix, parse_address, parse_prefix, prefix_fault
from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import Fault
from gateway.contract.lists import list_faults
from gateway.contract.records import DnsRecord


@dataclass(frozen=True, slots=True)
class AllowedAddresses:
    """Valid prefixes, made ready to be asked often."""

    _prefixes: tuple[Prefix, ...]

    def allows(self, record: DnsRecord) -> bool:
        """Whether a valid record's address lies in a prefix of its own family."""
        address = parse_address(record.value)
        return address is not None and any(prefix.holds(address) for prefix in self._prefixes)


def compile_allowance(prefixes: Iterable[str]) -> AllowedAddresses:
    """Make valid prefixes ready for `allows`. No prefixes allow nothing."""
    return AllowedAddresses(
        tuple(prefix for text in prefixes if (prefix := parse_prefix(text)) is not None)
    )


def allowance_faults(value: object) -> list[Fault]:
    """Every violation of a list of allowed prefixes; an empty list is valid."""
    return list_faults(
        value,
        prefix_fault,
        of="address prefixes",
        max_entries=BOUNDS.max_allowed_dns_record_addresses,
    )


def validate_gateway_allowed_dns_record_addresses(
    value: object, path: str = "allowedDnsRecordAddresses"
) -> list[str]:
    """Every violation of a list of prefixes, each beginning with its path; none means valid."""
    return [str(fault.under(path)) for fault in allowance_faults(value)]


def is_gateway_client_dns_record_allowed(record: object, allowance: object) -> bool:
    """Whether a record is valid and lies in a valid allowance; false when either is invalid."""
    if not _is_allowance(allowance):
        return False
    parsed, _ = DnsRecord.from_wire(record)
    return parsed is not None and compile_allowance(allowance).allows(parsed)


def _is_allowance(value: object) -> TypeGuard[Sequence[str]]:
    return not allowance_faults(value)
