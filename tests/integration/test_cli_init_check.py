"""`gateway init` and `gateway check` as a person runs them, on real servers."""

import base64
import hashlib
import json
import re
import secrets
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest
import redis

from gateway.store.embedded import EmbeddedRedis
from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.gateway import write_gateway_config
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.ports import free_port
from tests.lab.redis import RedisProcess, start_redis

LIMIT_SECONDS = 60.0
GATEWAY = Path(sys.executable).with_name("gateway")
TOKEN = re.compile(r"gwa_[A-Za-z0-9_-]{43}")

Findings = dict[str, dict[str, str]]


def run(*arguments: str | Path, environ: Mapping[str, str] | None = None) -> Any:
    return subprocess.run(
        [GATEWAY, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
        env={"PATH": "/usr/bin:/usr/sbin:/bin", **(environ or {})},
    )


def check(config_file: Path, environ: Mapping[str, str] | None = None) -> Findings:
    """The findings by part, the last of each; no output shows a secret of the file."""
    result = run("check", "--json", "--config", config_file, environ=environ)
    answer = json.loads(result.stdout)
    findings = {finding["part"]: finding for finding in answer["checks"]}
    failed = any(finding["state"] == "failed" for finding in answer["checks"])
    assert answer["ok"] is not failed
    assert result.returncode == (1 if failed else 0)
    assert result.stderr == ""
    for secret in re.findall(r'secret = "([^"]+)"', config_file.read_text()):
        assert secret not in result.stdout
    return findings


@pytest.fixture
def config_file(
    tmp_path: Path, bind: BindPair, own_redis: RedisProcess, pebble: PebbleProcess
) -> Path:
    """A configuration in which all is well."""
    return write_gateway_config(tmp_path / "gateway", bind, own_redis.url, pebble).config_file


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    """Each keyring has a Redis of its own, as in life: one cannot open what another sealed."""
    server = start_redis(make(tmp_path / "redis"))
    yield server
    server.stop()


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def spoil(config_file: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, config_file.read_text())
    assert count > 0
    config_file.write_text(text)


def configure(own_redis: RedisProcess, **settings: str) -> None:
    with redis.Redis.from_url(own_redis.url, decode_responses=True) as client:
        for name, value in settings.items():
            client.config_set(name.replace("_", "-"), value)


# init


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "gateway"


def test_init_writes_a_configuration_that_check_accepts(folder: Path) -> None:
    assert run("init", folder).returncode == 0
    findings = check(folder / "gateway.toml")
    assert {part: finding["state"] for part, finding in findings.items()} == {
        "config": "ok",
        "keyring": "ok",
        "redis": "ok",
        "zones": "warning",
        "acme": "ok",
    }


def test_init_writes_files_for_its_user_alone(folder: Path) -> None:
    run("init", folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("gateway.toml", "keyring"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_init_shows_the_token_and_stores_its_digest(folder: Path) -> None:
    output = run("init", folder).stdout
    (token,) = TOKEN.findall(output)
    text = (folder / "gateway.toml").read_text()
    assert token not in text
    digest = hashlib.sha256(token.encode()).hexdigest()
    assert tomllib.loads(text)["admin"]["token_sha256"] == digest


def test_init_makes_a_new_token_and_a_new_key_each_time(tmp_path: Path) -> None:
    outputs = [run("init", tmp_path / name).stdout for name in ("a", "b")]
    assert TOKEN.findall(outputs[0]) != TOKEN.findall(outputs[1])
    assert (tmp_path / "a" / "keyring").read_text() != (tmp_path / "b" / "keyring").read_text()


def test_init_tells_the_next_steps(folder: Path) -> None:
    output = run("init", folder).stdout
    assert f"gateway check --config {folder / 'gateway.toml'}" in output
    assert f"gateway serve --config {folder / 'gateway.toml'}" in output


@pytest.mark.parametrize("name", ["gateway.toml", "keyring"])
def test_init_overwrites_nothing(folder: Path, name: str) -> None:
    folder.mkdir(parents=True)
    (folder / name).write_text("mine")
    result = run("init", folder)
    assert result.returncode == 1
    assert result.stderr == f"Nothing was written: {folder / name} would be overwritten.\n"
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "mine"


def test_init_follows_no_link(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "keyring").symlink_to(tmp_path / "elsewhere")
    assert run("init", folder).returncode == 1
    assert not (tmp_path / "elsewhere").exists()


def test_init_says_why_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("init", tmp_path / "file" / "folder")
    assert result.returncode == 1
    assert "cannot be written: Not a directory" in result.stderr
    assert result.stderr.count("\n") == 1


# check


def test_check_finds_nothing_wrong_in_the_lab(config_file: Path, bind: BindPair) -> None:
    findings = check(config_file)
    assert list(findings) == [
        "config",
        "keyring",
        "redis",
        "acme account",
        "acme",
        *(f"{kind} {zone}" for zone in bind.zones for kind in ("zone", "name servers", "clock")),
    ]
    assert {finding["state"] for finding in findings.values()} == {"ok"}


def test_check_prints_one_line_for_each_finding(config_file: Path) -> None:
    spoil(config_file, 'listen = ".*"', 'listen = "0.0.0.0:8053"')
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


def test_check_may_be_repeated_with_the_same_account(config_file: Path) -> None:
    first, second = check(config_file)["acme account"], check(config_file)["acme account"]
    assert "The authority now has the account https://" in first["finding"]
    assert "The authority has the account https://" in second["finding"]
    assert second["finding"].split()[-1] == first["finding"].split()[-1]


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
    ("pattern", "replacement"),
    [
        ('(?m)^secret = ".*"', 'secret = "d3Jvbmctd3Jvbmctd3Jvbmctd3Jvbmc="'),
        ('(?s)(tsig\\].)name = "[^"]*"', '\\1name = "unknown-key"'),
        ("algorithm = .*", 'algorithm = "hmac-sha384"'),
    ],
)
def test_check_finds_a_key_that_the_server_refuses(
    config_file: Path, bind: BindPair, pattern: str, replacement: str
) -> None:
    spoil(config_file, pattern, replacement)
    findings = check(config_file)
    for zone in bind.zones:
        assert findings[f"zone {zone}"]["state"] == "failed"
        assert "tsig" in findings[f"zone {zone}"]["remedy"]


def test_check_finds_a_zone_that_the_server_does_not_have(
    config_file: Path, bind: BindPair
) -> None:
    spoil(config_file, 'name = "example.net.test"', 'name = "absent.test"')
    findings = check(config_file)
    assert findings["zone absent.test"]["state"] == "failed"
    assert findings["zone example.test"]["state"] == "ok"


def test_check_finds_a_primary_that_is_not_there(config_file: Path) -> None:
    spoil(config_file, 'primary = ".*"', f'primary = "127.0.0.1:{free_port()}"')
    findings = check(config_file)
    assert findings["zone example.test"]["state"] == "failed"
    assert findings["redis"]["state"] == "ok"


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
    assert findings["acme"]["state"] == "failed"


@pytest.fixture
def own_bind(tmp_path: Path) -> Iterator[BindPair]:
    pair = start_bind_pair(make(tmp_path / "bind"))
    yield pair
    pair.stop()


def test_check_finds_a_redis_that_is_not_there(config_file: Path) -> None:
    spoil(config_file, "redis://[^/]*", f"redis://:hush@127.0.0.1:{free_port()}")
    finding = check(config_file)["redis"]
    assert finding["state"] == "failed"
    assert "hush" not in json.dumps(finding)


@pytest.mark.parametrize(
    ("settings", "state", "words"),
    [
        ({"appendfsync": "everysec"}, "warning", "the last second"),
        ({"appendonly": "no", "save": "3600 1"}, "warning", "since its last snapshot"),
        ({"appendonly": "no"}, "failed", "it keeps nothing"),
    ],
)
def test_check_finds_a_redis_that_may_lose_data(
    config_file: Path, own_redis: RedisProcess, settings: dict[str, str], state: str, words: str
) -> None:
    configure(own_redis, **settings)
    spoil(config_file, "redis://[^/]*", f"redis://127.0.0.1:{own_redis.port}")
    finding = check(config_file)["redis"]
    assert finding["state"] == state
    assert words in finding["finding"]


def test_check_finds_a_redis_that_throws_keys_away(
    config_file: Path, own_redis: RedisProcess
) -> None:
    configure(own_redis, maxmemory="100mb", maxmemory_policy="allkeys-lru")
    spoil(config_file, "redis://[^/]*", f"redis://127.0.0.1:{own_redis.port}")
    result = run("check", "--config", config_file)
    assert result.returncode == 1
    assert "it throws keys away when its memory is full" in result.stdout


def test_check_says_what_a_redis_without_config_does_not_tell(
    config_file: Path, own_redis: RedisProcess
) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.execute_command(
            "ACL", "SETUSER", "limited", "on", ">hush-hush", "~*", "+@all", "-config"
        )
    spoil(config_file, "redis://[^/]*", f"redis://limited:hush-hush@127.0.0.1:{own_redis.port}")
    finding = check(config_file)["redis"]
    assert finding["state"] == "warning"
    assert "CONFIG is forbidden" in finding["finding"]
    assert f"at redis://127.0.0.1:{own_redis.port}/0" in finding["finding"]


def test_check_finds_a_redis_password_that_is_wrong(
    config_file: Path, own_redis: RedisProcess
) -> None:
    configure(own_redis, requirepass="right")
    spoil(config_file, "redis://[^/]*", f"redis://:hush-hush@127.0.0.1:{own_redis.port}")
    finding = check(config_file)["redis"]
    assert finding["state"] == "failed"
    assert "hush" not in json.dumps(finding)


def test_check_starts_the_embedded_redis_and_ends_it(config_file: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    findings = check(config_file)
    assert "(embedded, started for this check)" in findings["redis"]["finding"]
    assert findings["acme account"]["state"] == "ok"
    assert not (config_file.parent / "state" / "redis" / "redis.sock").exists()


async def test_check_uses_the_embedded_redis_of_a_gateway_that_runs(config_file: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    embedded = EmbeddedRedis(config_file.parent / "state")
    await embedded.start()
    try:
        finding = check(config_file)["redis"]
        assert "answers (embedded);" in finding["finding"]
        assert embedded.socket_path.exists()
    finally:
        await embedded.stop()


def test_check_finds_that_the_redis_program_is_missing(config_file: Path, tmp_path: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    finding = check(config_file, {"PATH": str(tmp_path)})["redis"]
    assert finding["state"] == "failed"
    assert "Debian package redis-server" in finding["finding"]


def test_check_finds_an_authority_that_is_not_there(config_file: Path) -> None:
    spoil(config_file, 'directory = ".*"', f'directory = "https://127.0.0.1:{free_port()}/dir"')
    findings = check(config_file)
    assert findings["acme"]["state"] == "failed"
    assert "acme account" not in findings


def test_check_finds_an_authority_whose_certificate_is_not_trusted(config_file: Path) -> None:
    spoil(config_file, "ca_bundle = .*", "")
    finding = check(config_file)["acme"]
    assert finding["state"] == "failed"
    assert "acme.ca_bundle" in finding["remedy"]


def test_check_finds_an_account_that_is_refused(
    tmp_path: Path, bind: BindPair, own_redis: RedisProcess
) -> None:
    hmac_key = base64.urlsafe_b64encode(secrets.token_bytes(48)).decode()
    settings = {
        "externalAccountBindingRequired": True,
        "externalAccountMACKeys": {"kid": hmac_key},
    }
    own_pebble = start_pebble(make(tmp_path / "pebble"), bind.primary, settings=settings)
    try:
        written = write_gateway_config(tmp_path / "gateway", bind, own_redis.url, own_pebble)
        finding = check(written.config_file)["acme account"]
        assert finding["state"] == "failed"
        assert "acme.eab" in finding["remedy"]
        environ = {
            "GATEWAY_ACME__EAB__KEY_ID": "kid",
            "GATEWAY_ACME__EAB__HMAC_KEY": hmac_key,
        }
        assert check(written.config_file, environ)["acme account"]["state"] == "ok"
    finally:
        own_pebble.stop()


def test_check_finds_an_account_key_of_another_keyring(config_file: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    check(config_file)
    keyring = config_file.parent / "keyring"
    keyring.write_text("other " + keyring.read_text().split()[1][::-1].replace("=", "") + "=\n")
    finding = check(config_file)["acme account"]
    assert finding["state"] == "failed"
    assert "another keyring" in finding["finding"]


def test_check_finds_a_keyring_that_is_missing(config_file: Path) -> None:
    (config_file.parent / "keyring").unlink()
    findings = check(config_file)
    assert findings["keyring"]["state"] == "failed"
    assert findings["acme"]["state"] == "ok"


def test_check_warns_of_secrets_that_others_may_read(config_file: Path) -> None:
    (config_file.parent / "keyring").chmod(0o644)
    config_file.chmod(0o644)
    findings = check(config_file)
    assert (findings["keyring"]["state"], findings["files"]["state"]) == ("warning", "warning")
    assert str(config_file) in findings["files"]["finding"]


def test_check_warns_of_a_listener_without_tls(config_file: Path) -> None:
    spoil(config_file, 'listen = ".*"', 'listen = "[::]:8053"')
    finding = check(config_file)["http"]
    assert finding["state"] == "warning"
    assert "TLS" in finding["remedy"]
