"""What the gateway answers: the `response` objects of the methods.

Responsible for their shapes and for the words that `status` and `reason` may be. Decides nothing.
Built by the layers that carry a call out, rendered by the HTTP layer through `to_wire`.

All times are epoch milliseconds, all waits milliseconds. Keys without a value are sent as null.
"""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from gateway.contract.capabilities import CapabilitySet
from gateway.contract.envelope import Written, json_bytes
from gateway.contract.hostnames import hostname_fault
from gateway.contract.names import CredentialId, Hostname
from gateway.contract.provisioning import (
    AllowanceField,
    ClientIdField,
    ClientTypeField,
    HostnamePatternsField,
)
from gateway.contract.records import DnsRecord
from gateway.contract.schema import WireModel, exactly

SyncStatus = Literal[
    "managed-created",
    "managed-updated",
    "managed-unchanged",
    "managed-deleted",
    "target-invalid",
    "record-conflict",
    "zone-unavailable",
    "mutation-failed",
]
PUBLISHED: Final[frozenset[SyncStatus]] = frozenset(
    {"managed-created", "managed-updated", "managed-unchanged"}
)
"""The statuses that say the zone holds the record that was sent."""

RefusalReason = Literal[
    "hostname-conflict",
    "zone-unavailable",
    "authority-refused",
    "rate-limited",
    "issuance-failed",
    "authority-unavailable",
]

# The end of the year 9999: no certificate and none of Python's dates goes further.
MAX_MILLISECONDS: Final = 253_402_300_799_999


def _encodable(value: object) -> object:
    # Some sentences quote other servers, whose text may hold what UTF-8 cannot.
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_encodable)]
Milliseconds = Annotated[int, Field(ge=0, le=MAX_MILLISECONDS)]
HostnameField = Annotated[Hostname, exactly(hostname_fault)]


class ConflictingRecord(WireModel):
    """A DNS record found at a name, of any type, its value in presentation form."""

    name: Text
    type: Text
    value: Text
    ttl: Annotated[int, Field(ge=0)]


class SyncDnsRecordResponse(WireModel):
    """What the zone holds for the ownership now, and what became of the request."""

    status: SyncStatus
    hostname: HostnameField
    record: DnsRecord | None = None
    # A list is taken as well, so that clients can read an answer with this model.
    conflicting_records: Annotated[tuple[ConflictingRecord, ...], Field(strict=False)] = ()
    retry_after_ms: Milliseconds | None = None
    message: Text


class Certificate(WireModel):
    """A certificate with its private key; PEM, leaf first, the key as PKCS#8."""

    hostname: HostnameField
    chain_pem: str
    private_key_pem: str = Field(repr=False)
    valid_from: Milliseconds
    valid_until: Milliseconds
    renew_after: Milliseconds


class CertificateReady(WireModel):
    """The certificate is there and valid."""

    status: Literal["ready"] = "ready"
    certificate: Certificate


@dataclass(frozen=True, slots=True)
class ReadyFrame:
    """What a `CertificateReady` says as JSON, but for its key: what stands before it and after.

    Made once of what was judged when it was stored, and written with the key any number of times:
    to make the model and write that took twenty times as long.
    """

    before_key: bytes
    after_key: bytes

    @classmethod
    def of(
        cls,
        hostname: Hostname,
        chain_pem: str,
        *,
        valid_from: int,
        valid_until: int,
        renew_after: int,
    ) -> "ReadyFrame":
        """The frame of these values, as `Certificate` has them."""
        before = b'{"status":"ready","certificate":{"hostname":%b,"chainPem":%b,"privateKeyPem":'
        after = b',"validFrom":%d,"validUntil":%d,"renewAfter":%d}}'
        return cls(
            before % (json_bytes(hostname), json_bytes(chain_pem)),
            after % (valid_from, valid_until, renew_after),
        )


@dataclass(frozen=True, slots=True)
class HandedOut:
    """A `CertificateReady` that is written without being made."""

    frame: ReadyFrame
    private_key_pem: str = field(repr=False)

    def written(self) -> Written:
        """As `CertificateReady` is written."""
        frame, key = self.frame, json_bytes(self.private_key_pem)
        return Written("ready", b"%b%b%b" % (frame.before_key, key, frame.after_key))

    def to_wire(self) -> dict[str, Any]:
        """As `CertificateReady` goes over the wire."""
        wire: dict[str, Any] = json.loads(self.written().body)
        return wire


class CertificatePending(WireModel):
    """An issuance runs; ask again after the wait."""

    status: Literal["pending"] = "pending"
    retry_after_ms: Milliseconds


class CertificateRefused(WireModel):
    """There is no certificate and none on its way; `retry_after_ms` is None if asking is no use."""

    status: Literal["refused"] = "refused"
    reason: RefusalReason
    message: Text
    retry_after_ms: Milliseconds | None = None


GetCertificateResponse = CertificateReady | CertificatePending | CertificateRefused


class ReleaseResponse(WireModel):
    """Whether there was anything to release."""

    status: Literal["released", "unchanged"]


class DnsCapabilities(WireModel):
    """What the gateway can do in DNS."""

    client_records: bool


class CertificateCapabilities(WireModel):
    """What the gateway can do for certificates."""

    exact_issuance: bool


class GatewayCapabilities(WireModel):
    """What this gateway is configured to do, whoever asks."""

    dns: DnsCapabilities
    certificates: CertificateCapabilities


class CapabilitiesResponse(WireModel):
    """The answer of `getGatewayCapabilities`."""

    capabilities: GatewayCapabilities

    @classmethod
    def of(cls, *, client_records: bool, exact_issuance: bool) -> "CapabilitiesResponse":
        """The answer for these two facilities."""
        return cls(
            capabilities=GatewayCapabilities(
                dns=DnsCapabilities(client_records=client_records),
                certificates=CertificateCapabilities(exact_issuance=exact_issuance),
            )
        )


class ClientView(WireModel):
    """A client and its live policy."""

    client_id: ClientIdField
    client_type: ClientTypeField
    policy_generation: Annotated[int, Field(ge=1)]
    hostname_patterns: HostnamePatternsField
    allowed_dns_record_addresses: AllowanceField
    capabilities: CapabilitySet


class ClientContext(ClientView):
    """Who a gateway-client credential belongs to."""

    role: Literal["gatewayClient"] = "gatewayClient"
    credential_id: CredentialId


class AdminContext(WireModel):
    """The caller is the operator."""

    role: Literal["admin"] = "admin"


class ContextResponse(WireModel):
    """The answer of `getGatewayClientContext`."""

    # By its role, which an answer must have: the default is for those who make one.
    context: Annotated[ClientContext | AdminContext, Field(discriminator="role")]


class CredentialView(WireModel):
    """A credential without its secret; `expires_at` is None while nothing ends it."""

    credential_id: CredentialId
    created_at: Milliseconds
    expires_at: Milliseconds | None = None


class ProvisionResponse(WireModel):
    """The client as it is now (after `remove`: as it was), and a token that was just made."""

    client: ClientView
    credential: CredentialView | None = None
    api_token: str | None = Field(default=None, repr=False)
