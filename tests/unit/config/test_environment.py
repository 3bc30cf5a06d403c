import json
from pathlib import Path

import pytest

from gateway.config import Address
from gateway.variables import NO_SETTINGS
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

OTHER_SHA256 = "cd" * 32
OTHER_ZONE = {
    "name": "other.test",
    "primary": "192.0.2.54",
    "tsig": {"name": "other", "secret": SECRET_BASE64},
}


def test_variable_wins_over_the_file(load: Load) -> None:
    environ = {
        "GATEWAY_HTTP__LISTEN": "0.0.0.0:80",
        "GATEWAY_HTTP__ALLOW_PLAIN_HTTP": "true",
        "GATEWAY_REDIS__URL": "redis://redis",
        "GATEWAY_ACME__0__DIRECTORY": "https://other.test/dir",
        "GATEWAY_ACME__0__RENEW_AT": "0.5",
        "GATEWAY_WORKER__ENABLED": "false",
        "GATEWAY_WORKER__CONCURRENCY": "7",
        "GATEWAY_STATE_DIR": "elsewhere",
    }
    settings = load(f'{MINIMAL}[http]\nlisten = "127.0.0.1:1"\n{ACME}', environ)
    assert settings.http.listen == Address("0.0.0.0", 80)  # noqa: S104  (nothing listens)
    assert settings.redis.url == "redis://redis"
    (acme,) = settings.acme
    assert (acme.directory, acme.name) == ("https://other.test/dir", "other.test")
    assert acme.renew_at == 0.5
    assert (settings.worker.enabled, settings.worker.concurrency) == (False, 7)
    assert settings.state_dir.name == "elsewhere"


def test_variable_makes_a_table_that_the_file_has_not(load: Load) -> None:
    assert load(MINIMAL, {"GATEWAY_LOG__LEVEL": "debug"}).log.level == "debug"


def test_variables_make_authorities_that_the_file_has_not(load: Load) -> None:
    environ = {
        "GATEWAY_ACME__0__DIRECTORY": "https://ca.test/",
        "GATEWAY_ACME__1__DIRECTORY": "https://other.test/",
        "GATEWAY_ACME__1__NAME": "second",
        "GATEWAY_ACME__1__EAB__KEY_ID": "kid",
        "GATEWAY_ACME__1__EAB__HMAC_KEY": "a" * 32,
    }
    first, second = load(MINIMAL, environ).acme
    assert (first.name, first.directory, first.eab) == ("ca.test", "https://ca.test/", None)
    assert (second.name, second.directory) == ("second", "https://other.test/")
    assert second.eab is not None
    assert second.eab.hmac_key == "a" * 32


def test_authorities_as_json_replace_those_of_the_file(load: Load) -> None:
    environ = {"GATEWAY_ACME": '[{"directory": "https://other.test/", "renew_at": 0.5}]'}
    (acme,) = load(MINIMAL + ACME, environ).acme
    assert (acme.name, acme.renew_at) == ("other.test", 0.5)


def test_variable_names_a_secret_file_relative_to_the_configuration(
    load: Load, tmp_path: Path
) -> None:
    (tmp_path / "digest").write_text(OTHER_SHA256)
    settings = load("", {"GATEWAY_ADMIN__TOKEN_SHA256_FILE": "digest"})
    assert settings.admin.token_sha256 == OTHER_SHA256


def test_secret_file_of_a_variable_takes_the_place_of_an_inline_secret(
    load: Load, tmp_path: Path
) -> None:
    (tmp_path / "digest").write_text(OTHER_SHA256)
    settings = load(MINIMAL, {"GATEWAY_ADMIN__TOKEN_SHA256_FILE": "digest"})
    assert settings.admin.token_sha256 == OTHER_SHA256


def test_inline_secret_of_a_variable_takes_the_place_of_a_secret_file(load: Load) -> None:
    text = '[admin]\ntoken_sha256_file = "missing"'
    settings = load(text, {"GATEWAY_ADMIN__TOKEN_SHA256": OTHER_SHA256})
    assert settings.admin.token_sha256 == OTHER_SHA256


