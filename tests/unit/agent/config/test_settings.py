"""`agent.toml`: what each key becomes."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from gateway.agent.addresses import CommandAddress, GivenAddress, InterfaceAddress
from gateway.agent.config import load_agent_settings
from gateway.agent.hook import Hook
from gateway.agent.lineage import FileAccess
from gateway.contract import Ownership
from tests.unit.agent.config.conftest import CERTIFICATE, GATEWAY, OWNERSHIP, RECORD, Load

EXAMPLE = Path("docs/examples/agent/agent.toml")
ME = pwd.getpwuid(os.getuid())
MY_GROUP = grp.getgrgid(os.getgid())


def test_settings_have_the_documented_defaults_when_little_is_said(
    load: Load, tmp_path: Path
) -> None:
    settings = load(GATEWAY + RECORD + "[ownership.certificate]")
    (only,) = settings.ownerships
    assert settings.state_dir == Path("/var/lib/gateway-agent")
    assert settings.certificates_dir == Path("/var/lib/gateway-agent/certificates")
    assert (settings.textfile, settings.log_format) == (None, "console")
    assert (settings.gateway.ca_file, settings.gateway.allow_plain_http) == (None, False)
    assert (only.app_id, only.hostname) == ("cluster-relay:a", "relay.example.com")
    assert only.record is not None
    assert only.record.source == GivenAddress("198.51.100.85")
    assert (only.record.ttl, only.record.check_seconds) == (300, 30)
    assert only.record.republish_seconds == 3600
    assert only.certificate is not None
    assert only.certificate.access == FileAccess(None, None, 0o600, combined=False)
    assert only.certificate.hook is None


def test_mark_that_some_editors_put_before_the_text_is_no_fault(load: Load) -> None:
    assert load("\ufeff" + GATEWAY + RECORD).ownerships[0].hostname == "relay.example.com"


def test_every_key_of_the_record_reaches_the_settings(load: Load) -> None:
    text = """
        [ownership.record]
        interface = "eth0.100"
        type = "AAAA"
        ttl = 60
        check_seconds = 5
        republish_seconds = 60
    """
    record = load(GATEWAY + OWNERSHIP + text).ownerships[0].record
    assert record is not None
    assert record.source == InterfaceAddress("eth0.100", "AAAA")
    assert (record.ttl, record.check_seconds, record.republish_seconds) == (60, 5, 60)


def test_every_key_of_the_certificate_reaches_the_settings(load: Load) -> None:
    text = f"""
        owner = "{ME.pw_name}"
        group = "{MY_GROUP.gr_name}"
        key_mode = "0640"
        combined = true
        deploy_hook = ["systemctl", "reload", "nginx"]
        hook_timeout_seconds = 5
    """
    certificate = load(GATEWAY + CERTIFICATE + text).ownerships[0].certificate
    assert certificate is not None
    assert certificate.access == FileAccess(ME.pw_uid, MY_GROUP.gr_gid, 0o640, combined=True)
    assert certificate.hook == Hook(("systemctl", "reload", "nginx"), 5)


@pytest.mark.parametrize("number", ["1234", '"1234"'])
def test_owner_may_be_a_number_that_nobody_has_a_name_for(load: Load, number: str) -> None:
    certificate = load(GATEWAY + CERTIFICATE + f"owner = {number}").ownerships[0].certificate
    assert certificate is not None
    assert certificate.access.owner == 1234


def test_hook_given_as_text_is_run_by_a_shell(load: Load) -> None:
    text = CERTIFICATE + 'deploy_hook = "nginx -t && nginx -s reload"'
    certificate = load(GATEWAY + text).ownerships[0].certificate
    assert certificate is not None
    assert certificate.hook is not None
    assert certificate.hook.command == ("/bin/sh", "-c", "nginx -t && nginx -s reload")


def test_command_has_its_time_and_its_type(load: Load) -> None:
    text = (
        OWNERSHIP
        + """
        [ownership.record]
        command = ["my-address", "-4"]
        type = "A"
        command_timeout_seconds = 3
    """
    )
    record = load(GATEWAY + text).ownerships[0].record
    assert record is not None
    assert record.source == CommandAddress(("my-address", "-4"), 3, "A")


def test_variable_with_the_token_is_withheld_from_what_the_agent_runs(load: Load) -> None:
    text = f"""
        [gateway]
        url = "https://gateway.example.com"
        token_env = "TOKEN"
        {OWNERSHIP}
        [ownership.record]
        command = ["my-address"]
        [ownership.certificate]
        deploy_hook = ["reload"]
    """
    (only,) = load(text).ownerships
    assert only.record is not None
    assert only.certificate is not None
    assert only.record.source == CommandAddress(("my-address",), 10, None, withheld=("TOKEN",))
    assert only.certificate.hook == Hook(("reload",), 60, withheld=("TOKEN",))


def test_relative_paths_are_relative_to_the_file(load: Load, tmp_path: Path) -> None:
    top = 'state_dir = "state"\ncertificates_dir = "../c"\ntextfile = "agent.prom"\n'
    text = CERTIFICATE + 'deploy_hook = ["hooks/reload", "./now"]'
    settings = load(top + GATEWAY + text)
    assert settings.state_dir == tmp_path / "state"
    assert settings.certificates_dir == tmp_path / ".." / "c"
    assert settings.textfile == tmp_path / "agent.prom"
    assert settings.gateway.token.path == tmp_path / "token"
    certificate = settings.ownerships[0].certificate
    assert certificate is not None
    assert certificate.hook is not None
    assert certificate.hook.command == (str(tmp_path / "hooks/reload"), "./now")


def test_certificates_are_kept_in_the_state_folder_unless_said_otherwise(
    load: Load, tmp_path: Path
) -> None:
    settings = load('state_dir = "state"' + GATEWAY + RECORD)
    assert settings.certificates_dir == tmp_path / "state" / "certificates"


def test_ownership_is_that_of_the_contract(load: Load) -> None:
    (only,) = load(GATEWAY + RECORD).ownerships
    assert only.ownership == Ownership(app_id="cluster-relay:a", hostname="relay.example.com")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8053", "http://[::1]:1", "http://localhost"])
def test_plain_http_is_for_this_machine(load: Load, url: str) -> None:
    text = GATEWAY.replace("https://gateway.example.com", url)
    assert load(text + RECORD).gateway.url == url


def test_plain_http_to_elsewhere_is_taken_when_it_is_allowed(load: Load) -> None:
    text = GATEWAY.replace("https:", "http:") + "allow_plain_http = true"
    assert load(text + RECORD).gateway.url == "http://gateway.example.com"


def test_example_is_a_configuration() -> None:
    settings = load_agent_settings(EXAMPLE, {"CREDENTIALS_DIRECTORY": "/run/credentials/x"})
    relay, page = settings.ownerships
    assert settings.gateway.token.path == Path("/run/credentials/x/token")
    assert relay.record is not None
    assert relay.record.source == InterfaceAddress("eth0", "A")
    assert relay.certificate is not None
    assert relay.certificate.hook is not None
    assert page.certificate is None


def test_example_still_loads_with_any_commented_line_that_stands_alone_taken_in(
    tmp_path: Path,
) -> None:
    text = EXAMPLE.read_text()
    for key in (
        "certificates_dir",
        "textfile",
        "log_format",
        "hook_timeout_seconds",
        "owner",
        "key_mode",
        "combined",
        "check_seconds",
        "republish_seconds",
        "allow_plain_http",
        "command_timeout_seconds",
    ):
        assert f"# {key} = " in text
        text = text.replace(f"# {key} = ", f"{key} = ")
    file = tmp_path / "agent.toml"
    file.write_text(text)
    assert len(load_agent_settings(file, {}).ownerships) == 2
