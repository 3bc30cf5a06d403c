"""SIGHUP: a good configuration takes effect without a failed call, a refused changes nothing."""

import base64
import hashlib
import http.client
import json
import os
import re
import secrets
import signal
from pathlib import Path

import pytest

from tests.integration.rolling.callers import Callers
from tests.integration.running.site import REFUSED, TAKEN, Site, replaced, without_zone
from tests.integration.service.calling import CONTEXT, PROVISION, Caller, World, envelope, spec
from tests.lab.process import wait_until

ADDRESS = "198.51.100.5"


def faults_of(said: list[dict[str, str]]) -> dict[str, str]:
    return {line["key"]: line["fault"] for line in said if line["event"] == REFUSED}


def test_zone_that_is_added_is_served_and_one_that_is_removed_is_not(
    site: Site, world: World
) -> None:
    mine = world.ownership("example.net.test")
    said = site.reload(without_zone(site.text, "example.net.test"))
    assert [line["changed"] for line in said if line["event"] == TAKEN] == [["zones"]]
    assert mine.publish(ADDRESS)["status"] == "zone-unavailable"
    site.reload(site.text)
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_every_fault_of_a_refused_file_is_told_with_its_key(site: Site, world: World) -> None:
    mine = world.ownership()
    text = replaced(site.text, 'level = "info"', 'level = "loud"\ncolour = "red"')
    faults = faults_of(site.reload(text))
    assert faults.keys() == {"log.level", "log.colour"}
    assert "not taken" in site.status
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    site.reload(site.text)
    assert "not taken" not in site.status


def test_file_that_is_gone_changes_nothing(site: Site, world: World) -> None:
    mine = world.ownership()
    site.config.config_file.rename(site.config.config_file.with_suffix(".away"))
    faults = faults_of(site.reload())
    assert list(faults) == [str(site.config.config_file)]
    assert mine.publish(ADDRESS)["status"] == "managed-created"


@pytest.mark.parametrize(
    ("key", "named", "fault"),
    [
        ("keyring_file", "keyring", "{path}: cannot be read (it is not a file)"),
        ("acme[0].ca_bundle", "ca.pem", "cannot be read: it is not a file: {path}"),
    ],
)
def test_named_pipe_in_the_place_of_a_file_is_refused_while_calls_are_answered(
    site: Site, world: World, tmp_path: Path, key: str, named: str, fault: str
) -> None:
    mine = world.ownership()
    pipe = tmp_path / named
    os.mkfifo(pipe)
    name = key.rpartition(".")[2]
    (file,) = re.findall(rf'^{name} = "(.*)"$', site.text, re.MULTILINE)
    faults = faults_of(site.reload(replaced(site.text, file, str(pipe))))
    assert faults == {key: fault.format(path=pipe)}
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_key_that_needs_a_restart_refuses_the_whole_file(site: Site, world: World) -> None:
    mine = world.ownership("example.net.test")
    text = without_zone(site.text, "example.net.test")
    text = replaced(text, str(site.config.state_folder), str(site.config.state_folder) + "-other")
    faults = faults_of(site.reload(text))
    assert faults == {"state_dir": "takes effect with a restart only"}
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_keyring_of_another_gateway_is_refused(site: Site, world: World) -> None:
    mine = world.ownership()
    keyring = site.config.config_file.with_name("keyring")
    own = keyring.read_text()
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    keyring.write_text(f"lab-1 {key}\n")
    said = site.reload()
    keyring.write_text(own)
    assert list(faults_of(said)) == ["keyring_file"]
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_keys_that_the_keyring_file_has_got_are_told_as_a_change(site: Site) -> None:
    keyring = site.config.config_file.with_name("keyring")
    own = keyring.read_text()
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    keyring.write_text(f"{own.rstrip()}\nanother {key}\n")
    said = [site.reload(), site.reload()]
    keyring.write_text(own)
    changed = [line["changed"] for each in said for line in each if line["event"] == TAKEN]
    assert changed == [["keyring_file"], []]
    parts = [line for each in said for line in each if line["event"] == "part changed"]
    assert parts == []


def test_secret_in_a_file_is_read_anew(site: Site) -> None:
    token = f"gwa_{secrets.token_urlsafe(32)}"
    file = site.config.config_file.with_name("admin-sha256")
    file.write_text(hashlib.sha256(token.encode()).hexdigest())
    own = hashlib.sha256(site.config.admin_token.encode()).hexdigest()
    site.reload(replaced(site.text, f'token_sha256 = "{own}"', f'token_sha256_file = "{file}"'))
    request = {"action": "ensure", "spec": spec(f"client-{secrets.token_hex(6)}", "a.test")}
    assert Caller(site.gateway.url, token).call(PROVISION, **request)["apiToken"]
    former = Caller(site.gateway.url, site.config.admin_token)
    assert former.refused(PROVISION, **request) == {"code": "unauthorized"}
    file.write_text(own)
    site.reload()
    assert Caller(site.gateway.url, token).refused(PROVISION, **request) == {"code": "unauthorized"}


def test_kept_connection_goes_on_over_a_reload(site: Site, world: World) -> None:
    mine = world.ownership()
    body = json.dumps(envelope(CONTEXT, {"apiToken": mine.caller.token}))
    connection = http.client.HTTPConnection("127.0.0.1", site.gateway.port, timeout=30)
    connection.connect()
    socket_before = connection.sock
    for _ in range(3):
        connection.request("POST", "/typedrequest", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert (answer.status, "error" in json.loads(answer.read())) == (200, False)
        site.reload()
    assert connection.sock is socket_before
    connection.close()


def test_no_call_fails_and_no_issuance_is_lost_in_a_storm_of_reloads(
    site: Site, world: World
) -> None:
    callers = [world.ownership() for _ in range(3)]
    issuing = [world.ownership() for _ in range(4)]
    other = replaced(site.text, 'level = "info"', 'level = "warning"')
    with Callers(site.gateway.url, callers, []) as load:
        for ownership in issuing:
            ownership.get()
        for number in range(40):
            site.write(other if number % 2 else site.text)
            site.ask()
            if number % 10 == 0:
                load.wait_for_more(5)
        load.wait_for_more(5)
        settled = [ownership.settled()["status"] for ownership in issuing]
        said = site.reload(site.text)
    assert load.failed == []
    assert TAKEN in {line["event"] for line in said}
    assert settled == ["ready"] * len(issuing)


@pytest.mark.parametrize("configured", ["info", "warning"])
def test_level_of_the_log_is_changed_by_a_reload_and_by_sigusr1(
    site: Site, world: World, configured: str
) -> None:
    def level_set() -> list[str]:
        return [line["to"] for line in site.events("log level set")]

    site.reload(replaced(site.text, 'level = "info"', f'level = "{configured}"'))
    before = len(level_set())
    for count, level in enumerate(["debug", configured], start=1):
        os.kill(site.gateway.pid, signal.SIGUSR1)
        wait_until(lambda count=count: len(level_set()) == before + count, "it is set")  # type: ignore[misc]
        assert level_set()[-1] == level
        lines = len(site.gateway.log_lines)
        world.ownership().publish(ADDRESS)
        said = {line["level"] for line in site.gateway.log_lines[lines:]}
        assert ("debug" in said) is (level == "debug")
