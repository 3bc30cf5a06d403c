"""`agent.toml`: every fault, at its place and in words."""

import os
from pathlib import Path

import pytest

from gateway.agent.config import ConfigInvalid, load_agent_settings
from gateway.client import AsyncGatewayClient
from tests.unit.agent.config.conftest import CERTIFICATE, GATEWAY, OWNERSHIP, RECORD, Faults, Load


def test_every_fault_is_told_at_once(faults: Faults) -> None:
    text = """
        state_dir = ""
        log_format = "xml"
        [gateway]
        url = "http://gateway.example.com"
        token_file = "token"
        token_env = "TOKEN"
        [[ownership]]
        app_id = "a b"
        hostname = "Relay.example.com"
        [[ownership]]
        app_id = "a"
        hostname = "relay.example.com"
        [ownership.record]
        type = "A"
        value = "2001:db8::1"
        ttl = 5
        chek_seconds = 3
        [ownership.certificate]
        key_mode = "0777"
    """
    assert faults(text) == [
        "state_dir: must not be empty",
        'log_format: must be one of "console", "json", not "xml"',
        "gateway.url: must begin with https://: a token is sent in clear unless allow_plain_http"
        " is true",
        "gateway.token_env: is given besides token_file: keep one",
        'ownership[0].app_id: must be 1 to 128 printable ASCII characters without a space, not "a'
        ' b"',
        'ownership[0].hostname: must be spelled "relay.example.com", not "Relay.example.com"',
        "ownership[0]: needs [ownership.record], [ownership.certificate] or both",
        'ownership[1].record.value: must be an IPv4 address to fit the type A, not "2001:db8::1"',
        "ownership[1].record.ttl: must be a whole number from 60 to 86400, not the number 5",
        "ownership[1].record.chek_seconds: is not a key of the configuration;"
        " did you mean check_seconds?",
        'ownership[1].certificate.key_mode: must be one of "0600", "0640", "0400", "0440",'
        ' not "0777"',
    ]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('textfile = "agent.txt"', "textfile: must end in .prom"),
        ("state_dir = 5", "state_dir: must be text, not the number 5"),
        ("certificates_dir = ''", "certificates_dir: must not be empty"),
        ('stat_dir = "x"', "stat_dir: is not a key of the configuration; did you mean state_dir?"),
        ("zzz = 1", "zzz: is not a key of the configuration; known here: state_dir, "),
        ('state_dir = "a\\u0000"', "state_dir: must not hold a NUL"),
    ],
)
def test_fault_at_the_top_is_told(faults: Faults, lines: str, fault: str) -> None:
    (told,) = faults(f"{lines}\n{GATEWAY}{RECORD}")
    assert told.startswith(fault)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('token_file = "t"', "gateway.url: is required"),
        ('url = 1\ntoken_env = "T"', "gateway.url: must be text, not the number 1"),
        ('url = "https://g.example"', "gateway: needs one of token_file, token_env, token_crede"),
        ('url = "g.example"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://g.example:x"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://g.example:0"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://g.example:70000"\ntoken_env = "T"', "gateway.url: must be https://HOST o"),
        ('url = "https://@g.example"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://g .example"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://xn--"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://u:p@g.example"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://g.example/x"\ntoken_env = "T"', "gateway.url: must be https://HOST or"),
        ('url = "https://g.example"\ntoken_file = ""', "gateway.token_file: must not be empty"),
        (
            'url = "https://g.example"\ntoken_credential = "../x"',
            'gateway.token_credential: must be the name of a systemd credential, not "../x"',
        ),
        (
            'url = "https://g.example"\ntoken_env = "T"\nca_file = "missing.pem"',
            "gateway.ca_file: cannot be read: No such file or directory: ",
        ),
        (
            'url = "https://g.example"\ntoken_env = "T"\nca_file = "agent.toml"',
            "gateway.ca_file: holds no PEM certificates: ",
        ),
        (
            'url = "https://g.example"\ntoken_env = "T"\nca_file = "pipe"',
            "gateway.ca_file: is no file: ",
        ),
        (
            'url = "https://g.example"\ntoken_env = "T"\nallow_plain_http = 1',
            "gateway.allow_plain_http: must be true or false, not the number 1",
        ),
    ],
)
def test_fault_of_the_gateway_is_told(
    faults: Faults, tmp_path: Path, lines: str, fault: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (told,) = faults(f"[gateway]\n{lines}\n{RECORD}")
    assert told.startswith(fault)


@pytest.mark.parametrize(
    "url", ["https://ho st", "https://h:99999", "https://[::1", "https://xn--"]
)
def test_url_that_no_client_could_use_is_told_beside_the_other_faults(
    faults: Faults, url: str
) -> None:
    told = faults(f'log_format = 1\n[gateway]\nurl = "{url}"\ntoken_file = "t"\n{RECORD}')
    assert [each.partition(":")[0] for each in told] == ["log_format", "gateway.url"]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://h",
            "https://h:1",
            "https://h:65535",
            "https://[::1]",
            "https://[fe80::1%25eth0]",
        ),
        *(
            "https://bücher.example",
            "https://h/typedrequest",
            "HTTPS://H",
            "https://h_x",
            "https://h.",
        ),
    ],
)
async def test_url_that_is_taken_is_one_that_the_client_takes(load: Load, url: str) -> None:
    settings = load(f'[gateway]\nurl = "{url}"\ntoken_file = "t"\n{RECORD}').gateway
    await AsyncGatewayClient(settings.url, "gwc_token").aclose()


