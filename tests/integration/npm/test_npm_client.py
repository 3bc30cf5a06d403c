"""What the ecosystem's own client makes of the gateway: npm's `@api.global/typedrequest`."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.integration.npm.calls import (
    CAPABILITIES,
    CONTEXT,
    EVERYTHING,
    GET_CERTIFICATE,
    PROVISION,
    RELEASE,
    SYNC,
    Caller,
    OwnGateway,
    answer_of,
    certificate_of,
    new_caller,
)
from tests.lab.lab import Lab
from tests.lab.npm_client import NpmClient, Outcome
from tests.lab.process import LabFault

NPM_FOLDER = Path(__file__).parents[2] / "npm"

MAX_BODY_BYTES = 65536


# --- what is installed --------------------------------------------------------------------------


def test_lock_file_names_no_address_and_hashes_every_package() -> None:
    text = (NPM_FOLDER / "package-lock.json").read_text()
    assert "http" not in text
    packages = json.loads(text)["packages"]
    assert [name for name, of in packages.items() if name and "integrity" not in of] == []


def test_installed_client_is_the_version_of_the_contract() -> None:
    modules = NPM_FOLDER / "node_modules"
    names = ("@api.global/typedrequest", "@push.rocks/webrequest")
    installed = [json.loads((modules / name / "package.json").read_text()) for name in names]
    assert [package["version"] for package in installed] == ["3.3.0", "4.0.5"]


def test_client_names_the_package_when_node_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(LabFault, match="node is missing: install the Debian package nodejs"):
        NpmClient(tmp_path / "npm.log")


# --- the methods --------------------------------------------------------------------------------


def test_record_is_published_replaced_and_withdrawn(
    client: NpmClient, lab: Lab, caller: Caller
) -> None:
    def sync(**parameters: object) -> tuple[str, object]:
        answer = answer_of(client.call(lab.config.url, SYNC, caller.asks_own(**parameters)))
        return answer["status"], answer["record"]

    first = {"type": "A", "value": "198.51.100.7", "ttl": 300}
    second = {"type": "AAAA", "value": "2001:db8::7", "ttl": 60}
    assert sync(record=first) == ("managed-created", first)
    assert sync(record=first) == ("managed-unchanged", first)
    assert sync(record=second) == ("managed-updated", second)
    assert sync(record={"type": "A", "value": "192.0.2.7"})[0] == "target-invalid"
    assert sync(delete=True) == ("managed-deleted", None)


def test_certificate_gets_ready_and_is_released(
    client: NpmClient, lab: Lab, caller: Caller
) -> None:
    url = lab.config.url
    certificate = certificate_of(client, url, caller)
    leaf = x509.load_pem_x509_certificates(certificate["chainPem"].encode())[0]
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName(caller.hostname)]
    key = load_pem_private_key(certificate["privateKeyPem"].encode(), password=None)
    assert key.public_key() == leaf.public_key()
    assert certificate["validFrom"] < certificate["renewAfter"] < certificate["validUntil"]
    for status in ("released", "unchanged"):
        outcome = client.call(url, RELEASE, caller.asks_own())
        assert outcome == Outcome(response={"status": status})


def test_facilities_and_the_live_policy_are_told(
    client: NpmClient, lab: Lab, caller: Caller
) -> None:
    url = lab.config.url
    facilities = {"dns": {"clientRecords": True}, "certificates": {"exactIssuance": True}}
    outcome = client.call(url, CAPABILITIES, caller.asks())
    assert outcome == Outcome(response={"capabilities": facilities})
    context = answer_of(client.call(url, CONTEXT, caller.asks()))["context"]
    assert (context["role"], context["clientId"]) == ("gatewayClient", caller.client_id)
    assert context["capabilities"] == EVERYTHING


@pytest.mark.parametrize("action", ["rotate", "revoke", "remove"])
def test_token_is_worth_nothing_after_the_action(
    client: NpmClient, lab: Lab, caller: Caller, action: str
) -> None:
    request = {
        "apiToken": lab.config.admin_token,
        "action": action,
        "spec": {"clientId": caller.client_id},
    }
    answer = answer_of(client.call(lab.config.url, PROVISION, request))
    assert (answer["apiToken"] is not None) == (action == "rotate")
    outcome = client.call(lab.config.url, CONTEXT, caller.asks())
    assert outcome.error_data == {"code": "unauthorized"}


# --- failures -----------------------------------------------------------------------------------

RECORD = {"type": "A", "value": "198.51.100.7"}
OTHER_HOSTNAME = {"appId": "npm", "hostname": "somebody.else.example.test"}

Request = Callable[[Caller], dict[str, object]]


@pytest.mark.parametrize(
    ("method", "request_of", "code"),
    [
        (CONTEXT, lambda _: {}, "unauthorized"),
        (CONTEXT, lambda _: {"apiToken": "gwc_nobody_nothing"}, "unauthorized"),
        (PROVISION, lambda caller: caller.asks(action="revoke"), "forbidden"),
        (SYNC, lambda caller: caller.asks_own(record=RECORD, delete=True), "request-invalid"),
        (SYNC, lambda caller: caller.asks_own(), "request-invalid"),
        (
            GET_CERTIFICATE,
            lambda caller: caller.asks(ownership=OTHER_HOSTNAME),
            "hostname-forbidden",
        ),
        ("getNothing", lambda caller: caller.asks(), "method-unknown"),
    ],
)
def test_failure_arrives_as_the_clients_own_error(
    client: NpmClient, lab: Lab, caller: Caller, method: str, request_of: Request, code: str
) -> None:
    outcome = client.call(lab.config.url, method, request_of(caller))
    assert outcome.error_data is not None, outcome
    assert outcome.error_data["code"] == code
    assert outcome.error_text


def test_error_names_the_capability_when_it_is_missing(
    client: NpmClient, lab: Lab, fresh_label: str
) -> None:
    config = lab.config
    reader = new_caller(client, config.url, config.admin_token, fresh_label, ["readCertificates"])
    outcome = client.call(config.url, SYNC, reader.asks_own(record=RECORD))
    assert outcome.error_data == {"code": "forbidden", "capability": "syncDnsRecords"}


def test_error_lists_every_violation(client: NpmClient, lab: Lab, caller: Caller) -> None:
    record = {"type": "A", "value": "198.51.100.07", "ttl": 1}
    outcome = client.call(lab.config.url, SYNC, caller.asks_own(record=record, more=True))
    assert outcome.error_data is not None, outcome
    paths = [violation.split()[0] for violation in outcome.error_data["violations"]]
    assert sorted(paths) == ["more", "record.ttl", "record.value"]


def test_stream_message_is_an_unknown_method(client: NpmClient, lab: Lab, caller: Caller) -> None:
    message = {"streamId": "s", "cycleId": "c", "cycle": "request", "mainPurpose": "keepAlive"}
    outcome = client.call_as_stream(lab.config.url, caller.asks(**message))
    assert outcome == Outcome(
        error_text="There is no available method for this call on the server side",
        error_data={"code": "method-unknown"},
    )


def test_only_the_status_is_seen_when_the_request_is_too_large(
    client: NpmClient, lab: Lab, caller: Caller
) -> None:
    outcome = client.call(lab.config.url, CONTEXT, caller.asks(filler="x" * MAX_BODY_BYTES))
    assert outcome.thrown is not None, outcome
    assert re.match(r"Error: HTTP 413: ", outcome.thrown)


def test_error_says_when_to_ask_again_without_redis(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    alive.redis.kill()
    outcome = client.call(alive.url, CONTEXT, callers[0].asks())
    assert outcome.error_data is not None, outcome
    assert outcome.error_data["code"] == "unavailable"
    assert outcome.error_data["retryAfterMs"] > 0
