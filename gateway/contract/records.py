"""The address record of a client: `{ type, value, ttl? }`.

Responsible for the record as an object and for the rule that joins its fields. Whether a client
may publish it is the business of the allowance. Used by the requests and responses, by the DNS
layer and by clients.
"""

from typing import Annotated, Any, Final, Self

from pydantic import PlainValidator, ValidationInfo

from gateway.contract.addresses import RecordType, address_fault, record_type_of
from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import Fault
from gateway.contract.scalars import choice_fault, whole_number_fault
from gateway.contract.schema import WireModel, exactly, read_request, refusal, violations

_TYPE: Final = "type"
_NEEDED_KEYS: Final = {_TYPE, "value"}
_KEYS: Final = {_TYPE, "value", "ttl"}


def record_type_fault(value: object) -> str | None:
    """What keeps a value from being the type of an address record."""
    return choice_fault(value, BOUNDS.dns_record_types)


def ttl_fault(value: object) -> str | None:
    """What keeps a value from being a TTL, in seconds."""
    return whole_number_fault(value, BOUNDS.min_ttl_seconds, BOUNDS.max_ttl_seconds)


def _address_for_type(value: object, info: ValidationInfo) -> object:
    # `info.data` has no type when that was refused: then the address is judged for itself, so that
    # one fault never hides the other.
    sentence = address_fault(value, info.data.get(_TYPE))
    if sentence is not None:
        raise refusal([Fault("", sentence)])
    return value


class DnsRecord(WireModel):
    """One A or AAAA record; `value` is a canonical unicast address that fits `type`."""

    type: Annotated[RecordType, exactly(record_type_fault)]
    value: Annotated[str, PlainValidator(_address_for_type)]
    ttl: Annotated[int, exactly(ttl_fault, int)] = BOUNDS.default_ttl_seconds

    @classmethod
    def of(cls, address: str, ttl: int = BOUNDS.default_ttl_seconds) -> Self:
        """The record of an address, A or AAAA as it is, with a TTL in seconds.

        Raises `RequestInvalid` with every violation.
        """
        return read_request(cls, {"type": record_type_of(address), "value": address, "ttl": ttl})


def record_in(value: object) -> DnsRecord | None:
    """The record that a JSON value spells in order, judged without pydantic.

    None where there is anything to say against it, which `DnsRecord` does. It takes half of the
    model's time, which was the most of reading a request.
    """
    if type(value) is not dict or not _NEEDED_KEYS <= value.keys() <= _KEYS:
        return None
    type_: Any = value[_TYPE]
    address: Any = value["value"]
    ttl: Any = value.get("ttl", BOUNDS.default_ttl_seconds)
    if record_type_fault(type_) or address_fault(address, type_) or ttl_fault(ttl):
        return None
    return DnsRecord.model_construct(type=type_, value=address, ttl=int(ttl))


def validate_gateway_client_dns_record(value: object, path: str = "record") -> list[str]:
    """Every violation of a record, each beginning with its path; none means that it is valid."""
    return violations(DnsRecord, value, path)
