"""Tells which ACME operation an HTTP request is, and which hostname it is about: pure.

Responsible for: what the directory and every object of a CA say about further URLs, learned as the
answers pass by, so that no path of any one CA is written down here.
Must not: talk to anybody; judge an answer.
Called by: `tests.lab.acme_proxy`; moods and tests read its values.
"""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

RENEWAL_INFO_PATH = "/lab-renewal-info"
"""Where the proxy itself serves renewal information, for a CA that has none."""


class Operation(StrEnum):
    """What a request asks of the CA; where the directory lists it, by the directory's own name."""

    DIRECTORY = "directory"
    NEW_NONCE = "newNonce"
    NEW_ACCOUNT = "newAccount"
    ACCOUNT = "account"
    KEY_CHANGE = "keyChange"
    NEW_ORDER = "newOrder"
    ORDER = "order"
    AUTHORIZATION = "authorization"
    DEACTIVATION = "deactivation"
    CHALLENGE = "challenge"
    FINALIZE = "finalize"
    CERTIFICATE = "certificate"
    RENEWAL_INFO = "renewalInfo"
    OTHER = "other"


_IN_DIRECTORY = {
    name.value: name
    for name in (
        Operation.NEW_NONCE,
        Operation.NEW_ACCOUNT,
        Operation.KEY_CHANGE,
        Operation.NEW_ORDER,
        Operation.RENEWAL_INFO,
    )
}


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; names of headers as they came, several of one name possible."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body, which must be a JSON object."""
        value: dict[str, Any] = json.loads(self.body)
        return value

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def with_json(self, value: object) -> "Answer":
        return replace(self, body=json.dumps(value).encode())

    def with_header(self, name: str, value: str) -> "Answer":
        """The same with this header in place of all of its name."""
        kept = tuple(pair for pair in self.headers if pair[0].lower() != name.lower())
        return replace(self, headers=(*kept, (name, value)))


@dataclass
class Call:
    """One request as the proxy saw it.

    `at` is when it came (seconds of the monotonic clock). `payload` is the signed payload as JSON,
    None where it is empty (POST-as-GET) or unsigned. `hostname` is the first one of the order that
    it is about, None where it is about none. `mood` is which one was in charge, `ca_status` what
    the CA answered (None: it never saw it), `status` what the client got (None: no whole answer).
    """

    operation: Operation
    method: str
    path: str
    payload: dict[str, Any] | None
    hostname: str | None = None
    at: float = field(default_factory=time.monotonic)
    mood: str | None = None
    ca_status: int | None = None
    status: int | None = None


class AcmeMap:
    """What is known of a CA's URLs. For one thread at a time."""

    def __init__(self, directory_path: str) -> None:
        self._paths: dict[str, tuple[Operation, str | None]] = {
            directory_path: (Operation.DIRECTORY, None)
        }
        self._hostnames_by_renewal_id: dict[str, str | None] = {}
        self._renewal_path: str | None = None

    def call(self, method: str, path: str, body: bytes) -> Call:
        """Tell what a request is."""
        payload = _payload(body)
        operation, hostname = self._paths.get(path, (Operation.OTHER, None))
        if operation is Operation.NEW_ORDER:
            hostname = _hostname(payload)
        elif operation is Operation.AUTHORIZATION and payload:
            operation = Operation.DEACTIVATION
        elif self._renewal_path is not None and path.startswith(f"{self._renewal_path}/"):
            operation = Operation.RENEWAL_INFO
            hostname = self._hostnames_by_renewal_id.get(path.rpartition("/")[2])
        return Call(operation, method, path, payload, hostname)

    def learn(self, call: Call, answer: Answer) -> None:
        """Take in what an answer of the CA says about further URLs."""
        if not 200 <= answer.status < 300:
            return
        location = answer.header("location")
        if call.operation is Operation.DIRECTORY:
            self._learn_directory(answer.json())
        elif call.operation is Operation.NEW_ACCOUNT and location:
            self._paths[urlsplit(location).path] = (Operation.ACCOUNT, None)
        elif call.operation is Operation.NEW_ORDER and location:
            self._paths[urlsplit(location).path] = (Operation.ORDER, call.hostname)
            self._learn_object(answer.json(), call.hostname)
        elif call.operation in {Operation.ORDER, Operation.FINALIZE, Operation.AUTHORIZATION}:
            self._learn_object(answer.json(), call.hostname)
        elif call.operation is Operation.CERTIFICATE:
            self._learn_certificate(answer, call.hostname)

    def _learn_directory(self, directory: dict[str, Any]) -> None:
        for name, url in directory.items():
            if name in _IN_DIRECTORY:
                self._paths[urlsplit(url).path] = (_IN_DIRECTORY[name], None)
        if "renewalInfo" in directory:
            self._renewal_path = urlsplit(directory["renewalInfo"]).path.rstrip("/")

    def _learn_object(self, thing: dict[str, Any], hostname: str | None) -> None:
        for operation, url in _urls(thing):
            self._paths[urlsplit(url).path] = (operation, hostname)

    def _learn_certificate(self, answer: Answer, hostname: str | None) -> None:
        for url in alternates(answer):
            self._paths[urlsplit(url).path] = (Operation.CERTIFICATE, hostname)
        leaf = x509.load_pem_x509_certificates(answer.body)[0]
        self._hostnames_by_renewal_id[renewal_id(leaf)] = hostname


def alternates(answer: Answer) -> list[str]:
    """The URLs of the other chains that a certificate's answer names (RFC 8555, 7.4.2)."""
    links = [value for name, value in answer.headers if name.lower() == "link"]
    named = [link.split(";", 1) for link in links if 'rel="alternate"' in link]
    return [url.strip().strip("<>") for url, _ in named]


def renewal_id(leaf: x509.Certificate) -> str:
    """What a certificate is called in renewal information (RFC 9773, 4.1)."""
    authority = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    serial = leaf.serial_number
    # As a DER integer: a leading zero byte where the first bit is set.
    parts = (authority.key_identifier or b"", serial.to_bytes(serial.bit_length() // 8 + 1, "big"))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def _urls(thing: dict[str, Any]) -> Iterator[tuple[Operation, str]]:
    for url in thing.get("authorizations", ()):
        yield Operation.AUTHORIZATION, url
    for challenge in thing.get("challenges", ()):
        yield Operation.CHALLENGE, challenge["url"]
    for name in (Operation.FINALIZE, Operation.CERTIFICATE):
        if thing.get(name.value):
            yield name, thing[name.value]


def _payload(body: bytes) -> dict[str, Any] | None:
    if not body:
        return None
    text = json.loads(body)["payload"]
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    value: dict[str, Any] | None = json.loads(raw) if raw else None
    return value


def _hostname(payload: dict[str, Any] | None) -> str | None:
    return payload["identifiers"][0]["value"] if payload else None
