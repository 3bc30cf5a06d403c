"""The audit trail of a whole service: who did what, to what, with what outcome, from where."""

import json
import secrets
from pathlib import Path

import httpx
import pytest
import redis

from gateway.store import keys
from tests.integration.service.calling import (
    CONTEXT,
    GET,
    NO_TLS,
    PROVISION,
    RELEASE,
    SYNC,
    Caller,
    Ownership,
    World,
    envelope,
    spec,
)
from tests.integration.service.inside import stored
from tests.integration.service.test_commands import gateway
from tests.integration.service.trailing import deeds, told_of, told_of_client, trail, who
from tests.lab.lab import Lab
from tests.lab.process import wait_until


def test_records_are_told_with_before_and_after(service_lab: Lab, mine: Ownership) -> None:
    mine.publish("198.51.100.5")
    mine.publish("198.51.100.5")  # changes nothing
    mine.publish("198.51.100.6", ttl=60)
    mine.withdraw()
    created, updated, deleted = told_of(
        service_lab,
        mine.hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "managed-updated"),
        ("record-sync", "managed-deleted"),
    )
    client_id, credential_id = who(mine.caller)
    assert (created["who"], created["ofClient"], created["name"]) == (
        "client",
        client_id,
        credential_id,
    )
    assert (created["clientId"], created["appId"]) == (client_id, mine.app_id)
    assert created["remote"] == "127.0.0.1"
    assert "before" not in created
    assert created["after"] == "A 198.51.100.5 300"
    assert (updated["before"], updated["after"]) == ("A 198.51.100.5 300", "A 198.51.100.6 60")
    assert deleted["before"] == "A 198.51.100.6 60"
    assert "after" not in deleted


def test_entry_and_log_lines_have_the_request_id_of_the_answer(
    service_lab: Lab, mine: Ownership
) -> None:
    record = {"type": "A", "value": "198.51.100.5"}
    request = {"apiToken": mine.caller.token, "ownership": mine.wire, "record": record}
    answers = [mine.caller.post(envelope(SYNC, request)) for _ in range(2)]
    first, second = (answer.headers["x-request-id"] for answer in answers)
    assert len(first) == len(second) == 16
    assert first != second
    (created,) = told_of(service_lab, mine.hostname, ("record-sync", "managed-created"))
    assert created["requestId"] == first
    log = service_lab.gateways[0].process.log_file.read_text()
    of_call = [line for line in log.splitlines() if f"request_id={first}" in line]
    (answered,) = [line for line in of_call if "call answered" in line]
    assert f"credential={who(mine.caller)[1]} " in answered
    assert "method=syncGatewayClientDnsRecord" in answered
    assert "remote=127.0.0.1" in answered
    assert "status=managed-created" in answered
    assert any("dns exchange" in line for line in of_call)


def test_certificate_is_told_from_request_to_release(service_lab: Lab, mine: Ownership) -> None:
    mine.certificate()
    mine.release()
    requested, issued, handed_out, released = told_of(
        service_lab,
        mine.hostname,
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
        ("certificate-release", "released"),
    )
    client_id, credential_id = who(mine.caller)
    assert (issued["who"], issued["clientId"], issued["appId"]) == (
        "worker",
        client_id,
        mine.app_id,
    )
    assert "requestId" not in issued
    assert "remote" not in issued
    assert issued["after"].split(",")[0] in handed_out["detail"]
    assert all(each["name"] == credential_id for each in (requested, handed_out, released))


def test_workers_lines_have_hostname_and_issuance_and_no_request(
    service_lab: Lab, mine: Ownership
) -> None:
    mine.certificate()
    (_, issued, _) = told_of(
        service_lab,
        mine.hostname,
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
    )
    issuance_id = issued["detail"].split()[1]
    logs = [gateway.process.log_file.read_text() for gateway in service_lab.gateways]
    lines = [line for log in logs for line in log.splitlines() if f"issuance={issuance_id}" in line]
    for event in ("certificate issued", "call to the CA", "dns exchange", "issuance advanced"):
        found = [line for line in lines if event in line]
        assert found, event
        assert all(f"hostname={mine.hostname}" in line for line in found)
        assert not any("request_id=" in line for line in found)


def test_key_handed_out_is_told_once_to_each_credential_by_all_processes(
    service_lab: Lab, world: World, mine: Ownership, second_url: str
) -> None:
    mine.certificate()
    for _ in range(3):
        mine.get()
        mine.at(second_url).get()
    client_id, first = who(mine.caller)
    rotated = world.admin.call(
        PROVISION, action="rotate", spec={"clientId": client_id}, overlapSeconds=60
    )
    other = Ownership(Caller(second_url, rotated["apiToken"]), mine.hostname)
    for _ in range(2):
        other.get()
    mine.release()
    found = told_of(
        service_lab,
        mine.hostname,
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
        ("key-handed-out", "ready"),
        ("certificate-release", "released"),
    )
    assert [found[2]["name"], found[3]["name"]] == [first, rotated["credential"]["credentialId"]]


