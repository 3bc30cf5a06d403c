"""What clients may ask: the `request` objects of the methods, without their `apiToken`.

Responsible for the schemas of the client methods and of the reading ones; provisioning has its own
module. Used by the dispatcher (`read_request`) and by clients (`to_wire`). The dispatcher takes the
token out beforehand, so that no model and no violation ever holds one.
"""

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from gateway.contract.faults import Fault
from gateway.contract.ownership import Ownership, StatedOwnership, stated_ownership
from gateway.contract.records import DnsRecord, record_in
from gateway.contract.scalars import flag_fault
from gateway.contract.schema import WireModel, exactly

_ABSENT = object()


class SyncDnsRecordRequest(WireModel):
    """`syncGatewayClientDnsRecord`: publish the record, or withdraw it with `delete`."""

    ownership: Ownership
    record: DnsRecord | None = None
    delete: Annotated[bool, exactly(flag_fault)] = False

    @classmethod
    def rules(cls, wire: dict[str, object]) -> Iterable[Fault]:
        """Exactly one of `record` and `delete: true`, and neither in a form that means nothing."""
        record, delete = wire.get("record", _ABSENT), wire.get("delete", _ABSENT)
        if record is None:
            yield Fault("record", "must be an object or absent, not null")
        if delete is False:
            yield Fault("delete", "must be true or absent, not false")
        if record is not _ABSENT and delete is not _ABSENT:
            yield Fault("record", "must be absent when delete is there: send one of the two")
        if record is _ABSENT and delete is _ABSENT:
            yield Fault("record", "is missing: send either record or delete: true")

    def to_wire(self) -> dict[str, Any]:
        """The object as it goes over the wire, with the one of the two keys that it uses."""
        unused = {"record"} if self.delete else {"delete"}
        return self.model_dump(mode="json", by_alias=True, exclude=unused)


class StatedSync(NamedTuple):
    """A `SyncDnsRecordRequest` that was judged without pydantic; `record` None: to withdraw it."""

    ownership: StatedOwnership
    record: DnsRecord | None


def sync_in(parameters: dict[str, object]) -> StatedSync | None:
    """The request that JSON values spell in order; None where its model has something to say.

    It takes half of the model's time.
    """
    ownership = stated_ownership(parameters.get("ownership"))
    if ownership is None or len(parameters) != 2:
        return None
    if parameters.get("delete") is True:
        return StatedSync(ownership, None)
    record = record_in(parameters.get("record"))
    return None if record is None else StatedSync(ownership, record)


class GetCertificateRequest(WireModel):
    """`getGatewayClientCertificate`: read the certificate, or start and follow its issuance."""

    ownership: Ownership


class ReleaseCertificateRequest(WireModel):
    """`releaseGatewayClientCertificate`: give the certificate up."""

    ownership: Ownership


class EmptyRequest(WireModel):
    """`getGatewayCapabilities` and `getGatewayClientContext`: nothing beside the token."""
