"""The SDK: a gateway's calls as typed methods, for client programs in Python.

    from gateway.client import GatewayClient, Ownership

    with GatewayClient("https://gateway.example.com", token) as gateway:
        relay = Ownership.of("cluster-relay:a", "relay.example.com")
        certificate = gateway.wait_for_certificate(relay)

Responsible for what every client needs: validation before sending, safe repetition within a
deadline, typed answers, judged certificates. Needs the contract, httpx, anyio and cryptography;
nothing of the server. `docs/clients.md` is the guide.
"""

from gateway.client.asynchronous import AsyncGatewayClient
from gateway.client.blocking import GatewayClient
from gateway.client.errors import DeadlinePassed, IssuanceRefused, Unreachable
from gateway.client.judging import (
    Bundle,
    Chain,
    judge_certificate,
    read_bundle,
    read_chain,
)
from gateway.client.provisioning import RotateResponse
from gateway.client.waiting import Progress
from gateway.contract import (
    AdminContext,
    AnswerInvalid,
    CallError,
    Capability,
    Certificate,
    CertificatePending as Pending,
    CertificateReady as Ready,
    CertificateRefused as Refused,
    ClientContext,
    ClientSpec,
    ClientView,
    ConflictingRecord,
    CredentialView,
    DnsRecord,
    EnvelopeInvalid,
    Forbidden,
    GatewayCapabilities,
    GatewayError,
    GetCertificateResponse as CertificateAnswer,
    HostnameForbidden,
    Internal,
    MethodUnknown,
    Overloaded,
    Ownership,
    ProvisionResponse,
    RefusalReason,
    ReleaseResponse,
    RequestInvalid,
    SyncDnsRecordResponse,
    SyncStatus,
    Unauthorized,
    Unavailable,
    UnknownFailure,
)

__all__ = [
    "AdminContext",
    "AnswerInvalid",
    "AsyncGatewayClient",
    "Bundle",
    "CallError",
    "Capability",
    "Certificate",
    "CertificateAnswer",
    "Chain",
    "ClientContext",
    "ClientSpec",
    "ClientView",
    "ConflictingRecord",
    "CredentialView",
    "DeadlinePassed",
    "DnsRecord",
    "EnvelopeInvalid",
    "Forbidden",
    "GatewayCapabilities",
    "GatewayClient",
    "GatewayError",
    "HostnameForbidden",
    "Internal",
    "IssuanceRefused",
    "MethodUnknown",
    "Overloaded",
    "Ownership",
    "Pending",
    "Progress",
    "ProvisionResponse",
    "Ready",
    "RefusalReason",
    "Refused",
    "ReleaseResponse",
    "RequestInvalid",
    "RotateResponse",
    "SyncDnsRecordResponse",
    "SyncStatus",
    "Unauthorized",
    "Unavailable",
    "UnknownFailure",
    "Unreachable",
    "judge_certificate",
    "read_bundle",
    "read_chain",
]
