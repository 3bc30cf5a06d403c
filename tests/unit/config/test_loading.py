from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.config import Address, ConfigInvalid, find_file, load_settings
from tests.unit.config.conftest import (
    ACME,
    MINIMAL,
    SECRET,
    SECRET_BASE64,
    TOKEN_SHA256,
    ZONE,
    Faults,
    Load,
)

EVERYTHING = """
state_dir = "/var/lib/gateway"
keyring_file = "keys/ring"

[admin]
token_sha256_file = "digest"

[http]
listen = "[::1]:80"

[redis]
url_file = "redis-url"

[log]
level = "debug"
format = "json"

[[zones]]
name = "example.test"
primary = ["[2001:db8::53]:5300", "192.0.2.54"]
silent_server_seconds = 60
wildcard_hosts = "interrupt"
servers = ["ns1.example.test", "192.0.2.1:53"]
nameserver_port = 5301

[zones.tsig]
name = "key.example"
algorithm = "hmac-sha512"
secret_file = "tsig"

[[acme]]
directory = "https://ca.example.test/dir"
name = "first"
profile = "shortlived"
preferred_chain = "Example Root X1"
contact = ["mailto:ops@example.test"]
key_type = "rsa-4096"
renew_at = 0.5

[acme.eab]
key_id = "kid"
hmac_key_file = "hmac"

[worker]
enabled = false
concurrency = 4
"""
HMAC_KEY = "MDEyMzQ1Njc4OWFiY2RlZg"
REDIS_URL = "rediss://:hush-hush@redis.example.test/0"


def test_defaults_are_those_of_one_machine(load: Load, tmp_path: Path) -> None:
    settings = load(MINIMAL)
    assert settings.state_dir == tmp_path / "state"
    assert settings.keyring_file == tmp_path / "keyring"
    assert settings.admin.token_sha256 == TOKEN_SHA256
    assert (settings.http.host, settings.http.port) == ("127.0.0.1", 8053)
    assert (settings.redis.url, settings.redis.is_embedded) == ("embedded", True)
    assert (settings.log.level, settings.log.format) == ("info", "console")
    assert (settings.zones, settings.acme) == ((), ())
    assert (settings.worker.enabled, settings.worker.concurrency) == (True, 32)


def test_zone_has_the_default_ports_and_algorithm_when_none_is_given(load: Load) -> None:
    (zone,) = load(MINIMAL + ZONE).zones
    assert zone.primaries == (Address("192.0.2.53", 53),)
    assert (zone.servers, zone.nameserver_port) == ((), 53)
    assert (zone.silent_server_seconds, zone.wildcard_hosts) == (None, "refuse")
    assert (zone.tsig.algorithm, zone.tsig.secret) == ("hmac-sha256", SECRET)


def test_acme_has_defaults_beside_its_directory(load: Load) -> None:
    (acme,) = load(MINIMAL + ACME).acme
    assert acme.name == "ca.example.test"
    assert (acme.profile, acme.preferred_chain) == (None, None)
    assert (acme.ca_bundle, acme.contact, acme.eab) == (None, (), None)
    assert (acme.key_type, acme.renew_at) == ("ecdsa-p256", 0.66)


def test_authorities_keep_their_order(load: Load) -> None:
    others = "".join(ACME.replace("ca.", f"{name}.") for name in ("b", "a"))
    names = [acme.name for acme in load(MINIMAL + ACME + others).acme]
    assert names == ["ca.example.test", "b.example.test", "a.example.test"]


