"""The address to publish: one that is given, an interface's, or what a command prints.

Responsible for: what the three sources are, asking each, and which of an interface's addresses is
taken. An address that comes out of here is canonical and unicast, as the gateway wants it. Must
not: publish, remember, or decide when to look again. Called by `gateway.agent.record_keeper`.

Several addresses of an interface are equally good in the eyes of the kernel, and their order
changes. So the choice is by the addresses themselves: those that the whole internet can reach
before private ones; of these the one that is published already; else the numerically lowest.
Another address that is no better may come and go, and the record stays where it is.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.agent.interfaces import HeldAddress, addresses_of
from gateway.agent.printing import CommandFailed, printed_by
from gateway.contract.addresses import address_fault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.contract import Address, RecordType

_FAMILY = {"A": "IPv4", "AAAA": "IPv6"}
_SHOWN_REASONS = 4


class AddressUnknown(Exception):
    """The source gave no address that can be published; the text is one sentence that says why.

    `mends`: whether waiting may help, as at a machine's start, when its network is not up yet.
    """

    def __init__(self, text: str, *, mends: bool = False) -> None:
        super().__init__(text)
        self.mends = mends


@dataclass(frozen=True, slots=True)
class GivenAddress:
    """The address that the configuration itself has."""

    value: str


@dataclass(frozen=True, slots=True)
class InterfaceAddress:
    """An address of one of this machine's network interfaces."""

    interface: str
    record_type: RecordType


@dataclass(frozen=True, slots=True)
class CommandAddress:
    """What a command prints: one address and nothing else. No shell has a part in it.

    Without `record_type` the printed address decides. `withheld` names variables of the agent's
    environment that hold a secret of its own.
    """

    command: tuple[str, ...]
    timeout_seconds: float
    record_type: RecordType | None
    withheld: tuple[str, ...] = ()


Source = GivenAddress | InterfaceAddress | CommandAddress


async def address(source: Source, published: str | None = None) -> str:
    """The address to publish now, as `DnsRecord.of` takes it.

    `published` is the one that is published already; it is kept while it is as good as any other.
    May be repeated; a command runs each time.

    Raises:
        AddressUnknown: there is none at the moment, in one sentence.

    """
    if isinstance(source, GivenAddress):
        return source.value
    if isinstance(source, InterfaceAddress):
        return _of_interface(source, published)
    return await _of_command(source)


def choose(candidates: Iterable[Address], published: str | None) -> Address | None:
    """The one of several good addresses that is published; None without any. Pure."""

    def rank(candidate: Address) -> tuple[bool, bool, int]:
        is_private = not ipaddress.ip_address(str(candidate)).is_global
        return is_private, str(candidate) != published, candidate.number

    return min(candidates, key=rank, default=None)


def publishable(
    found: Iterable[HeldAddress], record_type: RecordType
) -> tuple[list[Address], list[str]]:
    """What of an interface's addresses can be published, and why the others cannot. Pure."""
    good, reasons = [], []
    for each in found:
        if each.address.record_type != record_type:
            continue
        reason = each.passing or _not_unicast(str(each.address))
        if reason is None:
            good.append(each.address)
        else:
            reasons.append(f"{each.address} is {reason}")
    return good, reasons


def _not_unicast(text: str) -> str | None:
    if address_fault(text) is None:
        return None
    read = ipaddress.ip_address(text)
    if read.is_link_local:
        return "link-local"
    return "a loopback address" if read.is_loopback else "not unicast"


def _of_interface(source: InterfaceAddress, published: str | None) -> str:
    name, family = source.interface, _FAMILY[source.record_type]
    try:
        found = addresses_of(name)
    except OSError as fault:
        raise AddressUnknown(
            f"the addresses of the interface {name} cannot be read: {fault.strerror or fault}"
        ) from None
    if found is None:
        raise AddressUnknown(
            f"this machine has no network interface {name} with an address", mends=True
        )
    good, reasons = publishable(found, source.record_type)
    chosen = choose(good, published)
    if chosen is None:
        why = f": {_listed(reasons)}" if reasons else ""
        raise AddressUnknown(
            f"the interface {name} has no {family} address that can be published{why}", mends=True
        )
    return str(chosen)


def _listed(reasons: list[str]) -> str:
    more = len(reasons) - _SHOWN_REASONS
    return ", ".join(reasons[:_SHOWN_REASONS]) + (f" and {more} more" if more > 0 else "")


async def _of_command(source: CommandAddress) -> str:
    shown = source.command[0]  # its arguments may hold a secret
    try:
        printed = await printed_by(source.command, source.timeout_seconds, source.withheld)
    except CommandFailed as failed:
        raise AddressUnknown(f"the command {shown} {failed}", mends=failed.mends) from None
    if not printed:
        raise AddressUnknown(f"the command {shown} printed nothing, and must print an address")
    fault = address_fault(printed, source.record_type)
    if fault is not None:
        raise AddressUnknown(f"what the command {shown} printed {fault}")
    return printed
