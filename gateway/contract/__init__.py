"""The contract between the gateway and its clients, as code.

Responsible for what both sides share: the values and their one spelling, the schemas of requests
and responses, the envelope and the failures. Pure: no I/O, no clock, and nothing but the standard
library, pydantic and idna, so that a client may import it alone. `docs/contract.md` says the same
in words.

The names that begin with `is_gateway_`, `validate_gateway_` and `GATEWAY_` are public for clients
in any program. They take any Python value whatever and never raise.
"""

from gateway.contract.addresses import (
    Address,
    Prefix,
    RecordType,
    is_gateway_address_prefix,
    parse_address,
    parse_prefix,
    record_type_of,
)
from gateway.contract.allowances import (
    AllowedAddresses,
    compile_allowance,
    is_gateway_client_dns_record_allowed,
    validate_gateway_allowed_dns_record_addresses,
)
from gateway.contract.answers import (
    parse_answer,
    read_answer,
    read_certificate_answer,
)
from gateway.contract.bounds import (
    GATEWAY_CLIENT_HOSTNAME_CONTRACT,
    HostnameContract,
)
from gateway.contract.capabilities import (
    CAPABILITIES,
    Capability,
)
from gateway.contract.envelope import (
    MAX_BODY_BYTES,
    RequestEnvelope,
    Written,
    parse_request,
    render_request,
    render_response,
)
from gateway.contract.errors import (
    AnswerInvalid,
    CallError,
    EnvelopeInvalid,
    Forbidden,
    GatewayError,
    HostnameForbidden,
    Internal,
    MethodUnknown,
    Overloaded,
    RequestInvalid,
    Unauthorized,
    Unavailable,
    UnknownFailure,
)
from gateway.contract.hostnames import (
    is_gateway_client_hostname,
)
from gateway.contract.names import (
    AppId,
    ClientId,
    CredentialId,
    Hostname,
    ZoneName,
)
from gateway.contract.ownership import (
    Ownership,
    StatedOwnership,
    ownership_in,
    validate_gateway_client_hostname_ownership,
)
from gateway.contract.patterns import (
    HostnamePatterns,
    compile_patterns,
    is_gateway_hostname_allowed,
    is_gateway_hostname_pattern,
)
from gateway.contract.provisioning import (
    MAX_OVERLAP_SECONDS,
    ClientSpec,
    ProvisionAction,
    ProvisionRequest,
)
from gateway.contract.records import (
    DnsRecord,
    validate_gateway_client_dns_record,
)
from gateway.contract.requests import (
    EmptyRequest,
    GetCertificateRequest,
    ReleaseCertificateRequest,
    StatedSync,
    SyncDnsRecordRequest,
    sync_in,
)
from gateway.contract.responses import (
    PUBLISHED,
    AdminContext,
    CapabilitiesResponse,
    Certificate,
    CertificatePending,
    CertificateReady,
    CertificateRefused,
    ClientContext,
    ClientView,
    ConflictingRecord,
    ContextResponse,
    CredentialView,
    GatewayCapabilities,
    GetCertificateResponse,
    HandedOut,
    ProvisionResponse,
    ReadyFrame,
    RefusalReason,
    ReleaseResponse,
    SyncDnsRecordResponse,
    SyncStatus,
)
from gateway.contract.schema import (
    WireModel,
    read_request,
)

__all__ = [
    "CAPABILITIES",
    "GATEWAY_CLIENT_HOSTNAME_CONTRACT",
    "MAX_BODY_BYTES",
    "MAX_OVERLAP_SECONDS",
    "PUBLISHED",
    "Address",
    "AdminContext",
    "AllowedAddresses",
    "AnswerInvalid",
    "AppId",
    "CallError",
    "CapabilitiesResponse",
    "Capability",
    "Certificate",
    "CertificatePending",
    "CertificateReady",
    "CertificateRefused",
    "ClientContext",
    "ClientId",
    "ClientSpec",
    "ClientView",
    "ConflictingRecord",
    "ContextResponse",
    "CredentialId",
    "CredentialView",
    "DnsRecord",
    "EmptyRequest",
    "EnvelopeInvalid",
    "Forbidden",
    "GatewayCapabilities",
    "GatewayError",
    "GetCertificateRequest",
    "GetCertificateResponse",
    "HandedOut",
    "Hostname",
    "HostnameContract",
    "HostnameForbidden",
    "HostnamePatterns",
    "Internal",
    "MethodUnknown",
    "Overloaded",
    "Ownership",
    "Prefix",
    "ProvisionAction",
    "ProvisionRequest",
    "ProvisionResponse",
    "ReadyFrame",
    "RecordType",
    "RefusalReason",
    "ReleaseCertificateRequest",
    "ReleaseResponse",
    "RequestEnvelope",
    "RequestInvalid",
    "StatedOwnership",
    "StatedSync",
    "SyncDnsRecordRequest",
    "SyncDnsRecordResponse",
    "SyncStatus",
    "Unauthorized",
    "Unavailable",
    "UnknownFailure",
    "WireModel",
    "Written",
    "ZoneName",
    "compile_allowance",
    "compile_patterns",
    "is_gateway_address_prefix",
    "is_gateway_client_dns_record_allowed",
    "is_gateway_client_hostname",
    "is_gateway_hostname_allowed",
    "is_gateway_hostname_pattern",
    "ownership_in",
    "parse_address",
    "parse_answer",
    "parse_prefix",
    "parse_request",
    "read_answer",
    "read_certificate_answer",
    "read_request",
    "record_type_of",
    "render_request",
    "render_response",
    "sync_in",
    "validate_gateway_allowed_dns_record_addresses",
    "validate_gateway_client_dns_record",
    "validate_gateway_client_hostname_ownership",
]
