"""Callers of a gateway, and what they call through the npm client."""

from dataclasses import dataclass
from typing import Any

from tests.lab.gateway import GatewayProcess
from tests.lab.npm_client import NpmClient, Outcome
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess

PROVISION = "provisionGatewayClientCredential"
CONTEXT = "getGatewayClientContext"
CAPABILITIES = "getGatewayCapabilities"
SYNC = "syncGatewayClientDnsRecord"
GET_CERTIFICATE = "getGatewayClientCertificate"
RELEASE = "releaseGatewayClientCertificate"
METHODS = (SYNC, GET_CERTIFICATE, RELEASE, CAPABILITIES, CONTEXT, PROVISION)

EVERYTHING = ["readCertificates", "requestCertificates", "syncDnsRecords"]


@dataclass(frozen=True)
class Caller:
    """A client of the gateway: whose token, and the one hostname it asks about."""

    client_id: str
    token: str
    hostname: str

    def asks(self, **parameters: object) -> dict[str, object]:
        """A request without an ownership."""
        return {"apiToken": self.token, **parameters}

    def asks_own(self, **parameters: object) -> dict[str, object]:
        """A request about the caller's hostname."""
        return self.asks(ownership={"appId": "npm", "hostname": self.hostname}, **parameters)


@dataclass(frozen=True)
class OwnGateway:
    """A gateway with a database of its own: a test may kill both."""

    gateway: GatewayProcess
    redis: RedisProcess
    port: int
    admin_token: str

    @property
    def url(self) -> str:
        return self.gateway.url


def answer_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.response is not None, outcome
    return outcome.response


def new_caller(
    client: NpmClient, url: str, admin_token: str, label: str, capabilities: list[str] = EVERYTHING
) -> Caller:
    spec = {
        "clientId": f"client-{label}",
        "clientType": "npm",
        "hostnamePatterns": [f"*.{label}.example.test"],
        "allowedDnsRecordAddresses": ["198.51.100.0/24", "2001:db8::/32"],
        "capabilities": capabilities,
    }
    request = {"apiToken": admin_token, "action": "ensure", "spec": spec}
    made = answer_of(client.call(url, PROVISION, request))
    return Caller(f"client-{label}", made["apiToken"], f"relay.{label}.example.test")


def certificate_of(client: NpmClient, url: str, caller: Caller) -> dict[str, Any]:
    """Ask until the caller's certificate is ready."""
    answers: list[dict[str, Any]] = []

    def is_ready() -> bool:
        answers.append(answer_of(client.call(url, GET_CERTIFICATE, caller.asks_own())))
        assert answers[-1]["status"] in {"pending", "ready"}, answers[-1]
        return bool(answers[-1]["status"] == "ready")

    wait_until(is_ready, f"the certificate of {caller.hostname} is ready")
    certificate: dict[str, Any] = answers[-1]["certificate"]
    return certificate