def test_secret_given_twice_in_the_environment_is_a_fault(faults: Faults) -> None:
    environ = {
        "GATEWAY_ADMIN__TOKEN_SHA256": OTHER_SHA256,
        "GATEWAY_ADMIN__TOKEN_SHA256_FILE": "digest",
    }
    (fault,) = faults(MINIMAL, environ)
    assert fault.startswith("GATEWAY_ADMIN__TOKEN_SHA256: is given twice")


def test_list_is_written_as_json(load: Load) -> None:
    environ = {"GATEWAY_ACME__0__CONTACT": '["mailto:a@test", "mailto:b@test"]'}
    (acme,) = load(MINIMAL + ACME, environ).acme
    assert acme.contact == ("mailto:a@test", "mailto:b@test")


def test_table_is_written_as_json_beside_its_keys(load: Load) -> None:
    environ = {
        "GATEWAY_WORKER": '{"enabled": false, "concurrency": 5}',
        "GATEWAY_WORKER__CONCURRENCY": "6",
    }
    worker = load(MINIMAL, environ).worker
    assert (worker.enabled, worker.concurrency) == (False, 6)


def test_zones_as_json_replace_those_of_the_file(load: Load) -> None:
    zones = load(MINIMAL + ZONE, {"GATEWAY_ZONES": json.dumps([OTHER_ZONE])}).zones
    assert [zone.name for zone in zones] == ["other.test"]


def test_zone_is_changed_by_its_index(load: Load, tmp_path: Path) -> None:
    (tmp_path / "tsig").write_text("b3RoZXItb3RoZXItb3RoZXI=")
    environ = {
        "GATEWAY_ZONES__0__TSIG__SECRET_FILE": "tsig",
        "GATEWAY_ZONES__0__SERVERS": '["192.0.2.1", "192.0.2.2:54"]',
    }
    (zone,) = load(MINIMAL + ZONE, environ).zones
    assert zone.name == "example.test"
    assert zone.tsig.secret == b"other-other-other"
    assert zone.servers == (Address("192.0.2.1", 53), Address("192.0.2.2", 54))


def test_zone_is_added_by_the_next_index(load: Load) -> None:
    environ = {
        "GATEWAY_ZONES__1__NAME": "other.test",
        "GATEWAY_ZONES__1__PRIMARY": "192.0.2.54",
        "GATEWAY_ZONES__1__TSIG": json.dumps(OTHER_ZONE["tsig"]),
    }
    zones = load(MINIMAL + ZONE, environ).zones
    assert [zone.name for zone in zones] == ["example.test", "other.test"]
    assert zones[1].tsig.secret == SECRET


def test_zones_of_the_environment_alone_begin_at_zero(load: Load) -> None:
    zones = load(MINIMAL, {"GATEWAY_ZONES__0": json.dumps(OTHER_ZONE)}).zones
    assert [zone.name for zone in zones] == ["other.test"]


def test_index_that_leaves_a_gap_is_a_fault(faults: Faults) -> None:
    assert faults(MINIMAL + ZONE, {"GATEWAY_ZONES__7__NAME": "other.test"}) == [
        "GATEWAY_ZONES: index 7 leaves a gap: the next free one is 1"
    ]


def test_index_that_is_no_number_is_a_fault(faults: Faults) -> None:
    assert faults(MINIMAL + ZONE, {"GATEWAY_ZONES__FIRST__NAME": "other.test"}) == [
        "GATEWAY_ZONES: is a list, and first is no index into it, as 0 is"
    ]


@pytest.mark.parametrize("text", [MINIMAL, MINIMAL + ACME])
def test_variable_of_an_authority_without_its_index_is_a_fault(faults: Faults, text: str) -> None:
    assert faults(text, {"GATEWAY_ACME__DIRECTORY": "https://ca.test/"}) == [
        "GATEWAY_ACME: is a list, and directory is no index into it, as 0 is"
    ]