@pytest.fixture
def secret_files(tmp_path: Path) -> dict[str, str]:
    contents = {
        "digest": TOKEN_SHA256,
        "redis-url": REDIS_URL,
        "tsig": SECRET_BASE64,
        "hmac": HMAC_KEY,
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(f"{content}\n")
    return contents


def test_every_key_is_read(load: Load, tmp_path: Path, secret_files: dict[str, str]) -> None:
    settings = load(EVERYTHING)
    (zone,) = settings.zones
    assert settings.state_dir == Path("/var/lib/gateway")
    assert settings.keyring_file == tmp_path / "keys" / "ring"
    assert settings.http.listen == Address("::1", 80)
    assert (settings.log.level, settings.log.format) == ("debug", "json")
    assert zone.primaries == (Address("2001:db8::53", 5300), Address("192.0.2.54", 53))
    assert zone.servers == (Address("ns1.example.test", 5301), Address("192.0.2.1", 53))
    assert (zone.silent_server_seconds, zone.wildcard_hosts) == (60, "interrupt")
    assert (zone.tsig.name, zone.tsig.algorithm) == ("key.example", "hmac-sha512")
    (acme,) = settings.acme
    assert (acme.name, acme.directory) == ("first", "https://ca.example.test/dir")
    assert (acme.profile, acme.preferred_chain) == ("shortlived", "Example Root X1")
    assert acme.contact == ("mailto:ops@example.test",)
    assert (acme.key_type, acme.renew_at) == ("rsa-4096", 0.5)
    assert (settings.worker.enabled, settings.worker.concurrency) == (False, 4)


def test_every_secret_is_read_from_its_file(load: Load, secret_files: dict[str, str]) -> None:
    settings = load(EVERYTHING)
    assert settings.admin.token_sha256 == TOKEN_SHA256
    assert settings.redis.url == REDIS_URL
    assert settings.zones[0].tsig.secret == SECRET
    (acme,) = settings.acme
    assert acme.eab is not None
    assert acme.eab.hmac_key == HMAC_KEY


def test_no_secret_is_in_the_repr(load: Load, secret_files: dict[str, str]) -> None:
    settings = load(EVERYTHING)
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    for secret in (SECRET.decode(), SECRET_BASE64, REDIS_URL, "hush-hush", HMAC_KEY):
        assert secret not in shown


def test_secret_files_are_known(load: Load, tmp_path: Path, secret_files: dict[str, str]) -> None:
    names = {path.relative_to(tmp_path).as_posix() for path in load(EVERYTHING).secret_files}
    assert names == {"keys/ring", *secret_files}


@pytest.mark.parametrize(
    ("text", "holds_secret"),
    [
        (MINIMAL, False),
        (MINIMAL + ZONE, True),
        (MINIMAL + '[redis]\nurl = "redis://h"', False),
        (MINIMAL + '[redis]\nurl = "redis://:hush@h"', True),
    ],
)
def test_file_itself_is_a_secret_file_when_it_holds_one(
    load: Load, tmp_path: Path, text: str, *, holds_secret: bool
) -> None:
    assert (tmp_path / "gateway.toml" in load(text).secret_files) is holds_secret


def test_settings_cannot_be_changed(load: Load) -> None:
    settings = load(MINIMAL)
    with pytest.raises(ValidationError, match="frozen"):
        settings.state_dir = Path("/")
    with pytest.raises(ValidationError, match="frozen"):
        settings.worker.concurrency = 1


def test_process_environment_is_not_read(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_LOG__LEVEL", "debug")
    monkeypatch.setenv("LOG", '{"level": "debug"}')
    assert load(MINIMAL).log.level == "info"


def test_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="there is no such file; `gateway init DIR`"):
        load_settings(tmp_path / "gateway.toml", {})


def test_folder_in_place_of_the_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="cannot be read: it is not a file"):
        load_settings(tmp_path, {})


def test_other_than_utf8_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_bytes(b"# \xff")
    with pytest.raises(ConfigInvalid, match="it is not UTF-8 text"):
        load_settings(file, {})


def test_toml_fault_names_file_and_line(faults: Faults, tmp_path: Path) -> None:
    (fault,) = faults("[admin]\ntoken_sha256 = hush\n")
    assert fault.startswith(f"{tmp_path / 'gateway.toml'}: is no valid TOML: ")
    assert "line 2" in fault
    assert "hush" not in fault


def test_file_given_is_taken_before_all_others() -> None:
    given = Path("/given.toml")
    assert find_file(given, {"GATEWAY_CONFIG": "/other.toml"}) == given


def test_file_of_the_environment_is_taken_when_none_is_given() -> None:
    assert find_file(None, {"GATEWAY_CONFIG": "/other.toml"}) == Path("/other.toml")


def test_file_in_the_working_directory_is_taken_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_file(None, {}) == Path("gateway.toml")
    assert find_file(None, {"GATEWAY_HTTP__LISTEN": "x"}) is None
    Path("gateway.toml").touch()
    assert find_file(None, {"GATEWAY_HTTP__LISTEN": "x"}) == Path("gateway.toml")


def test_environment_alone_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(None, {"GATEWAY_ADMIN__TOKEN_SHA256": TOKEN_SHA256})
    assert settings.state_dir == tmp_path / "state"
