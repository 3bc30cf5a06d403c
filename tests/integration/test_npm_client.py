"""What the ecosystem's own client makes of the gateway: npm's `@api.global/typedrequest`.

That client keeps the last body per URL and answers it to whatever call fails to connect later, be
it another caller's: `Cache-Control: no-store` is all that prevents it. One client process makes all
calls of a test, so that it could.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayProcess, start_gateway, write_gateway_config
from tests.lab.http_relay import Fault, HttpRelay
from tests.lab.lab import Lab
from tests.lab.npm_client import NpmClient, Outcome
from tests.lab.pebble import PebbleProcess
from tests.lab.process import LabFault, wait_until
from tests.lab.redis import RedisProcess, start_redis

NPM_FOLDER = Path(__file__).parents[1] / "npm"

PROVISION = "provisionGatewayClientCredential"
CONTEXT = "getGatewayClientContext"
CAPABILITIES = "getGatewayCapabilities"
SYNC = "syncGatewayClientDnsRecord"
GET_CERTIFICATE = "getGatewayClientCertificate"
RELEASE = "releaseGatewayClientCertificate"

EVERYTHING = ["readCertificates", "requestCertificates", "syncDnsRecords"]
MAX_BODY_BYTES = 65536


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


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NpmClient]:
    running = NpmClient(tmp_path_factory.mktemp("npm") / "npm.log")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def own(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, pebble: PebbleProcess
) -> Iterator[OwnGateway]:
    folder = tmp_path_factory.mktemp("own")
    redis = start_redis(folder)
    config = write_gateway_config(folder / "gateway", bind, redis.url, pebble)
    gateway = start_gateway(config)
    yield OwnGateway(gateway, redis, config.port, config.admin_token)
    gateway.stop()
    redis.stop()


@pytest.fixture
def alive(own: OwnGateway) -> Iterator[OwnGateway]:
    """The module's own gateway; whatever a test killed is there again after it."""
    yield own
    if not own.redis.process.is_running:
        own.redis.start()
    if not own.gateway.process.is_running:
        own.gateway.start()


@pytest.fixture
def caller(client: NpmClient, lab: Lab, fresh_label: str) -> Caller:
    return new_caller(client, lab.config.url, lab.config.admin_token, fresh_label)


@pytest.fixture
def callers(client: NpmClient, alive: OwnGateway, fresh_label: str) -> tuple[Caller, Caller]:
    """Two clients of the module's own gateway."""
    first, second = (
        new_caller(client, alive.url, alive.admin_token, f"{fresh_label}-{which}")
        for which in ("first", "second")
    )
    return first, second


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


def client_id_of(client: NpmClient, url: str, caller: Caller) -> str:
    """Whom the gateway takes the caller for."""
    context = answer_of(client.call(url, CONTEXT, caller.asks()))["context"]
    return str(context["clientId"])


def has_unread_bytes(port: int) -> bool:
    """Whether something was sent to a server on loopback that it has not read."""
    # Fields of a line: sl, local_address, rem_address, st, tx_queue:rx_queue, …; numbers in hex.
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(
        fields[1].endswith(f":{port:04X}") and fields[3] == "01" and int(fields[4][9:], 16) > 0
        for fields in lines
    )


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
    has_node = [Path(folder) / "node" for folder in ("/usr/sbin", "/sbin")]
    assert not any(file.exists() for file in has_node)
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


# --- no old body is answered again --------------------------------------------------------------
#
# That the client would replay, were it not for `no-store`, cannot be shown with a gateway, which
# always sends it. A relay that leaves this one header out shows it: the tests below it can fail.


@pytest.mark.parametrize("fault", Fault)
def test_client_hands_a_private_key_to_another_caller_without_no_store(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller], fault: Fault
) -> None:
    first, second = callers
    with HttpRelay(alive.port, keeps_cache_control=False) as relay:
        certificate = certificate_of(client, relay.url, first)
        relay.break_with(fault)
        outcome = client.call(relay.url, GET_CERTIFICATE, second.asks_own())
    assert answer_of(outcome)["certificate"] == certificate


@pytest.mark.parametrize("fault", Fault)
def test_call_fails_when_its_connection_breaks(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller], fault: Fault
) -> None:
    first, second = callers
    with HttpRelay(alive.port, keeps_cache_control=True) as relay:
        certificate_of(client, relay.url, first)
        relay.break_with(fault)
        outcome = client.call(relay.url, GET_CERTIFICATE, second.asks_own())
    assert outcome == Outcome(thrown=outcome.thrown)
    assert outcome.thrown


@pytest.mark.parametrize("method", [CONTEXT, CAPABILITIES, GET_CERTIFICATE, RELEASE, SYNC])
def test_call_fails_after_the_gateway_was_killed(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller], method: str
) -> None:
    first, second = callers
    certificate_of(client, alive.url, first)
    answer_of(client.call(alive.url, CONTEXT, first.asks()))
    alive.gateway.kill()
    outcome = client.call(alive.url, method, second.asks_own())
    assert outcome == Outcome(thrown="TypeError: fetch failed")


def test_call_fails_when_the_gateway_is_killed_in_the_middle_of_it(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    first, second = callers
    certificate_of(client, alive.url, first)
    alive.gateway.process.pause()
    client.begin(alive.url, GET_CERTIFICATE, second.asks_own())
    wait_until(lambda: has_unread_bytes(alive.port), "the call has come to the gateway")
    alive.gateway.kill()
    assert client.outcome() == Outcome(thrown="TypeError: fetch failed")


def test_error_is_not_answered_again_after_a_kill(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    refused = client.call(alive.url, CONTEXT, {"apiToken": "gwc_nobody_nothing"})
    assert refused.error_data == {"code": "unauthorized"}
    alive.gateway.kill()
    outcome = client.call(alive.url, CONTEXT, callers[0].asks())
    assert outcome == Outcome(thrown="TypeError: fetch failed")


def test_each_caller_gets_its_own_answers_after_a_restart(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    certificates = [certificate_of(client, alive.url, caller) for caller in callers]
    alive.gateway.kill()
    assert client.call(alive.url, CONTEXT, callers[1].asks()).thrown
    alive.gateway.start()
    assert [certificate_of(client, alive.url, caller) for caller in callers] == certificates
    ids = [client_id_of(client, alive.url, caller) for caller in callers]
    assert ids == [caller.client_id for caller in callers]


def test_answer_is_the_callers_own_when_the_client_is_told_to_use_its_cache(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    ids = []
    for caller in callers:
        outcome = client.call(alive.url, CONTEXT, caller.asks(), use_cache=True)
        ids.append(answer_of(outcome)["context"]["clientId"])
    assert ids == [caller.client_id for caller in callers]