def test_refused_call_that_would_have_changed_something_is_told_once(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    rival = world.rival(mine)
    for _ in range(3):
        rival.publish("198.51.100.7")
        rival.get()
    mine.publish("203.0.113.9")
    mine.withdraw()
    told_of(
        service_lab,
        mine.hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "record-conflict"),
        ("certificate-request", "hostname-conflict"),
        ("record-sync", "target-invalid"),
        ("record-sync", "managed-deleted"),
    )


def test_calls_beyond_the_policy_are_told(service_lab: Lab, world: World) -> None:
    hostname = f"t{secrets.token_hex(6)}.example.test"
    caller = world.client("elsewhere.example.test", capabilities=["syncDnsRecords"])
    wire = {"appId": "relay", "hostname": hostname}
    caller.refused(SYNC, ownership=wire, delete=True)
    caller.refused(GET, ownership=wire)
    caller.refused(RELEASE, ownership=wire)
    caller.refused(PROVISION, action="revoke", spec={"clientId": "other"})
    caller.call(CONTEXT)
    told_of(
        service_lab,
        hostname,
        ("record-sync", "hostname-forbidden"),
        ("certificate-request", "forbidden"),
        ("certificate-release", "forbidden"),
    )
    client_id, _ = who(caller)
    told_of_client(
        service_lab,
        client_id,
        lambda found: ("client-provision", "forbidden") in deeds(found),
    )


def test_provisioning_is_told_with_what_changed(service_lab: Lab, world: World) -> None:
    client_id = f"client-{secrets.token_hex(6)}"
    for patterns in (["a.example.test"], ["a.example.test"], ["b.example.test"]):
        world.admin.call(PROVISION, action="ensure", spec=spec(client_id, *patterns))
    rotated = world.admin.call(PROVISION, action="rotate", spec={"clientId": client_id})
    world.admin.call(PROVISION, action="revoke", spec={"clientId": client_id})
    world.admin.call(PROVISION, action="remove", spec={"clientId": client_id})
    world.admin.refused(PROVISION, action="remove", spec={"clientId": client_id})
    expected = [
        ("client-ensure", "created"),
        ("client-ensure", "changed"),
        ("client-rotate", "changed"),
        ("client-revoke", "changed"),
        ("client-remove", "removed"),
        ("client-remove", "refused"),
    ]
    found = told_of_client(service_lab, client_id, lambda entries: deeds(entries) == expected)
    assert {entry["who"] for entry in found} == {"admin"}
    assert (found[1]["before"], found[1]["after"]) == (
        "hostnames: a.example.test",
        "hostnames: b.example.test",
    )
    assert found[2]["credentialId"] == rotated["credential"]["credentialId"]
    assert rotated["apiToken"] not in json.dumps(found)


def test_removal_with_holdings_tells_each_of_them(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    client_id, _ = who(mine.caller)
    world.admin.call(PROVISION, action="remove", spec={"clientId": client_id}, releaseHoldings=True)
    _, withdrawn = told_of(
        service_lab,
        mine.hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "managed-deleted"),
    )
    assert (withdrawn["who"], withdrawn["clientId"]) == ("admin", client_id)


def test_operators_commands_are_written_before_they_end(service_lab: Lab, world: World) -> None:
    hostname = f"t{secrets.token_hex(6)}.example.test"
    gateway(service_lab, "claims", "add", hostname, "--note", "for the new site")
    gateway(service_lab, "claims", "remove", hostname)
    gateway(service_lab, "claims", "remove", hostname)
    found = trail(service_lab, "--hostname", hostname)
    assert deeds(found) == [("claim-add", "claimed"), ("claim-remove", "removed")]
    assert {entry["who"] for entry in found} == {"operator"}
    assert all(entry["name"] and entry["remote"] for entry in found)
    assert found[0]["after"] == "for the new site"


