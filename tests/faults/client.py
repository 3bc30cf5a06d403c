"""A client of the gateways: one ownership's certificate, asked for and released over HTTP.

Responsible for: the envelope. Knows the wire and nothing of the gateway's code.
Must not: try again; a gateway that dies in the middle of an answer is what these tests are about.
Called by: `faultlab` and the tests.
"""

from typing import Any

import httpx

from tests.integration.service.calling import NO_TLS

_ANSWER_LIMIT_SECONDS = 12.0
_CAPABILITIES = ["readCertificates", "requestCertificates"]


class Client:
    """Holds a token; every call names the gateway it goes to.

    Calls raise httpx.HTTPError when there is no answer.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._http = httpx.Client(trust_env=False, verify=NO_TLS)

    @classmethod
    def made_by_admin(
        cls, url: str, admin_token: str, *hostname_patterns: str, client_id: str = "relays"
    ) -> "Client":
        """A new client, made through the gateway at `url`."""
        spec = {
            "clientId": client_id,
            "clientType": "relay",
            "hostnamePatterns": list(hostname_patterns),
            "capabilities": _CAPABILITIES,
        }
        admin = cls(admin_token)
        method = "provisionGatewayClientCredential"
        made = admin.call(url, method, {"action": "ensure", "spec": spec})
        admin.close()
        return cls(made["apiToken"])

    def get(
        self, url: str, hostname: str, limit_seconds: float = _ANSWER_LIMIT_SECONDS
    ) -> dict[str, Any]:
        """Ask for the certificate."""
        return self.call(url, "getGatewayClientCertificate", _owned(hostname), limit_seconds)

    def code(self, url: str, hostname: str, limit_seconds: float) -> str:
        """Ask for the certificate: the code of the refusal, or the status when it is admitted.

        Raises httpx.TimeoutException without an answer in time.
        """
        return outcome_of(
            self._post(url, "getGatewayClientCertificate", _owned(hostname), limit_seconds)
        )

    def release(self, url: str, hostname: str) -> str:
        """Release the certificate; answers the status."""
        status: str = self.call(url, "releaseGatewayClientCertificate", _owned(hostname))["status"]
        return status

    def call(
        self,
        url: str,
        method: str,
        request: dict[str, object],
        limit_seconds: float = _ANSWER_LIMIT_SECONDS,
    ) -> dict[str, Any]:
        """Answer the response of a call, which must be admitted."""
        envelope = self._post(url, method, request, limit_seconds)
        assert envelope.get("error") is None, envelope
        response: dict[str, Any] = envelope["response"]
        return response

    def asking(self, hostname: str) -> dict[str, object]:
        """What `get` sends, for those who send it by themselves."""
        return self._envelope("getGatewayClientCertificate", _owned(hostname))

    def _envelope(self, method: str, request: dict[str, object]) -> dict[str, object]:
        return {
            "method": method,
            "request": {"apiToken": self._token, **request},
            "response": None,
            "correlation": {"id": "1", "phase": "request"},
        }

    def _post(
        self, url: str, method: str, request: dict[str, object], limit_seconds: float
    ) -> dict[str, Any]:
        body = self._envelope(method, request)
        answer: dict[str, Any] = self._http.post(url, json=body, timeout=limit_seconds).json()
        return answer

    def close(self) -> None:
        """Close the connections. May be repeated."""
        self._http.close()


def outcome_of(envelope: dict[str, Any]) -> str:
    """The code of a refusal, or the status of a call that is admitted."""
    error = envelope.get("error")
    return str(envelope["response"]["status"] if error is None else error["data"]["code"])


def _owned(hostname: str) -> dict[str, object]:
    return {"ownership": {"appId": "relay", "hostname": hostname}}