@pytest.mark.parametrize("key", ["owner", "group"])
@pytest.mark.parametrize("written", ["-1", "4294967295", "1" + "0" * 4000, '"' + "1" * 5000 + '"'])
def test_number_that_no_user_can_have_is_told(faults: Faults, key: str, written: str) -> None:
    (told,) = faults(f"{GATEWAY}{CERTIFICATE}{key} = {written}\n")
    kind = "user" if key == "owner" else "group"
    start = f"ownership[0].certificate.{key}: must be a {kind}'s number, from 0 to 4294967294, not "
    assert told.startswith(start)
    assert len(told) < 300


def test_number_with_more_digits_than_python_reads_is_told(faults: Faults) -> None:
    (told,) = faults(f"{GATEWAY}{RECORD}ttl = {'1' * 5000}\n")
    assert told.endswith("/agent.toml: is no valid TOML: a number has too many digits")


def test_password_in_the_url_is_not_shown(faults: Faults) -> None:
    (told,) = faults(GATEWAY.replace("//", "//me:hunter2@") + RECORD)
    assert "hunter2" not in told


def test_token_in_the_file_is_refused_and_not_shown(faults: Faults) -> None:
    (told,) = faults(GATEWAY + 'token = "gwc_secret"\n' + RECORD)
    assert told == "gateway.token: does not belong into this file: the keys here say where it is"


def test_missing_gateway_table_is_told_by_what_it_must_have(faults: Faults) -> None:
    assert faults(RECORD) == [
        "gateway.url: is required",
        "gateway: needs one of token_file, token_env, token_credential: where the token is",
    ]


def test_gateway_that_is_no_table_is_one_fault(faults: Faults) -> None:
    assert faults('gateway = "https://g.example"' + RECORD) == [
        'gateway: must be a table, not "https://g.example"'
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "ownership: is required"),
        ("[ownership]\nhostname = 'a.b'", "ownership: must be a list of tables: [[ownership]]"),
    ],
)
def test_missing_ownerships_are_told(faults: Faults, text: str, fault: str) -> None:
    (told,) = faults(GATEWAY + text)
    assert told.startswith(fault)


def test_no_ownership_at_all_is_a_fault(faults: Faults) -> None:
    (told,) = faults("ownership = []" + GATEWAY)
    assert told == "ownership: must not be empty: [[ownership]], once for each"


def test_ownership_that_is_no_table_is_a_fault(faults: Faults) -> None:
    assert faults("ownership = [1]" + GATEWAY) == [
        "ownership[0]: must be a table, not the number 1"
    ]


