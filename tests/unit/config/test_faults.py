from pathlib import Path

import pytest

from tests.unit.config.conftest import ACME, MINIMAL, SECRET_BASE64, ZONE, Faults

HUSH = "hush-hush-hush-hush"


def test_all_faults_are_told_at_once(faults: Faults) -> None:
    text = f"""
    [admin]
    token_sha256 = "{HUSH}"
    [http]
    listen = "127.0.0.1"
    [redsi]
    url = "embedded"
    [log]
    level = "loud"
    [[zones]]
    name = "Example.test"
    primary = "ns1:99999"
    nameserver_port = 0
    tsig = {{ name = "k", algorithm = "hmac-md5", secret = "{HUSH}" }}
    [[zones]]
    primary = 53
    servers = ["a b", 7]
    [[acme]]
    directory = "http://ca.example.test"
    renew_at = 2
    key_type = "rsa"
    contact = ["ops@example.test"]
    eab = {{ key_id = "" }}
    [worker]
    enabled = "maybe"
    concurrency = 1.5
    """
    assert faults(text) == [
        "redsi: is not a key of the configuration; did you mean redis?",
        "admin.token_sha256: must be a SHA-256 as 64 lower-case hex digits",
        'http.listen: must end in a port, such as :8053, not "127.0.0.1"',
        "log.level: must be one of 'debug', 'info', 'warning' or 'error', not \"loud\"",
        'zones[0].name: must be in lower case and without a trailing dot, not "Example.test"',
        'zones[0].primary: must have a port from 1 to 65535, not "ns1:99999"',
        "zones[0].nameserver_port: must be greater than or equal to 1, not 0",
        "zones[0].tsig.algorithm: must be one of"
        " 'hmac-sha256', 'hmac-sha384' or 'hmac-sha512', not \"hmac-md5\"",
        "zones[0].tsig.secret: must be the base64 secret alone:"
        " what tsig-keygen prints between quotes",
        "zones[1].name: is required",
        "zones[1].primary: must be text, not 53",
        'zones[1].servers[0]: must be host:port or [IPv6 address]:port, not "a b"',
        "zones[1].servers[1]: must be text, not 7",
        "zones[1].tsig: is required",
        'acme[0].directory: must be an https:// URL, not "http://ca.example.test"',
        "acme[0].contact[0]: must be mailto: and one address, such as"
        ' mailto:ops@example.org, not "ops@example.test"',
        "acme[0].key_type: must be one of"
        " 'ecdsa-p256', 'ecdsa-p384', 'rsa-2048', 'rsa-3072' or 'rsa-4096', not \"rsa\"",
        "acme[0].renew_at: must be less than or equal to 0.9, not 2",
        'acme[0].eab.key_id: must not be empty, not ""',
        "acme[0].eab.hmac_key: is required",
        'worker.enabled: must be true or false, not "maybe"',
        "worker.concurrency: must be a whole number, not 1.5",
    ]


@pytest.mark.parametrize(
    "text",
    [
        f'[admin]\ntoken_sha256 = "{HUSH}"',
        f'[admin]\ntoken_sha265 = "{HUSH}"',
        f'{MINIMAL}[redis]\nurl = "rediz://:{HUSH}@h"',
        f'{MINIMAL}[redis]\nurl = ["redis://:{HUSH}@h"]',
        f'redis = "redis://:{HUSH}@h"\n{MINIMAL}',
        f'zones = "{HUSH}"\n{MINIMAL}',
        f'zones = ["{HUSH}"]\n{MINIMAL}',
        f'{MINIMAL}[[zones]]\ntsig = "{HUSH}"',
        f'{MINIMAL}[[zones]]\ntsig = {{ secret = "{HUSH}" }}',
        f'{MINIMAL}[[zones]]\ntsig = {{ secret = {{ base64 = "{HUSH}" }} }}',
        f'{MINIMAL}[[zones]]\ntsig = {{ secert = "{HUSH}" }}',
        f'{MINIMAL}[[zones]]\ntsig = {{ name = 1, secret = "{SECRET_BASE64}" }}',
        f'{MINIMAL}{ACME}eab = "{HUSH}"',
        f'{MINIMAL}{ACME}eab = {{ key_id = 1, hmac_key = "{HUSH}." }}',
    ],
)
def test_no_fault_shows_a_secret_wherever_it_was_put(faults: Faults, text: str) -> None:
    told = " ".join(faults(text))
    assert "hush" not in told
    assert SECRET_BASE64 not in told


