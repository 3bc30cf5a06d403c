"""`gateway agent --once`: what it does, says and ends with, on a real gateway."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.agent.hook import SHELL, Hook
from tests.integration.agent.machine import ADDRESS, LIMIT_SECONDS, Machine
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import PROVISION, Ownership, World
from tests.lab.liar import Liar, response
from tests.lab.ports import LOOPBACK, free_port

RECORD = {"value": ADDRESS, "ttl": 60}


def test_relay_from_nothing_has_record_files_and_hook_after_one_run(
    machine: Machine, zone_hand: Hand
) -> None:
    script = f'echo "$RENEWED_DOMAINS $RENEWED_LINEAGE" >> {machine.hook_log}'
    machine.configure(
        record=RECORD, certificate={"deploy_hook": script}, textfile=str(machine.folder / "a.prom")
    )
    gateway = Path(sys.executable).with_name("gateway")
    ran = subprocess.run(
        [gateway, "agent", "--config", machine.config, "--once"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line.split(": ")[1] for line in ran.stdout.splitlines()] == [
        "record published",
        "certificate installed",
        f"the deploy hook {Hook((*SHELL, script), 60).name} succeeded",
    ]
    assert f"60 A {ADDRESS}" in zone_hand.records(machine.hostname)
    certificate = machine.ownership.certificate()
    assert machine.served() == (certificate["chainPem"], certificate["privateKeyPem"])
    assert machine.hooks_run() == [f"{machine.hostname} {machine.live}"]
    metrics = (machine.folder / "a.prom").read_text()
    assert f'gateway_agent_certificate_ok{{hostname="{machine.hostname}"}} 1.0' in metrics
    again = machine.once()
    assert (again.code, again.said, again.complained) == (0, (), ())
    assert len(machine.hooks_run()) == 1


def test_verbose_run_says_how_it_stands_though_nothing_changed(machine: Machine) -> None:
    machine.configure(record=RECORD)
    machine.once()
    said = "\n".join(machine.once("--verbose").said)
    assert ADDRESS in said
    assert f"{machine.hostname} is current" in said


def test_certificate_that_was_issued_anew_is_swapped_and_its_hook_run_once(
    machine: Machine,
) -> None:
    machine.configure_certificate()
    machine.once()
    first = machine.live.readlink()
    machine.ownership.release()
    certificate = machine.ownership.certificate()
    machine.forget()
    assert machine.once().code == 0
    assert machine.served() == (certificate["chainPem"], certificate["privateKeyPem"])
    assert len(machine.hooks_run()) == 2
    assert {each.name for each in machine.archive.iterdir()} == {
        first.name,
        machine.live.readlink().name,
    }


def test_failed_hook_is_a_failure_and_run_again_the_next_time(machine: Machine) -> None:
    machine.configure_certificate("echo no such server >&2; exit 7")
    failed = machine.once()
    assert failed.code == 1
    assert "ended with exit code 7" in failed.complaint
    assert "no such server" in failed.complaint
    hook = machine.status()["certificate"]["hook"]
    assert hook["done"] is False
    assert hook["fault"]["sentence"].endswith(" ended with exit code 7; it said: no such server")
    machine.configure_certificate()
    mended = machine.once()
    assert (mended.code, len(machine.hooks_run())) == (0, 1)
    assert machine.status()["certificate"]["hook"]["done"] is True


def test_hook_is_run_after_the_agent_was_killed_before_it(machine: Machine) -> None:
    killed = machine.folder / "killed"
    logs = f"echo ran >> {machine.hook_log}"
    # The hook is the agent's child: at its first run it kills the agent, and then itself.
    machine.configure_certificate(
        f"test -e {killed} && {logs} && exit; touch {killed}; kill -9 $PPID $$"
    )
    assert machine.once().code == -9
    assert machine.hooks_run() == []
    assert machine.once().code == 0
    assert machine.hooks_run() == ["ran"]


def test_conflict_is_a_failure_told_with_its_evidence(machine: Machine, zone_hand: Hand) -> None:
    zone_hand.add(f"{machine.hostname} 300 A 192.0.2.7")
    machine.configure(record=RECORD)
    ran = machine.once()
    assert ran.code == 1
    assert f"{machine.hostname}: record: record-conflict: " in ran.complaint
    assert "Found: A 192.0.2.7." in ran.complaint
    assert machine.status()["record"]["fault"]["sentence"].startswith("record-conflict: ")


def test_record_of_another_application_of_the_same_client_is_told_as_such(
    machine: Machine,
) -> None:
    machine.configure(record=RECORD)
    machine.once()
    machine.forget()
    machine.ownership = Ownership(machine.ownership.caller, machine.hostname, "another")
    machine.configure(record=RECORD)
    ran = machine.once()
    assert ran.code == 1
    assert "most likely for another app_id, or another client" in ran.complaint


def test_address_outside_of_the_allowance_is_a_failure(machine: Machine) -> None:
    machine.configure(record={"value": "192.0.2.1"})
    ran = machine.once()
    assert ran.code == 1
    assert "target-invalid" in ran.complaint


def test_failing_source_is_not_yet_and_leaves_the_record_as_it_is(
    machine: Machine, zone_hand: Hand
) -> None:
    machine.configure(record=RECORD)
    machine.once()
    machine.configure(record={"command": ["false"]})
    ran = machine.once("--timeout", "1")
    assert ran.code == 3
    assert "false" in ran.complaint
    assert f"60 A {ADDRESS}" in zone_hand.records(machine.hostname)
    assert machine.status()["record"]["published"]["value"] == ADDRESS


def test_gateway_that_is_away_is_not_yet_and_changes_nothing(machine: Machine) -> None:
    machine.configure_certificate()
    machine.once()
    before = machine.certificates()
    machine.url = f"http://{LOOPBACK}:{free_port()}/typedrequest"
    machine.configure_certificate()
    machine.forget()
    ran = machine.once("--timeout", "1")
    assert ran.code == 3
    assert "cannot be reached" in ran.complaint
    assert "the certificate on disk is good until" in ran.complaint
    assert machine.certificates() == before


def test_issuance_that_takes_longer_than_the_timeout_is_not_yet(
    misled: Machine, liar: Liar
) -> None:
    liar.answers(response({"status": "pending", "retryAfterMs": 60_000}))
    misled.configure_certificate()
    ran = misled.once("--timeout", "5")
    assert (ran.code, len(liar.methods)) == (3, 1)
    assert f"{misled.hostname}: not yet: the gateway obtains a certificate" in ran.complaint


def test_refusal_that_waiting_does_not_mend_is_a_failure(misled: Machine, liar: Liar) -> None:
    liar.answers(
        response(
            {
                "status": "refused",
                "reason": "authority-refused",
                "message": "CAA forbids it.",
                "retryAfterMs": None,
            }
        )
    )
    misled.configure_certificate()
    ran = misled.once()
    assert (ran.code, len(liar.methods)) == (1, 1)
    assert "authority-refused: CAA forbids it." in ran.complaint


def test_wrong_configuration_is_told_with_every_fault(machine: Machine) -> None:
    machine.configure(record={"value": "198.51.100.085", "ttl": 1})
    ran = machine.once()
    assert (ran.code, len(ran.complained)) == (2, 2)


@pytest.mark.parametrize(
    "options", [("--timeout", "5"), ("-v", "status"), ("--once", "--timeout", "0")]
)
def test_options_that_do_not_go_together_are_refused(
    machine: Machine, options: tuple[str, ...]
) -> None:
    machine.configure(record=RECORD)
    assert machine.run(*options).code == 2


def test_token_that_was_rotated_away_is_told_and_the_new_one_taken(
    machine: Machine, agent_world: World
) -> None:
    machine.configure(record=RECORD)
    client = machine.ownership.caller.call("getGatewayClientContext")["context"]["clientId"]
    made = agent_world.admin.call(PROVISION, action="rotate", spec={"clientId": client})
    refused = machine.once()
    assert refused.code == 1
    assert "apiToken" in refused.complaint
    assert (machine.ownership.caller.token or "") not in refused.complaint
    machine.give_token(made["apiToken"])
    assert machine.once().code == 0


def test_files_that_cannot_be_written_are_told_and_written_when_they_can(
    machine: Machine,
) -> None:
    blocking = machine.state / "certificates"
    machine.state.mkdir()
    blocking.write_text("no folder")
    machine.configure_certificate()
    ran = machine.once()
    assert ran.code == 1
    assert str(blocking) in ran.complaint
    blocking.unlink()
    assert machine.once().code == 0
    assert len(machine.hooks_run()) == 1


def test_status_asks_nobody_and_takes_the_configuration_in_either_place(
    misled: Machine, liar: Liar
) -> None:
    misled.configure_certificate()
    ran = misled.run("status")
    assert (ran.code, liar.requests) == (1, [])
    assert "not usable" in "\n".join(ran.said)
    assert misled.run("status", "--config", str(misled.config)).said == ran.said
