"""The lab itself: when these fail, look here before anywhere else."""

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.update
import dns.xfr
import dns.zone
import pytest
import redis
from cryptography import x509

from tests.lab.bind import BindPair, Tsig, start_bind_pair
from tests.lab.lab import Lab
from tests.lab.pebble import PebbleProcess, require_validity, start_pebble
from tests.lab.process import LabFault, Process, wait_until
from tests.lab.redis import RedisProcess, start_redis

ROOT = Path(__file__).parents[2]
EXCHANGE_LIMIT_SECONDS = 5.0
Server = tuple[str, int]

DESCRIPTION_KEYS = [
    "url",
    "page",
    "adminToken",
    "state",
    "config",
    "zones",
    "primary",
    "secondary",
    "tsig",
    "redis",
    "acme",
    "pids",
]


def add_txt(bind: BindPair, zone: str, label: str, tsig: Tsig | None) -> dns.rcode.Rcode:
    keyring = tsig.key() if tsig else None
    update = dns.update.UpdateMessage(zone, keyring=keyring)
    update.add(label, 60, "TXT", "seen")
    host, port = bind.primary
    return dns.query.tcp(update, host, port=port, timeout=EXCHANGE_LIMIT_SECONDS).rcode()


def has_txt(server: Server, name: str) -> bool:
    query = dns.message.make_query(name, "TXT", flags=0)
    return bool(
        dns.query.udp(query, server[0], port=server[1], timeout=EXCHANGE_LIMIT_SECONDS).answer
    )


def addresses_of(server: Server, name: str, record_type: str) -> list[str]:
    query = dns.message.make_query(name, record_type, flags=0)
    answer = dns.query.udp(query, server[0], port=server[1], timeout=EXCHANGE_LIMIT_SECONDS)
    return sorted(record.to_text() for rrset in answer.answer for record in rrset)


def processes_in(folder: Path) -> list[int]:
    """Ids of the living processes that work in `folder`, where every part of a lab works."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                working_folder = (entry / "cwd").readlink()
            except OSError:  # ended meanwhile, a zombie, or somebody else's
                continue
            if working_folder.is_relative_to(folder):
                found.append(int(entry.name))
    return found


@contextmanager
def lab_command(
    temporary: Path, *command: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run a lab until it has printed its line; it is dead at the end of the block."""
    environ = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            yield child, json.loads(child.stdout.readline())
        finally:
            child.kill()


@pytest.mark.parametrize("zone", ["example.test", "example.net.test"])
def test_secondary_follows_after_an_update_of_the_primary(
    bind: BindPair, zone: str, fresh_label: str
) -> None:
    assert add_txt(bind, zone, fresh_label, bind.tsig) == dns.rcode.NOERROR
    name = f"{fresh_label}.{zone}"
    wait_until(lambda: has_txt(bind.secondary, name), "the secondary has the record")


def test_ns_rrset_leads_to_both_servers_at_the_nameserver_port(bind: BindPair) -> None:
    zone = bind.zones[0]
    servers = [name.rstrip(".") for name in addresses_of(bind.primary, zone, "NS")]
    addresses = [addresses_of(bind.primary, server, "A") for server in servers]
    assert addresses == [["127.0.0.1"], ["127.0.0.2"]]
    for (address,) in addresses:
        assert addresses_of((address, bind.nameserver_port), zone, "NS")


def test_servers_in_the_ns_rrset_answer_over_tcp_as_well(bind: BindPair) -> None:
    query = dns.message.make_query(bind.zones[0], "SOA", flags=0)
    host, port = bind.secondary_as_ns2
    assert dns.query.tcp(query, host, port=port, timeout=EXCHANGE_LIMIT_SECONDS).answer


def test_another_persons_key_may_update_but_not_transfer(bind: BindPair, fresh_label: str) -> None:
    assert add_txt(bind, bind.zones[0], fresh_label, bind.hand) == dns.rcode.NOERROR
    host, port = bind.primary
    query, _ = dns.xfr.make_query(dns.zone.Zone(bind.zones[0]), keyring=bind.hand.key())
    answer = dns.query.tcp(query, host, port=port, timeout=EXCHANGE_LIMIT_SECONDS)
    assert answer.rcode() == dns.rcode.REFUSED


def test_update_is_refused_without_a_signature(bind: BindPair, fresh_label: str) -> None:
    assert add_txt(bind, bind.zones[0], fresh_label, None) == dns.rcode.REFUSED


def test_zone_keeps_its_records_when_the_primary_is_killed(
    tmp_path: Path, fresh_label: str
) -> None:
    pair = start_bind_pair(tmp_path)
    try:
        add_txt(pair, "example.test", fresh_label, pair.tsig)
        pair.primary_process.kill()
        pair.start_primary()
        assert has_txt(pair.primary, f"{fresh_label}.example.test")
    finally:
        pair.stop()
    assert processes_in(tmp_path) == []


