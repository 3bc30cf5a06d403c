"""Callers of the gateway as the tests need them: an operator, clients, and what they are told.

Blocking, as a simple client is; for many calls at once there is `at_once`. Knows the wire only:
nothing of the gateway's own code is used.
"""

import json
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from tests.lab.process import wait_until

Wire = dict[str, Any]
_T = TypeVar("_T")

ALL_CAPABILITIES = ("readCertificates", "requestCertificates", "syncDnsRecords")
ADDRESSES = ("198.51.100.0/24", "2001:db8::/32")
V4 = {"type": "A", "value": "198.51.100.10", "ttl": 300}
V4_OTHER = {"type": "A", "value": "198.51.100.11", "ttl": 300}
V6 = {"type": "AAAA", "value": "2001:db8::10", "ttl": 300}
APP = "cluster-relay:a"
OTHER_APP = "cluster-relay:b"

ANSWER_LIMIT_SECONDS = 10.0
ISSUANCE_LIMIT_SECONDS = 30.0
_ASK_AGAIN_SECONDS = 0.05


@dataclass(frozen=True)
class Answer:
    """An answer of the gateway, taken apart."""

    http_status: int
    headers: httpx.Headers
    body: Wire

    @property
    def response(self) -> Wire:
        """The response of a call that was admitted."""
        assert "error" not in self.body, self.body
        assert self.http_status == 200
        response: Wire = self.body["response"]
        return response

    @property
    def status(self) -> str:
        return str(self.response["status"])

    @property
    def error(self) -> Wire:
        """The error of a call that was not; its `data` has the `code`."""
        assert self.body["response"] is None
        error: Wire = self.body["error"]
        return error

    @property
    def code(self) -> str:
        return str(self.error["data"]["code"])


class Line:
    """A way to one or several gateways; calls go to the first unless told otherwise."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = tuple(urls)
        # No limit of its own: a test says how long an answer may take. One TLS context for all
        # clients (there is no TLS here, but httpx loads the system's authorities for each).
        self._http = httpx.Client(
            trust_env=False, timeout=30, limits=httpx.Limits(max_connections=None), verify=_TLS
        )

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, request: Wire, *, at: int = 0) -> Answer:
        """Make one call in an envelope like the ecosystem's client makes it."""
        return self.post(
            {
                "method": method,
                "request": request,
                "response": None,
                "correlation": {"id": "c-1", "phase": "request"},
            },
            at=at,
        )

    def post(self, envelope: object, *, at: int = 0) -> Answer:
        return self.post_bytes(json.dumps(envelope).encode(), at=at)

    def post_bytes(
        self, body: bytes, *, content_type: str = "application/json", at: int = 0
    ) -> Answer:
        started = time.monotonic()
        reply = self._http.post(
            self.urls[at], content=body, headers={"Content-Type": content_type}
        )
        assert time.monotonic() - started < ANSWER_LIMIT_SECONDS, "contract.md: within 10 s"
        assert reply.headers["cache-control"] == "no-store"
        return Answer(reply.status_code, reply.headers, reply.json())

    def send(self, method: str, path: str, *, at: int = 0) -> httpx.Response:
        """Any other HTTP request to a gateway."""
        return self._http.request(method, httpx.URL(self.urls[at]).join(path))


_TLS = ssl.create_default_context()


class Operator:
    """Whoever has the admin token."""

    def __init__(self, line: Line, token: str) -> None:
        self.line = line
        self.token = token

    def provision(self, action: str, spec: Wire, *, at: int = 0, **options: object) -> Answer:
        request = {"apiToken": self.token, "action": action, "spec": spec, **options}
        return self.line.call("provisionGatewayClientCredential", request, at=at)


