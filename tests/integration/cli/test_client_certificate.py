"""`gateway client certificate`: fetched, waited for, written, given up, and never a key unasked."""

import json
import stat
from pathlib import Path

import pytest

from gateway.client import read_bundle
from tests.integration.cli.clientside import Relay, issuing_at_rest, new_relay
from tests.integration.service.calling import World
from tests.lab.lab import Lab

CERTIFICATE = "-----BEGIN CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----"
FILES = ("cert.pem", "chain.pem", "fullchain.pem", "privkey.pem")


@pytest.fixture(scope="module")
def world(lab: Lab) -> World:
    return World(lab.config.url, lab.config.admin_token)


@pytest.fixture
def relay(world: World, tmp_path: Path) -> Relay:
    """A client that has nothing yet."""
    return new_relay(world, tmp_path)


@pytest.fixture(scope="module")
def served(world: World, tmp_path_factory: pytest.TempPathFactory) -> Relay:
    """A client whose certificate is there; tests read it and change nothing."""
    relay = new_relay(world, tmp_path_factory.mktemp("served"))
    relay.ownership.certificate()
    return relay


def test_get_shows_a_certificate_and_no_pem(served: Relay) -> None:
    output = served.done("certificate", "get", served.hostname)
    rows = dict(line.split(maxsplit=1) for line in output.replace("valid ", "").splitlines())
    certificate = served.ownership.certificate()
    bundle = read_bundle(certificate["chainPem"], certificate["privateKeyPem"], served.hostname)
    assert rows["status"] == "ready"
    assert rows["hostname"] == served.hostname
    assert rows["from"] == bundle.not_before.strftime("%Y-%m-%d %H:%M:%S UTC")
    assert rows["until"].startswith(bundle.not_after.strftime("%Y-%m-%d %H:%M:%S UTC"))
    assert rows["sha256"] == bundle.fingerprint
    assert "-----" not in output


def test_get_as_json_is_the_answer_of_the_contract_without_the_key(served: Relay) -> None:
    answer = served.asked(0, "certificate", "get", served.hostname)
    told = served.ownership.get()
    assert answer["status"] == "ready"
    assert answer["certificate"] == told["certificate"] | {"privateKeyPem": None}
    assert len(answer["fingerprint"]) == 64
    assert answer["files"] is None


@pytest.mark.parametrize("way", ["get", "wait"])
def test_key_is_shown_when_it_is_asked_for_by_name(served: Relay, way: str) -> None:
    key = served.ownership.certificate()["privateKeyPem"]
    typed = ("certificate", way, served.hostname, "--show-key")
    assert key in served.done(*typed)
    assert served.asked(0, *typed)["certificate"]["privateKeyPem"] == key


def test_chain_is_shown_when_it_is_asked_for(served: Relay) -> None:
    output = served.done("certificate", "get", served.hostname, "--show-chain")
    assert served.ownership.certificate()["chainPem"] in output
    assert KEY not in output


def test_out_writes_what_a_server_reads_and_the_key_for_its_user_alone(
    served: Relay, tmp_path: Path
) -> None:
    folder = tmp_path / "tls" / "relay"
    output = served.done("certificate", "get", served.hostname, "--out", folder)
    assert sorted(file.name for file in folder.iterdir()) == sorted(FILES)
    for name in FILES:
        assert f"written      {folder / name}\n" in output
    texts = {name: (folder / name).read_text() for name in FILES}
    bundle = read_bundle(texts["chain.pem"], texts["privkey.pem"], served.hostname)
    assert texts["fullchain.pem"] == texts["chain.pem"] == bundle.chain_pem
    assert texts["cert.pem"] == bundle.leaf_pem
    assert texts["chain.pem"].count(CERTIFICATE) > 1
    assert stat.S_IMODE((folder / "privkey.pem").stat().st_mode) == 0o600
    assert "-----" not in output


def test_out_as_json_names_the_files(served: Relay, tmp_path: Path) -> None:
    answer = served.asked(0, "certificate", "wait", served.hostname, "--out", tmp_path)
    assert answer["files"] == {name: str(tmp_path / name) for name in FILES}
    assert answer["certificate"]["privateKeyPem"] is None


def test_out_replaces_files_and_follows_no_link(served: Relay, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "tls", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.write_text("mine")
    (folder / "privkey.pem").symlink_to(elsewhere)
    (folder / "cert.pem").write_text("old")
    (folder / "cert.pem").chmod(0o666)
    served.done("certificate", "get", served.hostname, "--out", folder)
    assert elsewhere.read_text() == "mine"
    assert not (folder / "privkey.pem").is_symlink()
    assert (folder / "cert.pem").read_text().startswith(CERTIFICATE)
    assert sorted(file.name for file in folder.iterdir()) == sorted(FILES)


def test_out_that_cannot_be_written_ends_with_1_and_leaves_the_rest_alone(
    served: Relay, tmp_path: Path
) -> None:
    (tmp_path / "privkey.pem").mkdir()
    (tmp_path / "privkey.pem" / "in the way").touch()
    typed = ("certificate", "get", served.hostname, "--out", tmp_path)
    told = served.failed(1, *typed)
    assert told == f"{tmp_path / 'privkey.pem'} cannot be written: Is a directory.\n"
    assert served.asked(1, *typed)["error"]["code"] == "file-not-written"
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_get_does_not_wait_and_ends_with_3(relay: Relay, lab: Lab) -> None:
    with issuing_at_rest(lab):
        told = relay.failed(3, "certificate", "get", relay.hostname)
        answer = relay.asked(3, "certificate", "get", relay.hostname)
    assert told.startswith(f"pending  {relay.hostname}: ")
    assert "`gateway client certificate wait`" in told
    assert answer["status"] == "pending"
    assert answer["retryAfterMs"] > 0


def test_wait_ends_with_3_when_its_time_is_over(relay: Relay, lab: Lab) -> None:
    with issuing_at_rest(lab):
        told = relay.failed(
            3, "certificate", "wait", relay.hostname, "--timeout", "0.05", "--quiet"
        )
        error = relay.asked(3, "certificate", "wait", relay.hostname, "--timeout", "0.05")["error"]
    assert told.startswith(f"No certificate for {relay.hostname} ")
    assert "Try again later" in told
    assert error["code"] == "deadline-passed"


@pytest.mark.parametrize("way", ["get", "wait"])
def test_hostname_that_another_holds_ends_with_1(relay: Relay, world: World, way: str) -> None:
    world.rival(relay.ownership).publish("198.51.100.86")
    told = relay.failed(1, "certificate", way, relay.hostname)
    assert "hostname-conflict" in told
    assert "Asking again is no use" in told
    answer = relay.asked(1, "certificate", way, relay.hostname)
    told_json = answer if way == "get" else answer["error"]
    assert told_json["reason"] == "hostname-conflict"
    assert told_json["retryAfterMs"] is None


def test_release_is_told_once(relay: Relay) -> None:
    relay.ownership.certificate()
    typed = ("certificate", "release", relay.hostname)
    assert relay.done(*typed).startswith(f"released  {relay.hostname}: ")
    assert relay.done(*typed).startswith(f"unchanged  {relay.hostname}: ")
    assert relay.asked(0, *typed) == {"status": "unchanged"}


def test_wait_without_terminal_fetches_what_is_issued_meanwhile(relay: Relay) -> None:
    answer = json.loads(relay.done("certificate", "wait", relay.hostname, "--json"))
    assert answer["status"] == "ready"
    assert answer["certificate"]["hostname"] == relay.hostname