def test_hand_over_is_told_also_where_it_is_refused(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    taker = world.rival(mine)
    giver_id, taker_id = who(mine.caller)[0], who(taker.caller)[0]
    told_of(service_lab, mine.hostname, ("record-sync", "managed-created"))
    for to in ("nobody:relay", f"{taker_id}:relay"):
        gateway(
            *(service_lab, "holdings", "hand-over", mine.hostname),
            *("--from", f"{giver_id}:{mine.app_id}", "--to", to),
        )
    _, refused, done = trail(service_lab, "--hostname", mine.hostname)
    assert (refused["what"], refused["outcome"]) == ("hand-over", "refused")
    assert refused["detail"] == "There is no client nobody."
    assert (done["outcome"], done["before"], done["after"]) == (
        "handed-over",
        f"{giver_id}:{mine.app_id}",
        f"{taker_id}:relay",
    )


def test_commands_on_accounts_and_seals_are_told(service_lab: Lab, mine: Ownership) -> None:
    mine.certificate()  # so that there is an account
    told_of(
        service_lab,
        mine.hostname,
        ("certificate-request", "begun"),
        ("certificate-issued", "issued"),
        ("key-handed-out", "ready"),
    )
    last = trail(service_lab)[-1]["place"]
    assert gateway(service_lab, "accounts", "contact").returncode == 0
    # What other tests have left unreadable makes it end with 1.
    gateway(service_lab, "reseal")
    found = trail(service_lab)
    later = found[[entry["place"] for entry in found].index(last) :]
    told = [entry for entry in later if entry["who"] == "operator"]
    assert deeds(told) == [("account-contact", "done"), ("reseal", "finished")]
    assert service_lab.pebble.directory_url.split("/")[2].partition(":")[0] in told[0]["detail"]
    assert told[1]["detail"].endswith("moved to lab-1.")


def test_rebuilding_is_told_once_for_all_it_restored(
    service_lab: Lab, mine: Ownership, tmp_path: Path
) -> None:
    mine.publish("198.51.100.5")
    (created,) = told_of(service_lab, mine.hostname, ("record-sync", "managed-created"))
    with redis.Redis.from_url(service_lab.redis.url) as connection:
        assert connection.delete(keys.host_key(mine.hostname)) == 1
    owners = tmp_path / "owners"
    owners.write_text(f"{who(mine.caller)[0]} {mine.app_id} {mine.hostname}\n")
    gateway(service_lab, "holdings", "rebuild", "--zone", "example.test", "--owners", str(owners))
    assert stored(service_lab, mine.hostname)
    found = trail(service_lab)
    later = found[[entry["place"] for entry in found].index(created["place"]) :]
    (rebuilt,) = [entry for entry in later if entry["what"] == "rebuild"]
    assert (rebuilt["who"], rebuilt["outcome"]) == ("operator", "rebuilt")
    assert rebuilt["detail"].endswith(" of example.test")


def test_explaining_writes_nothing(service_lab: Lab, mine: Ownership) -> None:
    assert gateway(service_lab, "explain", mine.hostname).returncode == 0
    assert trail(service_lab, "--hostname", mine.hostname) == []


def test_token_that_names_a_client_by_mistake_is_in_no_log(service_lab: Lab, world: World) -> None:
    secret = secrets.token_hex(20)
    slipped = f"gwc_{'a' * 36}_{secret}aaa"
    asked = {"action": "ensure", "spec": spec(slipped)}
    assert world.admin.call(PROVISION, **asked)["client"]["clientId"] == slipped
    removed = {"action": "remove", "spec": {"clientId": slipped}}
    world.admin.call(PROVISION, **removed)
    refused = str(world.admin.refused(PROVISION, **removed))
    assert "names no client" in refused
    assert secret not in refused
    logs = "".join(each.process.log_file.read_text() for each in service_lab.gateways)
    assert "gwc_(hidden)" in logs
    assert secret not in logs


@pytest.mark.parametrize(
    "text", ["\x1b]0;owned\x07", "a\n2026-11-30T08:35:01Z [info] call", "\x9b"]
)
def test_names_sent_by_strangers_stay_within_their_line(
    service_lab: Lab, world: World, text: str
) -> None:
    mark = secrets.token_hex(8)
    answer = Caller(world.url, None).post(envelope(f"{mark}{text}", {}))
    request_id = answer.headers["x-request-id"]
    log = service_lab.gateways[0].process.log_file

    def lines() -> list[str]:
        return [line for line in log.read_text().split("\n") if request_id in line]

    wait_until(lambda: any("call refused" in line for line in lines()), "it is logged")
    assert all(line.isprintable() for line in lines())
    assert sum(mark in line for line in log.read_text().split("\n")) == len(
        [line for line in lines() if mark in line]
    )


def test_every_http_answer_of_the_endpoint_has_a_request_id(service_lab: Lab) -> None:
    for method, content in (("GET", b""), ("POST", b"{"), ("POST", b"x" * 300_000)):
        answer = httpx.request(
            method,
            service_lab.config.url,
            content=content,
            headers={"Content-Type": "application/json"},
            trust_env=False,
            verify=NO_TLS,
        )
        assert len(answer.headers["x-request-id"]) == 16
