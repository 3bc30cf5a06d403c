"""Calls as any client makes them, over HTTP, and clients with hostnames of their own.

Used by the tests of this folder. Knows the wire and nothing of the gateway's code.
"""

import secrets
import ssl
import time
from typing import Any

import httpx

PROVISION = "provisionGatewayClientCredential"
CONTEXT = "getGatewayClientContext"
CAPABILITIES = "getGatewayCapabilities"
SYNC = "syncGatewayClientDnsRecord"
GET = "getGatewayClientCertificate"
RELEASE = "releaseGatewayClientCertificate"

EVERYTHING = ("readCertificates", "requestCertificates", "syncDnsRecords")
POLL_SECONDS = 0.05
LIMIT_SECONDS = 30.0

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Gateways speak plain HTTP here; httpx would load this machine's CAs anew for every call."""


def envelope(method: str, request: object) -> dict[str, object]:
    return {"method": method, "request": request, "correlation": {"id": "1", "phase": "request"}}


class Caller:
    """Calls one gateway's URL; `token` is added to every request unless it has its own."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url
        self.token = token

    def post(self, body: object) -> httpx.Response:
        return httpx.post(self.url, json=body, trust_env=False, timeout=15, verify=NO_TLS)

    def at(self, url: str) -> "Caller":
        """The same caller at another gateway."""
        return Caller(url, self.token)

    def answer(self, method: str, **request: object) -> dict[str, Any]:
        """The whole envelope of an answer."""
        parameters = {"apiToken": self.token, **request}
        answer = self.post(envelope(method, parameters))
        body: dict[str, Any] = answer.json()
        assert answer.status_code == 200, body
        assert answer.headers["cache-control"] == "no-store"
        return body

    def call(self, method: str, **request: object) -> dict[str, Any]:
        """The response of a call that is admitted."""
        body = self.answer(method, **request)
        assert "error" not in body, body
        response: dict[str, Any] = body["response"]
        return response

    def refused(self, method: str, **request: object) -> dict[str, Any]:
        """The error's data of a call that is not."""
        body = self.answer(method, **request)
        assert body["response"] is None, body
        data: dict[str, Any] = body["error"]["data"]
        return data


class Ownership:
    """One ownership of a client: its calls, shortened."""

    def __init__(self, caller: Caller, hostname: str, app_id: str = "relay") -> None:
        self.caller = caller
        self.hostname = hostname
        self.app_id = app_id

    @property
    def wire(self) -> dict[str, str]:
        return {"appId": self.app_id, "hostname": self.hostname}

    def at(self, url: str) -> "Ownership":
        return Ownership(self.caller.at(url), self.hostname, self.app_id)

    def publish(self, value: str, ttl: int | None = None) -> dict[str, Any]:
        record: dict[str, object] = {"type": "AAAA" if ":" in value else "A", "value": value}
        if ttl is not None:
            record["ttl"] = ttl
        return self.caller.call(SYNC, ownership=self.wire, record=record)

    def withdraw(self) -> dict[str, Any]:
        return self.caller.call(SYNC, ownership=self.wire, delete=True)

    def get(self) -> dict[str, Any]:
        return self.caller.call(GET, ownership=self.wire)

    def release(self) -> str:
        status: str = self.caller.call(RELEASE, ownership=self.wire)["status"]
        return status

    def certificate(self) -> dict[str, Any]:
        """Ask until the certificate is there."""
        answer = self.settled()
        assert answer["status"] == "ready", answer
        certificate: dict[str, Any] = answer["certificate"]
        return certificate

    def settled(self) -> dict[str, Any]:
        """Ask until the answer is no longer pending; bounded."""
        end = time.monotonic() + LIMIT_SECONDS
        while (answer := self.get())["status"] == "pending":
            assert time.monotonic() < end, answer
            time.sleep(min(answer["retryAfterMs"] / 1000, POLL_SECONDS))
        return answer


def spec(client_id: str, *patterns: str, **changes: object) -> dict[str, object]:
    return {
        "clientId": client_id,
        "clientType": "cloudly",
        "hostnamePatterns": list(patterns),
        "allowedDnsRecordAddresses": ["198.51.100.0/24", "2001:db8::/32"],
        "capabilities": list(EVERYTHING),
        **changes,
    }


class World:
    """A gateway, its admin, and clients made as they are needed."""

    def __init__(self, url: str, admin_token: str) -> None:
        self.url = url
        self.admin = Caller(url, admin_token)

    def client(self, *patterns: str, **changes: object) -> Caller:
        """A new client for the patterns, with every capability unless told otherwise."""
        client_id = f"client-{secrets.token_hex(6)}"
        made = self.admin.call(
            PROVISION, action="ensure", spec=spec(client_id, *patterns, **changes)
        )
        return Caller(self.url, made["apiToken"])

    def ownership(self, zone: str = "example.test", **changes: object) -> Ownership:
        """A new client's ownership of a new hostname."""
        hostname = f"t{secrets.token_hex(6)}.{zone}"
        return Ownership(self.client(hostname, **changes), hostname)

    def rival(self, ownership: Ownership) -> Ownership:
        """Another client's ownership of the same hostname."""
        return Ownership(self.client(ownership.hostname), ownership.hostname)
