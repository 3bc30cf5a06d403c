"""`gateway client`: who am I, what the gateway can do, records, and each way to be refused."""

import json
from pathlib import Path

import pytest

from tests.integration.cli.clientside import Relay, new_relay
from tests.integration.service.calling import World
from tests.lab.lab import Lab

ADDRESS = "198.51.100.85"


@pytest.fixture(scope="module")
def world(lab: Lab) -> World:
    return World(lab.config.url, lab.config.admin_token)


@pytest.fixture
def relay(world: World, tmp_path: Path) -> Relay:
    return new_relay(world, tmp_path)


def test_context_tells_who_i_am_and_what_i_may(relay: Relay) -> None:
    lines = dict(line.split(maxsplit=1) for line in relay.done("context").splitlines())
    assert lines["role"] == "gatewayClient"
    assert lines["generation"] == "1"
    assert lines["hostnames"] == relay.hostname
    assert lines["addresses"] == "198.51.100.0/24, 2001:db8::/32"
    assert lines["capabilities"] == "readCertificates, requestCertificates, syncDnsRecords"


def test_context_as_json_is_the_answer_of_the_contract(relay: Relay) -> None:
    answer = relay.asked(0, "context")
    assert answer == relay.ownership.caller.call("getGatewayClientContext")


def test_context_of_the_operator_says_so(relay: Relay, world: World) -> None:
    relay.token_file.write_text(str(world.admin.token))
    assert relay.done("context").startswith("role         admin: ")
    assert relay.asked(0, "context") == {"context": {"role": "admin"}}


def test_capabilities_are_told_either_way(relay: Relay) -> None:
    assert relay.done("capabilities") == "records      yes\ncertificates yes\n"
    assert relay.asked(0, "capabilities") == {
        "capabilities": {"dns": {"clientRecords": True}, "certificates": {"exactIssuance": True}}
    }


def test_record_is_published_replaced_and_withdrawn(relay: Relay) -> None:
    here = relay.hostname
    assert relay.done("record", "set", here, "--address", ADDRESS) == (
        f"published  {here}  300  A  {ADDRESS}\n"
    )
    assert relay.done("record", "set", here, "--address", "2001:db8::85", "--ttl", "60") == (
        f"replaced  {here}  60  AAAA  2001:db8::85\n"
    )
    withdrawn = f"done  {here}: This ownership has no record at {here} any more.\n"
    assert relay.done("record", "delete", here) == withdrawn


def test_record_as_json_is_the_answer_of_the_contract(relay: Relay) -> None:
    answer = relay.asked(0, "record", "set", relay.hostname, "--address", ADDRESS)
    assert answer["status"] == "managed-created"
    assert answer["record"] == {"type": "A", "value": ADDRESS, "ttl": 300}
    assert relay.asked(0, "record", "delete", relay.hostname)["status"] == "managed-deleted"


def test_conflict_shows_its_evidence_and_what_to_do(relay: Relay) -> None:
    here = relay.hostname
    relay.done("record", "set", here, "--address", ADDRESS)
    taking = ("record", "set", here, "--app-id", "another", "--address", ADDRESS)
    told = relay.failed(1, *taking).splitlines()
    assert told[0].startswith(f"record-conflict  {here}: ")
    assert told[2].split() == ["NAME", "TTL", "TYPE", "VALUE"]
    assert ["A", ADDRESS] in [line.split()[2:] for line in told[3:]]
    assert told[-1] == f"The operator sees more with `gateway explain {here}`."
    answer = relay.asked(1, *taking)
    assert answer["status"] == "record-conflict"
    assert ADDRESS in [found["value"] for found in answer["conflictingRecords"]]


def test_address_that_is_not_allowed_ends_with_1(relay: Relay) -> None:
    told = relay.failed(1, "record", "set", relay.hostname, "--address", "192.0.2.1")
    assert told.startswith(f"target-invalid  {relay.hostname}: ")
    assert "`gateway client context` shows the addresses" in told


def test_name_in_no_zone_ends_with_1_since_asking_again_is_no_use(
    world: World, tmp_path: Path
) -> None:
    stray = new_relay(world, tmp_path, hostnamePatterns=["**.example.org"])
    told = stray.failed(1, "record", "set", "a.example.org", "--address", ADDRESS)
    assert told.startswith("zone-unavailable  a.example.org: ")
    assert "Asking again is no use" in told


def test_violations_are_told_in_the_words_of_the_command_line_and_nothing_is_sent(
    relay: Relay, nobody: str
) -> None:
    typed = ["record", "set", "A.Example.test", "--address", "198.51.100.085", "--ttl", "5"]
    assert relay.failed(2, *typed, "--url", nobody).splitlines() == [
        'HOSTNAME must be spelled "a.example.test", not "A.Example.test".',
        '--address must be spelled "198.51.100.85", not "198.51.100.085".',
        "--ttl must be a whole number from 60 to 86400, not the number 5.",
    ]
    error = relay.asked(2, *typed, "--url", nobody)["error"]
    assert error["code"] == "request-invalid"
    assert len(error["violations"]) == 3