def test_admin_token_in_place_of_its_digest_is_said_so(faults: Faults) -> None:
    token = f"gwa_{'x' * 43}"
    (fault,) = faults(f'[admin]\ntoken_sha256 = "{token}"')
    assert fault.startswith("admin.token_sha256: is a token itself")
    assert token not in fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            f"{MINIMAL}[htp]",
            "htp: is not a key of the configuration; did you mean http?",
        ),
        (
            f"{MINIMAL}[worker]\nconcurency = 1",
            "worker.concurency: is not a key of the configuration; did you mean concurrency?",
        ),
        (
            f'{MINIMAL}{ZONE}sercet_file = "x"',
            "zones[0].tsig.sercet_file: is not a key of the configuration;"
            " did you mean secret_file?",
        ),
        (
            f"{MINIMAL}{ACME}eab = {{ key_id = 'k', hmac_key = '{'a' * 24}', qqq = 1 }}",
            "acme[0].eab.qqq: is not a key of the configuration;"
            " known here: key_id, hmac_key, hmac_key_file",
        ),
    ],
)
def test_unknown_key_is_a_fault_with_a_guess(faults: Faults, text: str, fault: str) -> None:
    assert faults(text) == [fault]


@pytest.mark.parametrize("key", ["_env_file", "_cli_parse_args", "secret_files", "model_config"])
def test_arguments_of_the_library_are_no_keys(faults: Faults, key: str) -> None:
    (fault,) = faults(f"{key} = true\n{MINIMAL}")
    assert fault.startswith(f"{key}: is not a key of the configuration")


def test_secret_given_inline_and_as_file_is_a_fault(faults: Faults) -> None:
    assert faults(f'{MINIMAL}token_sha256_file = "digest"\n{ZONE}secret_file = "tsig"') == [
        "admin.token_sha256: is given twice, as token_sha256 and as token_sha256_file: keep one",
        "zones[0].tsig.secret: is given twice, as secret and as secret_file: keep one",
    ]


def test_secret_file_that_is_missing_is_one_fault(faults: Faults, tmp_path: Path) -> None:
    assert faults('[admin]\ntoken_sha256_file = "digest"') == [
        f"admin.token_sha256_file: cannot be read: No such file or directory: {tmp_path / 'digest'}"
    ]


def test_secret_file_that_is_empty_is_one_fault(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "digest").write_text(" \n")
    assert faults('[admin]\ntoken_sha256_file = "digest"') == [
        f"admin.token_sha256_file: holds nothing: {tmp_path / 'digest'}"
    ]


def test_secret_file_that_is_a_folder_is_one_fault(faults: Faults, tmp_path: Path) -> None:
    assert faults('[admin]\ntoken_sha256_file = "."') == [
        f"admin.token_sha256_file: cannot be read: it is not a file: {tmp_path}"
    ]


def test_secret_file_that_is_huge_is_one_fault(faults: Faults, tmp_path: Path) -> None:
    file = tmp_path / "digest"
    file.write_bytes(b"a" * ((1 << 20) + 1))
    assert faults('[admin]\ntoken_sha256_file = "digest"') == [
        f"admin.token_sha256_file: cannot be read: it is too large: {file}"
    ]


@pytest.mark.parametrize("value", ["7", '""', "[]"])
def test_secret_file_that_is_no_path_is_one_fault(faults: Faults, value: str) -> None:
    assert faults(f"[admin]\ntoken_sha256_file = {value}") == [
        "admin.token_sha256_file: must be the path of a file"
    ]


def test_content_of_a_secret_file_at_fault_names_the_file_key(
    faults: Faults, tmp_path: Path
) -> None:
    (tmp_path / "digest").write_text(HUSH)
    assert faults('[admin]\ntoken_sha256_file = "digest"') == [
        "admin.token_sha256_file: must be a SHA-256 as 64 lower-case hex digits"
    ]


def test_two_zones_of_one_name_are_a_fault(faults: Faults) -> None:
    assert faults(MINIMAL + ZONE + ZONE) == [
        'zones[1].name: is the name of zones[0] too: "example.test"'
    ]


@pytest.mark.parametrize(
    ("primary", "fault"),
    [
        ("[]", "zones[0].primary: must name 1 to 8 servers, and names 0"),
        ('["192.0.2.1", "a b"]', "zones[0].primary[1]: must be host:port or"),
        ('["ns1:53", 7]', "zones[0].primary[1]: must be text, not 7"),
        ('["ns1", "ns2", "ns1:53"]', "zones[0].primary: must name each server once, and names ns1"),
        (str([f"192.0.2.{n}" for n in range(9)]), "zones[0].primary: must name 1 to 8 servers"),
    ],
)
def test_primaries_at_fault_are_told(faults: Faults, primary: str, fault: str) -> None:
    told = faults(MINIMAL + ZONE.replace('"192.0.2.53"', primary))
    assert len(told) == 1
    assert told[0].startswith(fault)