def test_hostname_that_is_listed_twice_is_a_fault(faults: Faults) -> None:
    assert faults(GATEWAY + RECORD + RECORD.replace("relay:a", "relay:b")) == [
        'ownership[1].hostname: is the hostname of ownership[0] too: "relay.example.com"'
    ]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("", ": needs one of value, interface, command: where the address comes from"),
        ('value = "127.0.0.1"', '.value: must be a unicast address, and "127.0.0.1" is a loopback'),
        ('value = "198.51.100.085"', '.value: must be spelled "198.51.100.85"'),
        ('interface = "eth0"', '.type: is required with interface: "A" or "AAAA"'),
        ('interface = "eth 0"\ntype = "A"', ".interface: must be the name of a network interface"),
        ('interface = "eth0"\ntype = "MX"', '.type: must be one of "A", "AAAA", not "MX"'),
        ('command = "my-address"', ".command: must be a list: the program, then its arguments"),
        ("command = []", ".command: must not be empty"),
        ('command = ["a", 1]', ".command: must be a list of texts, and one of them is the number"),
        ('command = [" "]', ".command: must begin with a program"),
        ('value = "198.51.100.1"\ninterface = "x"', ".interface: is given besides value: keep one"),
        ('value = "198.51.100.1"\ncheck_seconds = 0', ".check_seconds: must be a whole number fr"),
        ('value = "198.51.100.1"\nrepublish_seconds = 1', ".republish_seconds: must be a whole "),
        ('value = "198.51.100.1"\ncommand_timeout_seconds = true', ".command_timeout_seconds: mus"),
    ],
)
def test_fault_of_a_record_is_told(faults: Faults, lines: str, fault: str) -> None:
    (told,) = faults(GATEWAY + OWNERSHIP + f"[ownership.record]\n{lines}")
    assert told.startswith(f"ownership[0].record{fault}")


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('owner = "nobody-has-this-name"', ".owner: must be a user of this machine, and "),
        ('group = "nobody-has-this-name"', ".group: must be a group of this machine, and "),
        ("owner = -1", ".owner: must be a user's number, from 0 to 4294967294, not the number -"),
        ("group = 4294967295", ".group: must be a group's number, from 0 to 4294967294, not"),
        ('owner = "99999999999"', ".owner: must be a user's number, from 0 to 4294967294, not"),
        ('owner = "00000000000000"', ".owner: must be a user's number, from 0 to 4294967294, no"),
        ("owner = 0x" + "f" * 6000, ".owner: must be a user's number, from 0 to 4294967294, no"),
        ("owner = true", ".owner: must be the name or number of a user: must be text, not true"),
        ("key_mode = 0o600", '.key_mode: must be one of "0600", "0640", "0400", "0440", not the'),
        ('combined = "yes"', '.combined: must be true or false, not "yes"'),
        ("deploy_hook = []", ".deploy_hook: must not be empty"),
        ('deploy_hook = ""', ".deploy_hook: must not be empty"),
        ("hook_timeout_seconds = 0", ".hook_timeout_seconds: must be a whole number from 1 to"),
        ('deploy_hok = "x"', ".deploy_hok: is not a key of the configuration; did you mean depl"),
    ],
)
def test_fault_of_a_certificate_is_told(faults: Faults, lines: str, fault: str) -> None:
    (told,) = faults(GATEWAY + CERTIFICATE + lines)
    assert told.startswith(f"ownership[0].certificate{fault}")


def test_unknown_key_is_told_without_its_value(faults: Faults) -> None:
    (told,) = faults(GATEWAY + 'tokn_env = "gwc_secret"' + RECORD)
    assert told.startswith("gateway.tokn_env: is not a key of the configuration; did you mean tok")
    assert "secret" not in told


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"state_dir = ", "is no valid TOML: "),
        (b"\xff", "is not UTF-8 text"),
        (b"a = " + b"[" * 5000, "is nested too deeply"),
        (b"#" * (1 << 20) + b"#", "is too large"),
    ],
)
def test_file_that_is_none_of_the_kind_is_told_by_its_path(
    tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "agent.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigInvalid) as caught:
        load_agent_settings(file, {})
    (told,) = caught.value.faults
    assert told.startswith(f"{file}: {said}")


@pytest.mark.parametrize(
    ("name", "said"), [("missing", "there is no such file"), (".", "is not a file")]
)
def test_file_that_is_not_there_is_told_by_its_path(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load_agent_settings(tmp_path / name, {})
    assert caught.value.faults == [f"{tmp_path / name}: {said}"]
