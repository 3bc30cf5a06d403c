"""`gateway agent check` and `--once --renew`, on a real gateway; `status` beside an agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agent.machine import ADDRESS, Machine, Ran, managed
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import World
from tests.lab.liar import Liar, Says, response
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import wait_until

RECORD = {"value": ADDRESS, "ttl": 60}
HOOK = {"deploy_hook": ["true"]}


def found(ran: Ran) -> list[dict[str, Any]]:
    """The findings of a check with `--json`."""
    checks: list[dict[str, Any]] = json.loads("\n".join(ran.said))["checks"]
    return checks


def failures(machine: Machine) -> list[str]:
    """What a check finds to be wrong; each has a remedy."""
    failed = [each for each in found(machine.run("check", "--json")) if each["state"] == "failed"]
    assert all(each["remedy"] for each in failed)
    return [f"{each['part']}: {each['finding']}" for each in failed]


def test_machine_that_is_set_up_well_is_found_well_and_left_as_it_is(
    machine: Machine, zone_hand: Hand
) -> None:
    machine.configure(record=RECORD, certificate=HOOK)
    before = sorted(machine.folder.iterdir())
    ran = machine.run("check")
    assert (ran.code, ran.complained) == (0, ())
    assert all(line.startswith("✓ ") for line in ran.said)
    told = "\n".join(ran.said)
    assert f"✓ {machine.hostname}: The source gives A {ADDRESS}" in told
    assert "✓ agent: None runs." in told
    assert sorted(machine.folder.iterdir()) == before
    assert zone_hand.records(machine.hostname) == set()


def test_hook_that_is_a_text_is_named_by_it_and_not_looked_into(machine: Machine) -> None:
    machine.configure(certificate={"deploy_hook": "no-such-program --reload"})
    ran = machine.run("check")
    said = 'The deploy hook "no-such-program --reload" is run by /bin/sh; what that runs is not'
    assert any(line.startswith(f"✓ {machine.hostname}: {said}") for line in ran.said)
    assert ran.code == 0


def test_everything_that_is_wrong_is_told_at_once(machine: Machine) -> None:
    machine.state.write_text("no folder")
    machine.hostname = f"other.{machine.hostname}"
    machine.configure(
        record={"value": "192.0.2.1"},
        certificate={"deploy_hook": ["/nonexistent/reload"]},
        textfile=str(machine.folder / "none" / "a.prom"),
    )
    told = "\n".join(failures(machine))
    assert machine.run("check").code == 1
    for part, words in (
        (machine.hostname, f"may not have it: its patterns are {machine.ownership.hostname}."),
        (machine.hostname, "may not publish A 192.0.2.1 (given: 192.0.2.1): its addresses are"),
        (machine.hostname, "The deploy hook's program /nonexistent/reload is not there."),
        ("state_dir", f"{machine.state} is in the way: it is no folder."),
        ("certificates_dir", f"{machine.state} is in the way: it is no folder."),
        ("textfile", f"There is no folder {machine.folder / 'none'}."),
    ):
        assert any(line.startswith(part) and words in line for line in told.splitlines()), words


def test_token_that_the_gateway_does_not_know_is_told_and_not_shown(machine: Machine) -> None:
    machine.give_token("gwc_none_of_yours")
    machine.configure(record=RECORD)
    ran = machine.run("check")
    assert ran.code == 1
    assert "✗ gateway: " in "\n".join(ran.said)
    assert "gateway clients rotate" in "\n".join(ran.said)
    assert "gwc_none_of_yours" not in "\n".join(ran.said)


def test_token_that_is_not_there_is_told_beside_a_gateway_that_is(machine: Machine) -> None:
    machine.token_file.unlink()
    machine.configure(record=RECORD)
    ran = machine.run("check")
    told = "\n".join(ran.said)
    assert ran.code == 1
    assert f"✗ token: The token file {machine.token_file} cannot be read" in told
    assert f"! gateway: {machine.url} answers" in told


def test_token_that_others_may_read_is_a_warning(machine: Machine) -> None:
    machine.token_file.chmod(0o644)
    machine.configure(record=RECORD)
    ran = machine.run("check")
    assert ran.code == 0
    assert any(line.startswith("! token: ") and "→ chmod 0600" in line for line in ran.said)


def test_operators_own_token_is_told_apart(machine: Machine, agent_world: World) -> None:
    machine.give_token(agent_world.admin.token or "")
    machine.configure(record=RECORD)
    (only,) = failures(machine)
    assert only.startswith(f"gateway: {machine.url} answers, but the token is the operator's own")


def test_client_without_the_capabilities_is_told_which(tmp_path: Path, agent_world: World) -> None:
    ownership = agent_world.ownership(capabilities=["requestCertificates"])
    machine = Machine(tmp_path, ownership, ownership.caller.url)
    machine.configure(record=RECORD, certificate=HOOK)
    (only,) = failures(machine)
    assert only.endswith(" lacks syncDnsRecords, readCertificates.")


def test_gateway_that_is_away_is_not_yet(machine: Machine) -> None:
    machine.url = f"http://{LOOPBACK}:{free_port()}/typedrequest"
    machine.configure(record=RECORD)
    ran = machine.run("check")
    assert ran.code == 3
    assert [line[0] for line in ran.said].count("✗") == 1


def test_gateway_that_answers_nonsense_is_a_failure_and_its_fault_beside_others(
    misled: Machine, liar: Liar
) -> None:
    liar.answers(Says(b"Hello."))
    misled.configure(record={"command": ["false"]})
    told = failures(misled)
    assert [line.partition(":")[0] for line in told] == ["gateway", misled.hostname]
    assert "The command false " in told[1]


def test_configuration_that_is_wrong_is_told_with_every_fault(machine: Machine) -> None:
    machine.configure(record={"value": "198.51.100.085", "ttl": 1})
    ran = machine.run("check", "--json")
    assert (ran.code, len(found(ran))) == (2, 2)


@pytest.mark.parametrize("kind", ["mode", "kind"])
def test_what_is_in_the_way_of_the_agents_files_is_told(machine: Machine, kind: str) -> None:
    hook = machine.folder / "hook"
    hook.write_text("#!/bin/sh\n")
    machine.live.mkdir(parents=True)
    machine.configure(certificate={"deploy_hook": [str(hook)] if kind == "mode" else ["true"]})
    told = failures(machine)
    assert f"{machine.live} is not a link of this agent: move it away." in told[0]
    assert any("cannot be run by" in line for line in told) is (kind == "mode")


# --- the agent that runs


def test_check_and_status_tell_of_an_agent_that_runs_and_of_one_that_died(
    machine: Machine,
) -> None:
    machine.configure(record=RECORD)
    with machine.started() as agent:
        wait_until(lambda: machine.remembered().get("published"), "the record is published")
        assert f"✓ agent: It runs: process {agent.pid}." in machine.run("check").said
        status = machine.run("status")
        assert (status.code, status.said[-1]) == (0, f"Agent: running, process {agent.pid}.")
        renewed = machine.once("--renew")
        assert renewed.code == 3
        assert "stop it, run this, and start it again" in renewed.complaint
    assert machine.run("status").said[-1] == "Agent: not running."
    shown = json.loads("\n".join(machine.run("status", "--json").said))
    assert shown["agent"] == {"running": False, "pid": None, "fault": None}


# --- asking now


def test_renew_takes_what_was_issued_anew_though_the_old_one_is_current(machine: Machine) -> None:
    machine.configure_certificate()
    machine.once()
    machine.ownership.release()
    certificate = machine.ownership.certificate()
    assert machine.once().said == ()
    renewed = machine.once("--renew")
    assert renewed.code == 0
    assert machine.served() == (certificate["chainPem"], certificate["privateKeyPem"])
    assert len(machine.hooks_run()) == 2
    again = machine.once("--renew")
    assert (again.code, again.said) == (
        0,
        ("The gateway was asked for everything, and all is as it was.",),
    )


def test_renew_publishes_a_record_that_was_removed_by_hand(
    machine: Machine, zone_hand: Hand
) -> None:
    machine.configure(record=RECORD)
    machine.once()
    zone_hand.update(f"delete {machine.hostname} A")
    assert (machine.once().code, zone_hand.records(machine.hostname) & {f"60 A {ADDRESS}"}) == (
        0,
        set(),
    )
    renewed = machine.once("--renew")
    assert (renewed.code, len(renewed.said)) == (0, 1)
    assert f"60 A {ADDRESS}" in zone_hand.records(machine.hostname)
    assert machine.status()["current"]


def test_renew_heeds_no_wait_for_a_record_and_publishes_one_that_is_current(
    misled: Machine, liar: Liar
) -> None:
    misled.configure(record=RECORD)
    away = {"status": "zone-unavailable", "retryAfterMs": 600_000, "message": "Later."}
    liar.answers(response({"hostname": misled.hostname, **away}))
    assert misled.once("--timeout", "5").code == 3
    assert misled.once("--timeout", "5").code == 3
    assert len(liar.methods) == 1
    liar.answers(managed(misled.hostname))
    assert misled.once("--renew").code == 0
    assert len(liar.methods) == 2
    assert misled.once("--renew").code == 0
    assert len(liar.methods) == 3
    assert misled.once().code == 0
    assert len(liar.methods) == 3


def test_renew_that_does_not_reach_the_gateway_is_made_up_for_by_the_next_run(
    machine: Machine,
) -> None:
    url = machine.url
    machine.configure_certificate()
    machine.once()
    machine.url = f"http://{LOOPBACK}:{free_port()}/typedrequest"
    machine.configure_certificate()
    assert machine.once("--renew", "--timeout", "1").code == 3
    machine.ownership.release()
    certificate = machine.ownership.certificate()
    machine.url = url
    machine.configure_certificate()
    assert machine.once().code == 0
    assert machine.served() == (certificate["chainPem"], certificate["privateKeyPem"])
