"""`gateway reseal` beside running gateways: everything moves, and the old key may go."""

import re
import signal
import subprocess
from collections.abc import Iterator

import pytest
import redis
from cryptography import x509

from tests.integration.service.calling import GET, Ownership, World
from tests.integration.service.inside import stored
from tests.integration.service.keyrings import LIMIT_SECONDS, KeyringLab, is_at_work, is_connected
from tests.integration.service.test_commands import gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import pause, wait_until

ADDRESS = "198.51.100.5"
MANY = 20
"""More than are in work at a time, so that a run that is stuck has left some alone."""


@pytest.fixture
def keyring_lab() -> Iterator[KeyringLab]:
    with running_lab(LabOptions(gateways=2)) as lab:
        yield KeyringLab(lab)


def told(result: subprocess.CompletedProcess[str]) -> str:
    return f"{result.stdout}\n{result.stderr}"


def test_old_key_may_leave_after_a_reseal_under_load(keyring_lab: KeyringLab) -> None:
    lab = keyring_lab.lab
    mine = keyring_lab.ownerships(4)
    before = [each.certificate() for each in mine]
    keyring_lab.hold("lab-2", "lab-1")
    keyring_lab.restart()
    dry = keyring_lab.reseal("--dry-run")
    assert dry.returncode == 0, told(dry)
    assert (
        dry.stdout
        == "lab-2 (first): nothing\nlab-1: 4 private keys, 1 account key, 4 owner markers\n"
    )
    assert keyring_lab.sealed()["lab-1"] == 6

    process = keyring_lab.start_reseal()
    asked = []
    while process.poll() is None:
        asked += [each.at(lab.gateways[1].url).get()["status"] for each in mine]
        asked += [each.publish(ADDRESS)["status"] for each in mine]
    result = process.ended(LIMIT_SECONDS)
    assert result.returncode == 0, told(result)
    assert set(asked) == {"ready", "managed-unchanged"}
    assert (
        "Moved to lab-2: 4 private keys, 1 account key, 4 owner markers from lab-1" in result.stdout
    )
    assert "lab-1 is no longer needed and may leave the keyring file" in result.stdout
    assert "resealed 4 of 4" in result.stderr
    assert keyring_lab.sealed().keys() == {"lab-2"}
    assert keyring_lab.markers(mine) == {"lab-2": 4}

    keyring_lab.hold("lab-2")
    keyring_lab.restart()
    assert [each.certificate() for each in mine] == before
    assert {each.publish(ADDRESS)["status"] for each in mine} == {"managed-unchanged"}
    assert mine[0].withdraw()["status"] == "managed-deleted"
    assert keyring_lab.hand.records(mine[0].hostname) == set()
    assert keyring_lab.world.ownership().certificate()
    assert gateway(lab, "check").returncode == 0


def test_reseal_with_nothing_to_do_says_so(keyring_lab: KeyringLab) -> None:
    keyring_lab.ownerships(1)
    result = keyring_lab.reseal()
    assert result.returncode == 0, told(result)
    assert result.stdout == (
        "Nothing had to be moved to lab-1.\nEverything depends on lab-1, the one key there is.\n"
    )


def test_reseal_that_was_cut_off_is_finished_by_the_next(keyring_lab: KeyringLab) -> None:
    lab = keyring_lab.lab
    mine = keyring_lab.ownerships(MANY)
    keyring_lab.hold("lab-2", "lab-1")
    keyring_lab.restart()
    lab.bind.primary_process.pause()  # the first records' markers are waited for
    try:
        for signal_number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            _cut_off(keyring_lab, signal_number)
    finally:
        lab.bind.primary_process.resume()
    half = keyring_lab.sealed()
    assert half["lab-1"] > 0
    assert half["lab-2"] > 0
    assert {each.get()["status"] for each in mine} == {"ready"}
    assert {each.publish(ADDRESS)["status"] for each in mine} == {"managed-unchanged"}
    _refuses_a_keyring_without(keyring_lab, "lab-1", "lab-2")
    _refuses_a_keyring_without(keyring_lab, "lab-2", "lab-1")

    keyring_lab.hold("lab-2", "lab-1")
    result = keyring_lab.reseal()
    assert result.returncode == 0, told(result)
    assert keyring_lab.sealed().keys() == {"lab-2"}
    assert keyring_lab.markers(mine) == {"lab-2": MANY}
    keyring_lab.hold("lab-2")
    keyring_lab.restart()
    assert {each.get()["status"] for each in mine} == {"ready"}


def _cut_off(keyring_lab: KeyringLab, signal_number: signal.Signals) -> None:
    """Send a signal to a run that is stuck at the zone."""
    process = keyring_lab.start_reseal()
    wait_until(lambda: is_at_work(process), "the run has begun")
    wait_until(lambda: keyring_lab.sealed()["lab-2"] > 1, "something was resealed")
    process.send_signal(signal_number)
    result = process.ended(LIMIT_SECONDS)
    assert result.stdout == ""
    if signal_number is signal.SIGKILL:
        assert result.returncode == -signal.SIGKILL
        return
    assert result.returncode == 1
    assert re.search(r"Interrupted. It has resealed \d+ of (0|20) hostnames", result.stderr)


