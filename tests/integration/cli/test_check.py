"""`gateway check` as a whole, and what it says of the configuration, the files and the zones."""

import json
from collections.abc import Iterator
from pathlib import Path

import dns.message
import dns.query
import pytest

from tests.integration.cli.running import LIMIT_SECONDS, check, make, make_client, run, spoil
from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.gateway import write_gateway_config
from tests.lab.pebble import start_pebble
from tests.lab.ports import free_port
from tests.lab.redis import RedisProcess


def test_check_finds_nothing_wrong_in_the_lab(config_file: Path, bind: BindPair) -> None:
    make_client(config_file)
    findings = check(config_file)
    assert list(findings) == [
        "config",
        "keyring",
        "page",
        "redis",
        "clock redis",
        "acme account 127.0.0.1",
        "acme 127.0.0.1",
        *(f"{kind} {zone}" for zone in bind.zones for kind in ("zone", "clock", "name servers")),
    ]
    assert {finding["state"] for finding in findings.values()} == {"ok"}


def test_check_prints_one_line_for_each_finding(config_file: Path) -> None:
    spoil(config_file, 'listen = ".*"', 'listen = "0.0.0.0:8053"\nallow_plain_http = true')
    spoil(config_file, "algorithm = .*", 'algorithm = "hmac-sha512"')
    result = run("check", "--config", config_file)
    lines = result.stdout.splitlines()
    assert result.returncode == 1
    assert {line[:2] for line in lines} == {"✓ ", "! ", "✗ "}
    assert all(" → " in line for line in lines if line[0] in "!✗")
    assert f"✓ config: {config_file} is valid." in lines


def test_check_writes_nothing_to_a_zone(config_file: Path, bind: BindPair) -> None:
    before = [serial(bind, zone) for zone in bind.zones]
    check(config_file)
    assert [serial(bind, zone) for zone in bind.zones] == before


def serial(bind: BindPair, zone: str) -> int:
    host, port = bind.primary
    query = dns.message.make_query(zone, "SOA")
    answer = dns.query.tcp(query, host, port=port, timeout=LIMIT_SECONDS).answer[0]
    return int(answer[0].serial)


def test_check_tells_every_fault_of_the_configuration(config_file: Path) -> None:
    spoil(config_file, 'listen = ".*"', 'listen = "nowhere"')
    result = run("check", "--config", config_file, environ={"GATEWAY_LOG__LEVEL": "loud"})
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        '✗ config: http.listen: must end in a port, such as :8053, not "nowhere"',
        "✗ config: GATEWAY_LOG__LEVEL: must be one of"
        " 'debug', 'info', 'warning' or 'error', not \"loud\"",
    ]


def test_other_commands_tell_every_fault_and_end_with_2(config_file: Path) -> None:
    spoil(config_file, 'listen = ".*"', 'listen = "nowhere"')
    result = run("serve", "--config", config_file, environ={"GATEWAY_REDSI__URL": "x"})
    assert result.returncode == 2
    assert result.stdout == ""
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == [
        "GATEWAY_REDSI__URL",
        "http.listen",
    ]


def test_check_takes_the_file_that_the_environment_names(config_file: Path) -> None:
    result = run("check", environ={"GATEWAY_CONFIG": str(config_file)})
    assert result.returncode == 0
    assert f"✓ config: {config_file} is valid." in result.stdout


@pytest.mark.parametrize(
    ("pattern", "replacement", "remedy"),
    [
        ('(?m)^secret = ".*"', 'secret = "d3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmc="', "Copy the secret"),
        ('(?s)(tsig\\].)name = "[^"]*"', '\\1name = "unknown-key"', "name and algorithm"),
        ("algorithm = .*", 'algorithm = "hmac-sha384"', "name and algorithm"),
    ],
)
def test_check_finds_a_key_that_the_server_refuses(
    config_file: Path, bind: BindPair, pattern: str, replacement: str, remedy: str
) -> None:
    spoil(config_file, pattern, replacement)
    findings = check(config_file)
    for zone in bind.zones:
        assert findings[f"zone {zone}"]["state"] == "failed"
        assert remedy in findings[f"zone {zone}"]["remedy"]