def test_foreign_hostname_ends_with_1_and_says_where_the_patterns_are(relay: Relay) -> None:
    typed = ("record", "set", "elsewhere.example.test", "--address", ADDRESS)
    told = relay.failed(1, *typed)
    assert "elsewhere.example.test" in told
    assert "`gateway client context` shows the patterns" in told
    assert relay.asked(1, *typed)["error"]["code"] == "hostname-forbidden"


def test_missing_capability_is_named(world: World, tmp_path: Path) -> None:
    reader = new_relay(world, tmp_path, capabilities=["readCertificates"])
    typed = ("record", "set", reader.hostname, "--address", ADDRESS)
    assert "`gateway client context` shows the capabilities" in reader.failed(1, *typed)
    error = reader.asked(1, *typed)["error"]
    assert (error["code"], error["capability"]) == ("forbidden", "syncDnsRecords")


@pytest.mark.parametrize("source", ["token file", "variable"])
def test_unknown_token_ends_with_1_and_names_where_it_came_from(relay: Relay, source: str) -> None:
    unknown = relay.token[:-1] + ("a" if relay.token[-1] != "a" else "b")
    if source == "variable":
        environ = {"GATEWAY_TOKEN_FILE": "", "GATEWAY_TOKEN": unknown}
    else:
        relay.token_file.write_text(unknown)
        environ = {}
    told = relay.failed(1, "context", **environ)
    assert unknown not in told
    assert (str(relay.token_file) if not environ else "GATEWAY_TOKEN") in told
    assert "ask the operator for a new one" in told
    assert relay.asked(1, "context", **environ)["error"]["code"] == "unauthorized"


def test_option_comes_before_the_variables(relay: Relay) -> None:
    elsewhere = {"GATEWAY_TOKEN_FILE": "/nowhere", "GATEWAY_TOKEN": "gwa_nothing"}
    told = relay.asked(0, "context", "--token-file", relay.token_file, **elsewhere)
    assert told["context"]["hostnamePatterns"] == [relay.hostname]


def test_no_token_ends_with_2_and_names_the_places_for_one(relay: Relay) -> None:
    told = relay.failed(2, "context", GATEWAY_TOKEN_FILE="")
    assert "--token-file" in told
    assert "$GATEWAY_TOKEN_FILE" in told
    assert "$GATEWAY_TOKEN" in told
    assert relay.asked(2, "context", GATEWAY_TOKEN_FILE="")["error"]["code"] == "usage"


def test_token_file_that_is_not_there_is_named(relay: Relay, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    told = relay.failed(2, "context", "--token-file", missing)
    assert told == f"The token file {missing} cannot be read: No such file or directory.\n"


def test_no_url_ends_with_2(relay: Relay) -> None:
    told = relay.failed(2, "context", GATEWAY_URL="")
    assert told == "Say which gateway to call: --url URL, or $GATEWAY_URL.\n"


def test_gateway_that_does_not_run_ends_with_3(relay: Relay, nobody: str) -> None:
    typed = ("context", "--url", nobody, "--deadline", "0.3")
    told = relay.failed(3, *typed)
    assert nobody in told
    assert "Is --url right, and does the gateway run?" in told
    assert relay.asked(3, *typed)["error"]["code"] in ("unreachable", "deadline-passed")


def test_authority_that_is_not_trusted_is_told_with_the_option_for_it(
    relay: Relay, lab: Lab
) -> None:
    """The TLS server is Pebble's; trusting it leads no further, since it is no gateway."""
    url = lab.pebble.directory_url.rsplit("/", 1)[0]
    told = relay.failed(1, "context", "--url", url)
    assert "is not trusted" in told
    assert "--ca-file" in told
    answer = relay.asked(1, "context", "--url", url, "--ca-file", lab.pebble.ca_file)
    assert answer["error"]["code"] == "answer-invalid"


def test_authorities_that_are_none_end_with_2(relay: Relay) -> None:
    told = relay.failed(2, "context", "--url", "https://127.0.0.1", "--ca-file", relay.token_file)
    assert told.startswith(f"The CA file {relay.token_file} cannot be used")


def test_plain_http_to_another_machine_is_refused_before_the_token_goes(relay: Relay) -> None:
    told = relay.failed(2, "context", "--url", "http://192.0.2.1")
    assert "unencrypted" in told


def test_json_is_one_line_of_ascii(relay: Relay) -> None:
    output = relay.run("context", "--json").stdout
    assert output.isascii()
    assert output.count("\n") == 1
    json.loads(output)
