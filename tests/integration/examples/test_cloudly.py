"""`docs/examples/cloudly` does what it says, run as a control plane would run it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.dns.hand import Hand
from tests.integration.examples.cloudly import ADDRESS, EXAMPLE, NPM_FOLDER, Relay, installed_for
from tests.lab.lab import Lab
from tests.lab.pebble import PebbleProcess
from tests.lab.ports import LOOPBACK, free_port


@pytest.fixture
def relay(lab: Lab, tmp_path: Path, admin_token_file: Path, fresh_label: str) -> Relay:
    hostname = f"{fresh_label}.example.test"
    return installed_for(hostname, tmp_path, lab.config.url, admin_token_file)


@pytest.fixture
def served(relay: Relay) -> Relay:
    done = relay.run()
    assert done.returncode == 0, done.stderr
    return relay


def test_package_asks_for_the_client_that_the_tests_install() -> None:
    ours, tested = (
        json.loads((folder / "package.json").read_text()) for folder in (EXAMPLE, NPM_FOLDER)
    )
    for part in ("dependencies", "overrides"):
        assert ours[part] == tested[part]


def test_relay_is_published_and_its_certificate_verified_by_the_root(
    served: Relay, lab: Lab, hand: Hand
) -> None:
    assert f"60 A {ADDRESS}" in hand.records(served.hostname)
    chain = served.current / "chain.pem"
    trust = ["-CAfile", str(lab.pebble.root_file), "-untrusted", str(chain)]
    subprocess.run(
        ["openssl", "verify", *trust, "-verify_hostname", served.hostname, str(chain)],
        check=True,
        capture_output=True,
        timeout=10,
    )
    secrets = (served.token_file, served.current / "privkey.pem")
    assert [file.stat().st_mode & 0o777 for file in secrets] == [0o600, 0o600]


def test_second_run_changes_nothing(served: Relay) -> None:
    before = served.files()
    done = served.run()
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "client",
        "record",
        "certificate",
        "next",
    ]
    assert "policy 1, token as before" in done.stdout
    assert "managed-unchanged" in done.stdout
    assert "certificate unchanged" in done.stdout
    assert served.files() == before


def test_lost_token_is_replaced_by_a_new_one(served: Relay) -> None:
    lost = served.token_file.read_text()
    served.token_file.unlink()
    done = served.run()
    assert done.returncode == 0, done.stderr
    assert served.token_file.read_text() != lost


def test_withdrawal_leaves_nothing_and_may_be_repeated(served: Relay, hand: Hand) -> None:
    for _ in range(2):
        done = served.run("--withdraw")
        assert done.returncode == 0, done.stderr
        assert hand.records(served.hostname) == set()
        assert not served.token_file.exists()
        assert not served.current.parent.exists()


def test_conflict_is_told_with_its_evidence_and_nothing_is_written(
    relay: Relay, hand: Hand
) -> None:
    hand.add(f"{relay.hostname} 300 A 192.0.2.7")
    done = relay.run()
    assert done.returncode == 1
    assert f"{relay.hostname}: record-conflict: " in done.stderr
    assert "(found: A 192.0.2.7)" in done.stderr
    assert not relay.current.exists()


def test_revoked_token_is_told_with_its_remedy(served: Relay) -> None:
    served.token_file.write_text("gwc_0000_revoked")
    done = served.run()
    assert done.returncode == 1
    assert "The call needs a valid apiToken. (unauthorized)" in done.stderr
    assert "remove its file in <state>/tokens" in done.stderr


def test_gateway_that_is_away_is_worth_another_run(relay: Relay) -> None:
    done = relay.run(GATEWAY_URL=f"http://{LOOPBACK}:{free_port()}")
    assert done.returncode == 3
    assert "no answer from the gateway" in done.stderr


def test_certificate_that_is_not_trusted_is_not_worth_another_run(
    relay: Relay, pebble: PebbleProcess
) -> None:
    done = relay.run(GATEWAY_URL=pebble.directory_url)
    assert done.returncode == 1
    assert "TLS certificate is not trusted" in done.stderr
    assert "NODE_EXTRA_CA_CERTS" in done.stderr


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"GATEWAY_URL": "http://gateway.example.com"}, "it is not https"),
        ({"GATEWAY_URL": ""}, "GATEWAY_URL is not set"),
        ({"OPERATOR_TOKEN_FILE": "/dev/null"}, "/dev/null holds no token"),
    ],
)
def test_wrong_call_is_told(relay: Relay, environ: dict[str, str], said: str) -> None:
    done = relay.run(**environ)
    assert done.returncode == 2
    assert said in done.stderr
