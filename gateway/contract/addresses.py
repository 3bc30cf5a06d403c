"""Internet addresses and address prefixes: their one spelling, and which of them are unicast.

Responsible for reading address text into numbers, for the RFC 5952 form of IPv6 and for the ranges
that no record may point to. Knows nothing of records or policies. Used by the record schema, the
allowance and whoever compares addresses by value.

IPv6 text is parsed by the standard library, but written here: what `ipaddress` prints for
IPv4-mapped addresses and what it accepts (zone ids) depends on the Python version.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, Literal

from gateway.contract.faults import described, quoted

RecordType = Literal["A", "AAAA"]

_FAMILY: Final[dict[RecordType, str]] = {"A": "IPv4", "AAAA": "IPv6"}
_BITS: Final[dict[RecordType, int]] = {"A": 32, "AAAA": 128}

_MAX_TEXT: Final = 64
_PADDED_IPV4: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_IPV6_LIKE: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_LENGTH: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Address:
    """An address as a number of 32 bits (A) or 128 bits (AAAA)."""

    record_type: RecordType
    number: int

    def __str__(self) -> str:
        return _ipv4_text(self.number) if self.record_type == "A" else _ipv6_text(self.number)


@dataclass(frozen=True, slots=True)
class Prefix:
    """All addresses of one family whose first `length` bits are those of `number`."""

    record_type: RecordType
    number: int
    length: int

    def holds(self, address: Address) -> bool:
        """Whether the address lies in this prefix; never true across families."""
        free_bits = _BITS[self.record_type] - self.length
        return (
            address.record_type == self.record_type
            and address.number >> free_bits == self.number >> free_bits
        )

    def __str__(self) -> str:
        return f"{Address(self.record_type, self.number)}/{self.length}"


# The first range that holds an address names it, so the single addresses stand before their ranges.
_NOT_UNICAST_IPV4: Final = (
    (Prefix("A", 0x00000000, 32), "unspecified"),
    (Prefix("A", 0x00000000, 8), 'part of 0.0.0.0/8 ("this network")'),
    (Prefix("A", 0x7F000000, 8), "a loopback address"),
    (Prefix("A", 0xA9FE0000, 16), "link-local"),
    (Prefix("A", 0xE0000000, 4), "multicast"),
    (Prefix("A", 0xFFFFFFFF, 32), "the broadcast address"),
    (Prefix("A", 0xF0000000, 4), "part of 240.0.0.0/4 (reserved)"),
)
_NOT_UNICAST_IPV6: Final = (
    (Prefix("AAAA", 0, 128), "unspecified"),
    (Prefix("AAAA", 1, 128), "the loopback address"),
    (Prefix("AAAA", 0, 96), "IPv4-compatible"),
    (Prefix("AAAA", 0xFFFF << 32, 96), "IPv4-mapped"),
    (Prefix("AAAA", 0xFE80 << 112, 10), "link-local"),
    (Prefix("AAAA", 0xFF00 << 112, 8), "multicast"),
)
_NOT_UNICAST: Final = {"A": _NOT_UNICAST_IPV4, "AAAA": _NOT_UNICAST_IPV6}
_IPV4_INSIDE_IPV6: Final = (Prefix("AAAA", 0, 96), Prefix("AAAA", 0xFFFF << 32, 96))


def parse_address(text: str) -> Address | None:
    """The address that this text spells canonically; None for every other text."""
    address = _read(text)
    return address if address is not None and str(address) == text else None


def parse_prefix(text: str) -> Prefix | None:
    """The prefix that this text spells canonically and acceptably; None for every other text."""
    return _judged_prefix(text)[0]


def address_fault(value: object, record_type: RecordType | None = None) -> str | None:
    """What keeps a value from being a unicast address, of the type's family where one is given."""
    wanted = f"an {_FAMILY[record_type]} address" if record_type else "an IPv4 or IPv6 address"
    if type(value) is not str:
        return f"must be {wanted} as text, not {described(value)}"
    address = _read(value)
    if address is None:
        return f"must be {wanted}{_hint(value)}, not {quoted(value)}"
    if record_type and address.record_type != record_type:
        return f"must be {wanted} to fit the type {record_type}, not {quoted(value)}"
    for span, name in _NOT_UNICAST[address.record_type]:
        if span.holds(address):
            return f"must be a unicast address, and {quoted(value)} is {name}"
    return None if str(address) == value else _misspelled(address, value)