def test_check_finds_a_zone_that_the_server_does_not_have(
    config_file: Path, bind: BindPair
) -> None:
    spoil(config_file, 'name = "example.net.test"', 'name = "absent.test"')
    findings = check(config_file)
    assert findings["zone absent.test"]["state"] == "failed"
    assert "Does the server have this zone" in findings["zone absent.test"]["remedy"]
    assert findings["zone example.test"]["state"] == "ok"


def test_check_finds_a_primary_that_is_not_there(config_file: Path) -> None:
    spoil(config_file, 'primary = ".*"', f'primary = "127.0.0.1:{free_port()}"')
    findings = check(config_file)
    assert findings["zone example.test"]["state"] == "failed"
    assert "running, and reachable" in findings["zone example.test"]["remedy"]
    assert findings["redis"]["state"] == "ok"


@pytest.mark.parametrize(
    ("primaries", "states", "words"),
    [
        (r'["{dead}", "\1"]', ["warning", "ok"], "{alive} answers in its place."),
        (r'["\1", "{dead}"]', ["ok", "warning"], "{alive} answers."),
    ],
    ids=["preferred", "standby"],
)
def test_check_warns_of_a_dead_primary_that_another_stands_in_for(
    config_file: Path, bind: BindPair, primaries: str, states: list[str], words: str
) -> None:
    dead, alive = f"127.0.0.1:{free_port()}", "{}:{}".format(*bind.primary)
    spoil(config_file, r'primary = "(.*)"', f"primary = {primaries.format(dead=dead)}")
    result = run("check", "--json", "--config", config_file)
    assert result.returncode == 0
    checks = json.loads(result.stdout)["checks"]
    zone = bind.zones[0]
    of_zone = [check for check in checks if check["part"] == f"zone {zone}"]
    assert [check["state"] for check in of_zone] == states
    warning = of_zone[states.index("warning")]["finding"]
    assert dead in warning
    assert warning.endswith(words.format(alive=alive))
    servers = [check["state"] for check in checks if check["part"] == f"name servers {zone}"]
    assert servers == ["ok"]


def test_check_warns_of_a_redis_without_clients(config_file: Path) -> None:
    finding = check(config_file)["clients"]
    assert finding["state"] == "warning"
    assert "lost its data" in finding["remedy"]


def test_check_ends_when_servers_hang(
    tmp_path: Path, own_redis: RedisProcess, own_bind: BindPair
) -> None:
    own_pebble = start_pebble(make(tmp_path / "pebble"), own_bind.primary)
    try:
        file = write_gateway_config(
            tmp_path / "gateway", own_bind, own_redis.url, own_pebble
        ).config_file
        own_bind.primary_process.pause()
        own_pebble.process.pause()
        findings = check(file)
    finally:
        own_bind.primary_process.resume()
        own_pebble.process.resume()
        own_pebble.stop()
    assert findings["zone example.test"]["state"] == "failed"
    assert findings["acme 127.0.0.1"]["state"] == "failed"


@pytest.fixture
def own_bind(tmp_path: Path) -> Iterator[BindPair]:
    pair = start_bind_pair(make(tmp_path / "bind"))
    yield pair
    pair.stop()


def test_check_finds_a_keyring_that_is_missing(config_file: Path) -> None:
    (config_file.parent / "keyring").unlink()
    findings = check(config_file)
    assert findings["keyring"]["state"] == "failed"
    assert findings["acme 127.0.0.1"]["state"] == "ok"


def test_check_warns_of_secrets_that_others_may_read(config_file: Path) -> None:
    (config_file.parent / "keyring").chmod(0o644)
    config_file.chmod(0o644)
    findings = check(config_file)
    assert (findings["keyring"]["state"], findings["files"]["state"]) == ("warning", "warning")
    assert str(config_file) in findings["files"]["finding"]


def test_check_warns_of_a_listener_without_tls(config_file: Path) -> None:
    spoil(config_file, 'listen = ".*"', 'listen = "[::]:8053"\nallow_plain_http = true')
    finding = check(config_file)["http"]
    assert finding["state"] == "warning"
    assert "TLS" in finding["remedy"]


def test_check_finds_that_a_file_of_tls_is_missing(config_file: Path) -> None:
    files = 'tls = "files"\ncertificate_file = "nope.pem"\nkey_file = "nope.key"'
    spoil(config_file, "(listen = .*)", rf"\1\n{files}")
    finding = check(config_file)["http"]
    assert finding["state"] == "failed"
    assert finding["finding"].endswith("cannot be read: No such file or directory.")