def test_single_authority_is_a_fault(faults: Faults) -> None:
    assert faults(f'{MINIMAL}[acme]\ndirectory = "https://ca.test/"') == [
        "acme: must be a list: [[acme]], once for each authority"
    ]


def test_two_authorities_of_one_name_are_a_fault(faults: Faults) -> None:
    other = ACME.replace("ca.example", "other.example")
    assert faults(f'{MINIMAL}{ACME}name = "a"{other}name = "a"') == [
        'acme[1].name: is the name of acme[0] too: "a"'
    ]


@pytest.mark.parametrize("name", ["ca.example.test", "other"])
def test_two_authorities_with_one_host_must_be_named(faults: Faults, name: str) -> None:
    first = f'{ACME}name = "{name}"' if name == "ca.example.test" else ACME
    assert faults(f"{MINIMAL}{first}{ACME}".replace("/dir", "/other", 1)) == [
        'acme[1].name: is required: the directory\'s host, "ca.example.test",'
        " is the name of acme[0]"
    ]


def test_authority_whose_host_is_no_name_must_be_named(faults: Faults) -> None:
    assert faults(f'{MINIMAL}[[acme]]\ndirectory = "https://[2001:db8::1]/dir"') == [
        "acme[0].name: is required: the directory's host cannot be one"
    ]


@pytest.mark.parametrize("url", ["https://ca.example.test/dir", "https://CA.example.test:443/dir"])
def test_two_authorities_of_one_directory_are_one_fault(faults: Faults, url: str) -> None:
    assert faults(f'{MINIMAL}{ACME}[[acme]]\ndirectory = "{url}"') == [
        f'acme[1].directory: is the directory of acme[0] too: "{url}"'
    ]


@pytest.mark.parametrize("table", ["", "directory = 7", 'directory = "http://ca.test/"'])
def test_authority_with_a_directory_at_fault_is_not_told_to_be_named(
    faults: Faults, table: str
) -> None:
    (fault,) = faults(f"{MINIMAL}[[acme]]\n{table}")
    assert fault.startswith("acme[0].directory: ")


def test_faults_of_all_authorities_are_told_at_once(faults: Faults) -> None:
    text = f"""{MINIMAL}
    [[acme]]
    directory = "https://ca.test/"
    profile = ""
    [[acme]]
    name = "two words"
    directory = "https://ca.test/"
    [[acme]]
    directory = "http://[::1"
    preferred_chain = 7
    """
    assert faults(text) == [
        'acme[1].directory: is the directory of acme[0] too: "https://ca.test/"',
        'acme[0].profile: must not be empty, not ""',
        "acme[1].name: must be 1 to 64 of the characters A-Z a-z 0-9 . _ - and begin with a"
        ' letter or digit, not "two words"',
        'acme[2].directory: must be an https:// URL, not "http://[::1"',
        "acme[2].preferred_chain: must be text, not 7",
    ]


def test_true_is_no_number(faults: Faults) -> None:
    text = f"{MINIMAL}[worker]\nconcurrency = true\n{ACME}renew_at = true"
    assert faults(text) == [
        "acme[0].renew_at: must be a number, not true",
        "worker.concurrency: must be a number, not true",
    ]


def test_path_that_is_empty_is_a_fault(faults: Faults) -> None:
    assert faults(f'state_dir = ""\n{MINIMAL}') == ["state_dir: must be a path, not nothing"]


def test_path_that_is_no_text_is_a_fault(faults: Faults) -> None:
    (fault,) = faults(f"state_dir = 7\n{MINIMAL}")
    assert fault.startswith("state_dir: must be a path, not 7")


def test_long_value_is_cut(faults: Faults) -> None:
    (fault,) = faults(f'{MINIMAL}[log]\nlevel = "{"x" * 1000}"')
    assert len(fault) < 200


def test_ca_bundle_that_is_missing_is_a_fault(faults: Faults, tmp_path: Path) -> None:
    assert faults(f'{MINIMAL}{ACME}ca_bundle = "ca.pem"') == [
        f"acme[0].ca_bundle: cannot be read: No such file or directory: {tmp_path / 'ca.pem'}"
    ]


def test_ca_bundle_without_certificates_is_a_fault(faults: Faults, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificates")
    assert faults(f'{MINIMAL}{ACME}ca_bundle = "ca.pem"') == [
        f"acme[0].ca_bundle: holds no PEM certificates: {tmp_path / 'ca.pem'}"
    ]


def test_empty_file_lacks_the_admin_only(faults: Faults) -> None:
    assert faults("") == ["admin: is required"]
    assert faults("[admin]") == ["admin.token_sha256: is required"]