class Client:
    """A client with its present token and hostnames of its own."""

    def __init__(self, operator: Operator, client_id: str, label: str) -> None:
        self.operator = operator
        self.line = operator.line
        self.client_id = client_id
        self.label = label
        self.token = ""
        self.credential_id = ""

    @property
    def hostname(self) -> str:
        return self.host("relay")

    def host(self, first: str, zone: str = "example.test") -> str:
        """A hostname that the client's patterns match and that no other test uses."""
        return f"{first}.{self.label}.{zone}"

    def spec(self, **changes: object) -> Wire:
        """The client's usual policy, changed where wanted."""
        return {
            "clientId": self.client_id,
            "clientType": "cloudly",
            "hostnamePatterns": [f"**.{self.label}.example.test", f"**.{self.label}.example.net.test"],
            "allowedDnsRecordAddresses": list(ADDRESSES),
            "capabilities": list(ALL_CAPABILITIES),
            **changes,
        }

    def ensure(self, **changes: object) -> Answer:
        """Create the client or set its policy; a token that comes with it is used from now on."""
        return self._with_token(self.operator.provision("ensure", self.spec(**changes)))

    def rotate(self, **options: object) -> Answer:
        spec = {"clientId": self.client_id}
        return self._with_token(self.operator.provision("rotate", spec, **options))

    def revoke(self, *, at: int = 0) -> Answer:
        return self.operator.provision("revoke", {"clientId": self.client_id}, at=at)

    def remove(self, **options: object) -> Answer:
        return self.operator.provision("remove", {"clientId": self.client_id}, **options)

    def _with_token(self, answer: Answer) -> Answer:
        if "error" not in answer.body and answer.response["apiToken"] is not None:
            self.token = answer.response["apiToken"]
            self.credential_id = answer.response["credential"]["credentialId"]
        return answer

    def call(self, method: str, *, at: int = 0, **request: object) -> Answer:
        return self.line.call(method, {"apiToken": self.token, **request}, at=at)

    def context(self, *, at: int = 0) -> Answer:
        return self.call("getGatewayClientContext", at=at)

    def ownership(self, hostname: str | None = None, app_id: str = APP) -> Wire:
        return {"appId": app_id, "hostname": hostname or self.hostname}

    def sync(
        self, record: Wire, hostname: str | None = None, *, app_id: str = APP, at: int = 0
    ) -> Answer:
        return self.call(
            "syncGatewayClientDnsRecord",
            at=at,
            ownership=self.ownership(hostname, app_id),
            record=record,
        )

    def withdraw(
        self, hostname: str | None = None, *, app_id: str = APP, at: int = 0
    ) -> Answer:
        return self.call(
            "syncGatewayClientDnsRecord",
            at=at,
            ownership=self.ownership(hostname, app_id),
            delete=True,
        )

    def certificate(
        self, hostname: str | None = None, *, app_id: str = APP, at: int = 0
    ) -> Answer:
        return self.call(
            "getGatewayClientCertificate", at=at, ownership=self.ownership(hostname, app_id)
        )

    def release(self, hostname: str | None = None, *, app_id: str = APP, at: int = 0) -> Answer:
        return self.call(
            "releaseGatewayClientCertificate", at=at, ownership=self.ownership(hostname, app_id)
        )

    def certificate_when(
        self, status: str, hostname: str | None = None, *, app_id: str = APP, at: int = 0
    ) -> Wire:
        """Ask until the answer has this status, then that answer."""

        def ask() -> Wire | None:
            answer = self.certificate(hostname, app_id=app_id, at=at)
            return answer.response if answer.status == status else None

        return eventually(ask, f"the certificate is {status}", ISSUANCE_LIMIT_SECONDS)

    def certificate_ready(
        self, hostname: str | None = None, *, app_id: str = APP, at: int = 0
    ) -> Wire:
        """Wait for the certificate."""
        response = self.certificate_when("ready", hostname, app_id=app_id, at=at)
        certificate: Wire = response["certificate"]
        return certificate


def eventually(ask: Callable[[], _T | None], what: str, limit_seconds: float = 15.0) -> _T:
    """Ask until there is a result, and return it; raises LabFault when the limit is over."""
    found: list[_T] = []

    def is_there() -> bool:
        result = ask()
        if result is None or result is False:
            time.sleep(_ASK_AGAIN_SECONDS)
            return False
        found.append(result)
        return True

    wait_until(is_there, what, limit_seconds)
    return found[0]


def at_once(calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """Make all calls at the same moment, one thread each; their results in order."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


@contextmanager
def line_to(*urls: str) -> Iterator[Line]:
    """A line that is closed at the end."""
    line = Line(urls)
    try:
        yield line
    finally:
        line.close()