def record_type_of(address: str) -> RecordType:
    """The type of the record that an address goes into; nothing is judged."""
    return "AAAA" if ":" in address else "A"


def first_unicast(prefix: Prefix) -> Address | None:
    """The lowest unicast address in a prefix but for its network address; None without one."""
    number = prefix.number + (prefix.length < _BITS[prefix.record_type])
    while prefix.holds(address := Address(prefix.record_type, number)):
        spans = (span for span, _ in _NOT_UNICAST[prefix.record_type])
        span = next((span for span in spans if span.holds(address)), None)
        if span is None:
            return address
        number = span.number + (1 << _BITS[span.record_type] - span.length)
    return None


def prefix_fault(value: object) -> str | None:
    """What keeps a value from being an address prefix that an allowance may hold."""
    if type(value) is not str:
        return f"must be an address prefix as text, not {described(value)}"
    return _judged_prefix(value)[1]


def is_gateway_address_prefix(value: object) -> bool:
    """Whether any value is a canonical address prefix (`address/length`, host bits zero)."""
    return prefix_fault(value) is None


def _judged_prefix(text: str) -> tuple[Prefix | None, str | None]:
    address_text, _, length_text = text[:_MAX_TEXT].partition("/")
    address = _read(address_text)
    if address is None or len(text) > _MAX_TEXT:
        return None, f"must be an address, a slash and a length, not {quoted(text)}"
    bits = _BITS[address.record_type]
    if not _LENGTH.fullmatch(length_text) or int(length_text) > bits:
        return None, f"must end with a slash and a length from 0 to {bits}, not {quoted(text)}"
    length = int(length_text)
    if length >= 96 and any(span.holds(address) for span in _IPV4_INSIDE_IPV6):
        return None, f"must not lie inside ::/96 or ::ffff:0:0/96, as {quoted(text)} does"
    network = address.number >> (bits - length) << (bits - length)
    prefix = Prefix(address.record_type, network, length)
    if network != address.number:
        return None, f'must have no host bits set: "{prefix}", not {quoted(text)}'
    return (prefix, None) if str(prefix) == text else (None, _misspelled(prefix, text))


def _misspelled(canonical: Address | Prefix, text: str) -> str:
    return f'must be spelled "{canonical}", not {quoted(text)}'


def _hint(text: str) -> str:
    if "%" in text:
        return " without a zone id"
    return " without a prefix length" if "/" in text else ""


def _read(text: str) -> Address | None:
    """The address meant by a text in any common spelling, so that the right one can be named."""
    if _PADDED_IPV4.fullmatch(text):
        a, b, c, d = map(int, text.split("."))
        number = a << 24 | b << 16 | c << 8 | d
        return Address("A", number) if max(a, b, c, d) <= 255 else None
    if not _IPV6_LIKE.fullmatch(text):
        return None
    try:
        return Address("AAAA", int(ipaddress.IPv6Address(text)))
    except ValueError:
        return None


def _ipv4_text(number: int) -> str:
    return f"{number >> 24}.{number >> 16 & 0xFF}.{number >> 8 & 0xFF}.{number & 0xFF}"


def _ipv6_text(number: int) -> str:
    """RFC 5952 section 4, without the dotted form that its section 5 allows."""
    groups = [number >> shift & 0xFFFF for shift in range(112, -1, -16)]
    start, count = _longest_zero_run(groups)
    if count < 2:
        return ":".join(f"{group:x}" for group in groups)
    before = ":".join(f"{group:x}" for group in groups[:start])
    after = ":".join(f"{group:x}" for group in groups[start + count :])
    return f"{before}::{after}"


def _longest_zero_run(groups: list[int]) -> tuple[int, int]:
    """Start and length of the longest run of zero groups, the first among equals."""
    best_start, best_count, count = 0, 0, 0
    for index, group in enumerate(groups):
        count = count + 1 if group == 0 else 0
        if count > best_count:
            best_start, best_count = index - count + 1, count
    return best_start, best_count