def test_redis_keeps_what_it_acknowledged_when_killed(tmp_path: Path) -> None:
    server = start_redis(tmp_path)
    try:
        with redis.Redis.from_url(server.url) as client:
            client.set("kept", "yes")
        server.kill()
        server.start()
        with redis.Redis.from_url(server.url) as client:
            assert client.get("kept") == b"yes"
    finally:
        server.stop()
    assert processes_in(tmp_path) == []


def test_redis_syncs_every_write(redis_server: RedisProcess) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        settings: Any = client.config_get("append*")
    assert (settings["appendonly"], settings["appendfsync"]) == ("yes", "always")


def test_pebbles_directory_answers_over_verified_tls(pebble: PebbleProcess) -> None:
    tls = ssl.create_default_context(cafile=pebble.ca_file)
    with urllib.request.urlopen(pebble.directory_url, context=tls) as answer:  # noqa: S310 - https
        assert "newOrder" in json.load(answer)


def test_root_file_is_the_authority_that_signs_itself(pebble: PebbleProcess) -> None:
    root = x509.load_pem_x509_certificate(pebble.root_file.read_bytes())
    root.verify_directly_issued_by(root)


def test_validity_is_taken_when_pebble_can(tmp_path: Path, bind: BindPair) -> None:
    start_pebble(tmp_path, bind.primary, validity_seconds=300).stop()
    assert processes_in(tmp_path) == []


def test_validity_is_refused_when_pebble_goes_its_own_way() -> None:
    with pytest.raises(LabFault, match="cannot be told how long its certificates are valid"):
        require_validity("Using certificate validity period of 157766400 seconds", 300)


def test_start_failure_shows_what_the_program_said(tmp_path: Path) -> None:
    process = Process("odd", ["sh", "-c", "echo no such zone; exit 3"], tmp_path)
    with pytest.raises(LabFault, match=r"odd ended at its start(.|\n)*no such zone"):
        process.start(lambda: False)


def test_stop_ends_a_program_when_it_hangs(tmp_path: Path) -> None:
    server = start_redis(tmp_path)
    server.process.pause()
    server.stop()
    server.stop()
    assert processes_in(tmp_path) == []


def test_lab_prints_one_line_and_leaves_nothing_after_sigterm(tmp_path: Path) -> None:
    with lab_command(tmp_path, "scripts/lab", "--no-gateway") as (child, description):
        assert list(description) == DESCRIPTION_KEYS
        assert description["pids"]["gateway"] == []
        assert len(processes_in(tmp_path)) == 5
        child.send_signal(signal.SIGTERM)
        assert child.stdout is not None
        assert child.stdout.read() == ""
        assert child.wait() == 0
        assert list(tmp_path.iterdir()) == []
        assert processes_in(tmp_path) == []


def test_lab_leaves_no_process_when_it_is_killed(tmp_path: Path) -> None:
    with lab_command(tmp_path, sys.executable, "-m", "tests.lab", "--no-gateway") as (child, _):
        assert len(processes_in(tmp_path)) == 5
        child.kill()
        wait_until(lambda: processes_in(tmp_path) == [], "every program has ended")


def test_lab_names_the_package_when_a_program_is_missing(tmp_path: Path) -> None:
    missing = {**os.environ, "TMPDIR": str(tmp_path), "PATH": str(tmp_path)}
    command = [sys.executable, "-m", "tests.lab", "--no-gateway"]
    ended = subprocess.run(command, cwd=ROOT, env=missing, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "is missing: install the Debian package" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def call(url: str, method: str, request: dict[str, object]) -> dict[str, Any]:
    body = json.dumps({"method": method, "request": request}).encode()
    asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - http
    with urllib.request.urlopen(asked, timeout=EXCHANGE_LIMIT_SECONDS) as answer:  # noqa: S310 - http
        envelope: dict[str, Any] = json.load(answer)
    return envelope


def test_every_gateway_of_a_lab_takes_the_admin_token(tmp_path: Path) -> None:
    command = ["scripts/lab", "--gateways", "2"]
    with lab_command(tmp_path, *command) as (child, description):
        assert len(set(description["pids"]["gateway"])) == 2
        assert len(set(description["urls"])) == 2
        for url in description["urls"]:
            answer = call(url, "getGatewayClientContext", {"apiToken": description["adminToken"]})
            assert answer["response"] == {"context": {"role": "admin"}}
        child.send_signal(signal.SIGTERM)
        assert child.wait() == 0
        assert processes_in(tmp_path) == []


def test_gateway_of_the_session_is_ready(lab: Lab) -> None:
    (gateway,) = lab.gateways
    with urllib.request.urlopen(f"{gateway.base_url}/readyz") as answer:  # noqa: S310 - http
        assert answer.status == 200
    assert lab.describe()["url"] == gateway.url
