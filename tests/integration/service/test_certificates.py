"""Certificates: issued once, exact, private, renewed, released, and kept through outages."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import CONTEXT, GET, RELEASE, Ownership, World
from tests.integration.service.inside import orders_placed, resting_while_published, stored
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.lab import Lab
from tests.lab.pebble import start_pebble
from tests.lab.process import wait_until

ADDRESS = "198.51.100.5"


def settled(lab: Lab, hand: Hand, hostname: str) -> bool:
    """Whether nothing is owed any more and the challenge record is gone."""
    owed = stored(lab, hostname).get("debts")
    return owed is None and not hand.records(f"_acme-challenge.{hostname}")


def test_certificate_is_exact_and_fits_its_key(
    mine: Ownership, service_lab: Lab, tmp_path: Path
) -> None:
    assert mine.get()["status"] == "pending"
    certificate = mine.certificate()
    assert certificate["hostname"] == mine.hostname
    chain = x509.load_pem_x509_certificates(certificate["chainPem"].encode())
    names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName(mine.hostname)]
    key_pem = certificate["privateKeyPem"].encode()
    assert key_pem.startswith(b"-----BEGIN PRIVATE KEY-----")
    key = load_pem_private_key(key_pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert key.public_key() == chain[0].public_key()
    assert certificate["validFrom"] == chain[0].not_valid_before_utc.timestamp() * 1000
    assert certificate["validUntil"] == chain[0].not_valid_after_utc.timestamp() * 1000
    assert certificate["validFrom"] < certificate["renewAfter"] < certificate["validUntil"]
    leaf, rest = tmp_path / "leaf.pem", tmp_path / "rest.pem"
    blocks = certificate["chainPem"].split("-----END CERTIFICATE-----\n")
    leaf.write_text(blocks[0] + "-----END CERTIFICATE-----\n")
    rest.write_text("-----END CERTIFICATE-----\n".join(blocks[1:]))
    trust = ["-CAfile", service_lab.pebble.root_file, "-untrusted", rest]
    subprocess.run(
        ["openssl", "verify", *trust, "-verify_hostname", mine.hostname, leaf],
        check=True,
        capture_output=True,
        timeout=10,
    )


def test_ready_certificate_stays_the_same_on_every_process(
    mine: Ownership, second_url: str
) -> None:
    assert mine.certificate() == mine.at(second_url).certificate()


def test_twenty_in_a_row_succeed_at_default_nonce_rejections(world: World) -> None:
    for _ in range(20):
        world.ownership().certificate()


def test_many_callers_at_once_cause_one_order(
    service_lab: Lab, mine: Ownership, second_url: str
) -> None:
    before = orders_placed(service_lab)
    both = [mine, mine.at(second_url)]
    with ThreadPoolExecutor(20) as pool:
        certificates = list(pool.map(lambda n: both[n % 2].certificate(), range(20)))
    assert all(certificate == certificates[0] for certificate in certificates)
    assert orders_placed(service_lab) == before + 1


def test_challenge_record_is_gone_after_the_issuance(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    mine.certificate()
    wait_until(lambda: settled(service_lab, hand, mine.hostname), "the challenge record is gone")


def test_other_clients_never_receive_a_certificate(world: World, mine: Ownership) -> None:
    mine.certificate()
    for other in (world.rival(mine), Ownership(mine.caller, mine.hostname, "other-app")):
        answer = other.get()
        assert (answer["status"], answer["reason"]) == ("refused", "hostname-conflict")
        assert other.release() == "unchanged"
    assert mine.get()["status"] == "ready"


def test_foreign_record_is_a_hostname_conflict(hand: Hand, mine: Ownership) -> None:
    hand.add(f'{mine.hostname} 300 TXT "not ours"')
    answer = mine.get()
    assert (answer["status"], answer["reason"]) == ("refused", "hostname-conflict")
    assert mine.release() == "unchanged"


def test_record_added_later_does_not_stop_the_certificate(hand: Hand, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    hand.add(f'{mine.hostname} 300 TXT "added later"')
    assert mine.certificate()


def test_release_forgets_all_and_a_get_starts_anew(mine: Ownership, world: World) -> None:
    first = mine.certificate()
    assert mine.release() == "released"
    assert mine.release() == "unchanged"
    second = mine.certificate()
    assert second["chainPem"] != first["chainPem"]
    assert second["privateKeyPem"] != first["privateKeyPem"]
    mine.release()
    assert world.rival(mine).certificate()


def test_release_leaves_the_address_record(hand: Hand, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    mine.certificate()
    assert mine.release() == "released"
    assert f"300 A {ADDRESS}" in hand.records(mine.hostname)
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"


def test_release_in_the_middle_takes_everything_back(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    with resting_while_published(service_lab, mine):
        assert hand.records(f"_acme-challenge.{mine.hostname}")
        assert mine.release() == "released"
        wait_until(lambda: stored(service_lab, mine.hostname) == {}, "all debts are paid")
    assert hand.records(f"_acme-challenge.{mine.hostname}") == set()
    assert mine.certificate()


def test_renewal_comes_by_itself_and_never_hides_the_certificate(
    service_lab: Lab, mine: Ownership
) -> None:
    first = mine.certificate()
    key = f"*:host:{mine.hostname}"
    with redis.Redis.from_url(service_lab.redis.url, decode_responses=True) as connection:
        (name,) = connection.scan_iter(match=key)
        kept = json.loads(connection.hget(name, "certificate") or "")
        kept["renew_at_ms"] = kept["valid_from_ms"]
        bucket = name.split(":host:", maxsplit=1)[0]
        connection.hset(name, "certificate", json.dumps(kept))
        connection.zadd(f"{bucket}:due", {mine.hostname: 0})
    seen: list[str] = []

    def is_renewed() -> bool:
        answer = mine.get()
        assert answer["status"] == "ready"
        seen.append(answer["certificate"]["chainPem"])
        return seen[-1] != first["chainPem"]

    wait_until(is_renewed, "the certificate is renewed")
    assert mine.certificate()["privateKeyPem"] != first["privateKeyPem"]


def test_restart_in_the_middle_goes_on_with_the_same_order(
    service_lab: Lab, mine: Ownership
) -> None:
    before = orders_placed(service_lab)
    with resting_while_published(service_lab, mine):
        order = json.loads(stored(service_lab, mine.hostname)["issuance"])["order_url"]
        for process in service_lab.gateways:
            process.kill()
    for process in service_lab.gateways:
        process.start()
    assert mine.certificate()
    assert order
    assert orders_placed(service_lab) == before + 1


def test_document_nobody_can_read_stops_no_other_hostname(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    mine.certificate()
    with redis.Redis.from_url(service_lab.redis.url, decode_responses=True) as connection:
        (name,) = connection.scan_iter(match=f"*:host:{mine.hostname}")
        connection.hset(name, "certificate", '{"of": "a newer release"}')
        connection.zadd(f"{name.split(':host:', maxsplit=1)[0]}:due", {mine.hostname: 0})
        logs = [gateway.process.log_file for gateway in service_lab.gateways]
        wait_until(
            lambda: any("work broke" in log.read_text() for log in logs), "the worker has met it"
        )
        refusal = mine.caller.refused(GET, ownership=mine.wire)
        assert refusal["code"] == "internal"
        assert any(refusal["incidentId"] in log.read_text() for log in logs)
        assert world.ownership().certificate()
        connection.delete(name)


@pytest.mark.parametrize(("key_type", "size"), [("rsa-2048", 2048), ("ecdsa-p384", 384)])
def test_key_type_is_the_configured_one(
    service_lab: Lab, tmp_path: Path, key_type: str, size: int
) -> None:
    config = write_gateway_config(
        tmp_path / "gateway", service_lab.bind, service_lab.redis.url, service_lab.pebble
    )
    environ = {
        "GATEWAY_ACME__0__KEY_TYPE": key_type,
        "GATEWAY_REDIS__URL": "embedded",
    }
    process = start_gateway(config, environ=environ)
    try:
        mine = World(config.url, config.admin_token).ownership()
        key = load_pem_private_key(mine.certificate()["privateKeyPem"].encode(), None)
        assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
        assert key.key_size == size
    finally:
        process.stop()


def test_validation_that_fails_is_refused_in_the_authoritys_words(
    service_lab: Lab, tmp_path: Path
) -> None:
    # This CA asks the gateway's own HTTP port for DNS, so it never sees a challenge.
    elsewhere = ("127.0.0.1", service_lab.config.port)
    folder = tmp_path / "pebble"
    folder.mkdir()
    blind = start_pebble(folder, elsewhere)
    config = write_gateway_config(
        tmp_path / "gateway", service_lab.bind, service_lab.redis.url, blind
    )
    process = start_gateway(config, environ={"GATEWAY_REDIS__URL": "embedded"})
    try:
        mine = World(config.url, config.admin_token).ownership()
        answer = mine.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
        assert answer["retryAfterMs"] > 10_000
        assert "TXT" in answer["message"] or "DNS" in answer["message"].upper()
        assert mine.caller.call(RELEASE, ownership=mine.wire) == {"status": "released"}
        assert mine.caller.call(CONTEXT)
    finally:
        process.stop()
        blind.stop()