def _refuses_a_keyring_without(keyring_lab: KeyringLab, held: str, missing: str) -> None:
    keyring_lab.hold(held)
    refused = gateway(keyring_lab.lab, "worker")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"keyring_file does not hold the key {missing} ")


def test_unreachable_zone_keeps_the_old_key(keyring_lab: KeyringLab) -> None:
    mine = keyring_lab.ownerships(6)
    keyring_lab.hold("lab-2", "lab-1")
    keyring_lab.lab.bind.primary_process.stop()
    try:
        result = keyring_lab.reseal()
    finally:
        keyring_lab.lab.bind.start_primary()
    assert result.returncode == 1
    assert "Keep all keys in the keyring file (lab-2, lab-1)" in result.stdout
    assert "no longer needed" not in result.stdout
    assert all(each.hostname in result.stderr for each in mine)
    assert keyring_lab.markers(mine) == {"lab-1": 6}
    again = keyring_lab.reseal()
    assert again.returncode == 0, told(again)
    assert "Moved to lab-2: 6 owner markers from lab-1" in again.stdout
    assert keyring_lab.markers(mine) == {"lab-2": 6}


def test_gateway_that_still_seals_with_the_old_key_is_found_out(keyring_lab: KeyringLab) -> None:
    """One gateway alone, started when the new key was the second one in the file."""
    lab = keyring_lab.lab
    former, other = lab.gateways
    other.stop()
    keyring_lab.hold("lab-1", "lab-2")
    former.stop()
    former.start()
    mine = keyring_lab.world.ownership()
    mine.publish(ADDRESS)
    keyring_lab.hold("lab-2", "lab-1")
    lab.bind.primary_process.pause()  # so that the first look at the hostname is not over
    try:
        process = keyring_lab.start_reseal()
        port = lab.bind.primary[1]
        wait_until(lambda: is_connected(process, port), "it has read what Redis has")
        assert "proof:lab-2" in _proofs(lab)
        pause(process.pid)
    finally:
        lab.bind.primary_process.resume()
    try:
        assert mine.get()["status"] == "pending"
        wait_until(
            lambda: "v1:lab-1:" in str(stored(lab, mine.hostname)),
            "its key is made, and sealed with the old key",
        )
    finally:
        process.send_signal(signal.SIGCONT)
    result = process.ended(LIMIT_SECONDS)
    assert result.returncode == 1, told(result)
    assert "While this ran, a gateway sealed" in result.stdout
    assert "under lab-1" in result.stdout
    mine.certificate()
    former.stop()
    former.start()
    again = keyring_lab.reseal()
    assert again.returncode == 0, told(again)
    assert keyring_lab.sealed().keys() == {"lab-2"}


def _proofs(lab: Lab) -> set[str]:
    with redis.Redis.from_url(lab.redis.url, decode_responses=True) as connection:
        return set(connection.hkeys("gw:keyring"))


def test_certificate_moved_to_another_hostname_is_not_handed_out(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    """As if it were none: another one is issued, and only that is answered."""
    theirs = world.ownership()
    foreign, own = theirs.certificate(), mine.certificate()
    moved = stored(service_lab, theirs.hostname)["certificate"]
    with redis.Redis.from_url(service_lab.redis.url, decode_responses=True) as connection:
        (key,) = set(connection.scan_iter(match=f"*:host:{mine.hostname}"))
        connection.hset(key, "certificate", moved)
    assert mine.get()["status"] == "pending"
    anew = mine.certificate()
    assert anew["hostname"] == mine.hostname
    leaf = x509.load_pem_x509_certificate(anew["chainPem"].encode())
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName(mine.hostname)]
    keys = {each["privateKeyPem"] for each in (foreign, own, anew)}
    assert len(keys) == 3
    assert theirs.certificate() == foreign


def test_gateway_without_the_new_key_says_so_and_orders_nothing(keyring_lab: KeyringLab) -> None:
    behind, ahead = keyring_lab.lab.gateways
    mine = keyring_lab.world.ownership()
    keyring_lab.hold("lab-2", "lab-1")
    ahead.stop()
    ahead.start()
    # Made by the one of the two that has both keys, so that the other one's worker is not asked.
    behind.process.pause()
    try:
        certificate = mine.at(ahead.url).certificate()
    finally:
        behind.process.resume()
    serial = stored(keyring_lab.lab, mine.hostname)["certificate"]
    refused = mine.at(behind.url).caller.refused(GET, ownership=mine.wire)
    assert refused["code"] == "unavailable"
    assert refused["retryAfterMs"] > 0
    assert stored(keyring_lab.lab, mine.hostname)["certificate"] == serial
    assert "issuance" not in stored(keyring_lab.lab, mine.hostname)
    assert mine.at(ahead.url).certificate() == certificate
