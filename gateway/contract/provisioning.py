"""`provisionGatewayClientCredential`: the request by which an operator sets up clients.

Responsible for the one request whose schema depends on its `action`, and for a client's policy as
an object. Used by the dispatcher (`read_request`), by the responses that state a policy and by the
command line (`to_wire`).
"""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, Self

from gateway.contract.allowances import allowance_faults
from gateway.contract.capabilities import Capability, CapabilitySet
from gateway.contract.faults import Fault
from gateway.contract.identifiers import client_id_fault, client_type_fault
from gateway.contract.names import ClientId
from gateway.contract.patterns import hostname_patterns_faults
from gateway.contract.scalars import choice_fault, flag_fault, whole_number_fault
from gateway.contract.schema import (
    WireModel,
    as_list,
    exactly,
    exactly_all,
    plain_object,
    read_request,
)

ProvisionAction = Literal["ensure", "rotate", "revoke", "remove"]

PROVISION_ACTIONS: Final[tuple[ProvisionAction, ...]] = ("ensure", "rotate", "revoke", "remove")
MAX_OVERLAP_SECONDS: Final = 30 * 86_400

_NEEDED_BY_ENSURE: Final = ("clientType", "hostnamePatterns", "capabilities")
_OPTIONS: Final = (("overlapSeconds", "rotate"), ("releaseHoldings", "remove"))


def action_fault(value: object) -> str | None:
    """What keeps a value from being a provisioning action."""
    return choice_fault(value, PROVISION_ACTIONS)


def overlap_fault(value: object) -> str | None:
    """What keeps a value from being the seconds that a rotated credential lives on."""
    return whole_number_fault(value, 0, MAX_OVERLAP_SECONDS)


ClientIdField = Annotated[ClientId, exactly(client_id_fault)]
ClientTypeField = Annotated[str, exactly(client_type_fault)]
HostnamePatternsField = Annotated[
    tuple[str, ...], exactly_all(hostname_patterns_faults, tuple), as_list()
]
AllowanceField = Annotated[tuple[str, ...], exactly_all(allowance_faults, tuple), as_list()]
_Action = Annotated[ProvisionAction, exactly(action_fault)]
_OverlapSeconds = Annotated[int, exactly(overlap_fault, int)]
_Flag = Annotated[bool, exactly(flag_fault)]


class ClientSpec(WireModel):
    """A client and its whole policy, as an operator wants it to be."""

    client_id: ClientIdField
    client_type: ClientTypeField
    hostname_patterns: HostnamePatternsField
    allowed_dns_record_addresses: AllowanceField = ()
    capabilities: CapabilitySet

    @classmethod
    def of(
        cls,
        client_id: str,
        client_type: str,
        *,
        hostname_patterns: Iterable[str],
        allowed_dns_record_addresses: Iterable[str] = (),
        capabilities: Iterable[Capability],
    ) -> Self:
        """The spec of these values; raises `RequestInvalid` with every violation."""
        wire = {
            "clientId": client_id,
            "clientType": client_type,
            "hostnamePatterns": list(hostname_patterns),
            "allowedDnsRecordAddresses": list(allowed_dns_record_addresses),
            "capabilities": list(capabilities),
        }
        return read_request(cls, wire)


class _AnySpec(WireModel):
    """What may stand in `spec` for some action; which of it must stand there, `rules` says."""

    client_id: ClientIdField
    client_type: ClientTypeField = ""
    hostname_patterns: HostnamePatternsField = ()
    allowed_dns_record_addresses: AllowanceField = ()
    capabilities: CapabilitySet = frozenset()
    overlap_seconds: _OverlapSeconds = 0
    release_holdings: _Flag = False


class _ProvisionOnTheWire(WireModel):
    action: _Action
    spec: _AnySpec
    overlap_seconds: _OverlapSeconds = 0
    release_holdings: _Flag = False

    @classmethod
    def rules(cls, wire: dict[str, object]) -> Iterable[Fault]:
        """What the action needs, and what only another action takes."""
        action = wire.get("action")
        # Only a known word is compared: the value may still be anything.
        known = action if action_fault(action) is None else None
        entry = wire.get("spec")
        spec = plain_object(entry) if type(entry) is dict else {}
        if known == "ensure" and type(entry) is dict:
            for key in _NEEDED_BY_ENSURE:
                if key not in spec:
                    yield Fault(f"spec.{key}", "is missing: ensure takes the whole policy")
        for option, owner in _OPTIONS:
            places = [option] if option in wire else []
            places += [f"spec.{option}"] if option in spec else []
            if len(places) > 1:
                yield Fault(places[1], f"must be absent when {option} stands beside action")
            if known is not None and known != owner:
                for place in places:
                    yield Fault(place, f"must be absent: only the action {owner} takes it")


class ProvisionRequest(WireModel):
    """An operator's request, with the options of its action in one place.

    `spec` is there for `ensure` only: the other actions name the client and change no policy.
    """

    action: _Action
    client_id: ClientIdField
    spec: ClientSpec | None = None
    overlap_seconds: _OverlapSeconds = 0
    release_holdings: _Flag = False

    @classmethod
    def from_wire(cls, value: object) -> tuple[Self | None, list[Fault]]:
        """The request that a value of the wire spells, or None and every violation of it."""
        parsed, faults = _ProvisionOnTheWire.from_wire(value)
        if parsed is None:
            return None, faults
        given = parsed.spec
        spec = (
            ClientSpec(
                client_id=given.client_id,
                client_type=given.client_type,
                hostname_patterns=given.hostname_patterns,
                allowed_dns_record_addresses=given.allowed_dns_record_addresses,
                capabilities=given.capabilities,
            )
            if parsed.action == "ensure"
            else None
        )
        request = cls(
            action=parsed.action,
            client_id=given.client_id,
            spec=spec,
            overlap_seconds=parsed.overlap_seconds or given.overlap_seconds,
            release_holdings=parsed.release_holdings or given.release_holdings,
        )
        return request, []

    def to_wire(self) -> dict[str, Any]:
        """The object as it goes over the wire: options beside `action`, and only its own."""
        spec = {"clientId": self.client_id} if self.spec is None else self.spec.to_wire()
        wire: dict[str, Any] = {"action": self.action, "spec": spec}
        if self.action == "rotate":
            wire["overlapSeconds"] = self.overlap_seconds
        if self.action == "remove":
            wire["releaseHoldings"] = self.release_holdings
        return wire