def test_single_authority_in_the_file_is_a_fault_also_beside_variables(faults: Faults) -> None:
    text = f'{MINIMAL}[acme]\ndirectory = "https://ca.test/"'
    assert faults(text, {"GATEWAY_ACME__0__RENEW_AT": "0.5"}) == [
        "acme: must be a list: [[acme]], once for each authority"
    ]


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"GATEWAY_LOG__LEVEL": "loud"}, "GATEWAY_LOG__LEVEL: must be one of"),
        ({"GATEWAY_LOG": "{broken"}, "GATEWAY_LOG: must be a table"),
        ({"GATEWAY_ZONES": "[broken"}, "GATEWAY_ZONES: must be a list"),
        ({"GATEWAY_ACME": '{"directory": "https://a/"}'}, "GATEWAY_ACME: is a list, and directory"),
        ({"GATEWAY_ACME": "7"}, "GATEWAY_ACME: must be a list"),
        ({"GATEWAY_ACME": '[{"renew_at": 2}]'}, "GATEWAY_ACME[0].renew_at: must be less than"),
        ({"GATEWAY_ACME__0__DIRECTORY": "x"}, "GATEWAY_ACME__0__DIRECTORY: must be an https"),
        ({"GATEWAY_ACME__0__NAME": "a b"}, "GATEWAY_ACME__0__NAME: must be 1 to 64 of"),
        ({"GATEWAY_ZONES": '[{"tsig": 1}]'}, "GATEWAY_ZONES[0].tsig: must be a table"),
        ({"GATEWAY_ZONES__0__PRIMARY": "a b"}, "GATEWAY_ZONES__0__PRIMARY: must be host:port"),
        ({"GATEWAY_ZONES__0__SERVERS": "[broken"}, "GATEWAY_ZONES__0__SERVERS: must be a list"),
        ({"GATEWAY_ADMIN__TOKEN_SHA256_FILE": "x"}, "GATEWAY_ADMIN__TOKEN_SHA256_FILE: cannot be"),
    ],
)
def test_fault_names_the_variable_that_caused_it(
    faults: Faults, environ: dict[str, str], told: str
) -> None:
    assert any(fault.startswith(told) for fault in faults(MINIMAL, environ))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("GATEWAY_HTP__LISTEN", "is not a setting; did you mean http?"),
        ("GATEWAY_PORT", "is not a setting; known here: state_dir, keyring_file, admin, http,"),
        ("GATEWAY_", "is not a setting"),
        ("GATEWAY_REDIS__URI", "is not a key of the configuration; did you mean url?"),
        ("GATEWAY_STATE_DIR__X", "sets nothing: GATEWAY_STATE_DIR has no parts"),
    ],
)
def test_variable_that_is_no_setting_is_a_fault(faults: Faults, name: str, told: str) -> None:
    (fault,) = faults(MINIMAL, {name: "hush"})
    assert fault.startswith(f"{name}: {told}")
    assert "hush" not in fault


def test_variable_below_another_that_is_set_as_a_whole_is_a_fault(faults: Faults) -> None:
    environ = {
        "GATEWAY_ZONES": json.dumps([OTHER_ZONE]),
        "GATEWAY_ZONES__0__PRIMARY": "192.0.2.55",
    }
    assert faults(MINIMAL, environ) == [
        "GATEWAY_ZONES__0__PRIMARY: sets nothing, since GATEWAY_ZONES is set as well"
    ]


def test_other_variables_are_left_alone(load: Load) -> None:
    environ = {"GATEWAY_CONFIG": "x", "gateway_log__level": "debug", "GATEWAYS": "1", "PATH": "/"}
    assert load(MINIMAL, environ).admin.token_sha256 == TOKEN_SHA256


def test_variables_of_the_client_side_are_left_alone(load: Load) -> None:
    environ = dict.fromkeys(NO_SETTINGS, "x")
    assert load(MINIMAL, environ).admin.token_sha256 == TOKEN_SHA256


def test_secret_in_the_environment_at_fault_is_not_shown(faults: Faults) -> None:
    environ = {
        "GATEWAY_ZONES__0__TSIG__SECRET": "hush",
        "GATEWAY_ZONES__0__TSIG__SECERT": "hush",
        "GATEWAY_REDIS": "redis://:hush@h",
        "GATEWAY_ACME__0__EAB": "hush",
    }
    assert "hush" not in " ".join(faults(MINIMAL + ZONE + ACME, environ))


@pytest.mark.parametrize("name", ["URL", "TOKEN", "TOKEN_FILE", "CA_FILE", "APP_ID"])
def test_variable_of_the_client_side_is_no_setting(load: Load, name: str) -> None:
    assert load(MINIMAL, {f"GATEWAY_{name}": "x"}).admin.token_sha256 == TOKEN_SHA256
