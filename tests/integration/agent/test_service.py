"""The agent that stays: changes, faults that come and go, on a real gateway.

It runs in this process, where its pauses are made short; what it does in them is its own.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.integration.agent.machine import ADDRESS, Machine, MovedClock, managed, until
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import PROVISION, World
from tests.lab.certificates import LabAuthority
from tests.lab.http_relay import Fault, HttpRelay
from tests.lab.lab import Lab
from tests.lab.liar import Liar, failure

HOUR_MS = 3_600_000
NEW_ADDRESS = "198.51.100.86"


@contextlib.contextmanager
def cut_off(machine: Machine, lab: Lab) -> Iterator[HttpRelay]:
    """A way to the gateway that can be broken; the configuration is to be written after it."""
    with HttpRelay(lab.config.port, keeps_cache_control=True) as relay:
        machine.url = relay.url
        yield relay


async def test_address_that_changes_is_published_again(
    machine: Machine, zone_hand: Hand, tmp_path: Path
) -> None:
    printed = tmp_path / "address"
    printed.write_text(ADDRESS)
    machine.configure(record={"command": ["cat", str(printed)], "ttl": 60, "check_seconds": 1})
    async with machine.running_here():
        await until(lambda: f"60 A {ADDRESS}" in zone_hand.records(machine.hostname))
        printed.write_text(NEW_ADDRESS)
        await until(lambda: f"60 A {NEW_ADDRESS}" in zone_hand.records(machine.hostname))
    assert f"60 A {ADDRESS}" not in zone_hand.records(machine.hostname)


async def test_record_that_was_removed_by_hand_is_published_again_in_time(
    machine: Machine, zone_hand: Hand
) -> None:
    clock = MovedClock()
    machine.configure(record={"value": ADDRESS, "ttl": 60, "check_seconds": 1})
    async with machine.running_here(clock.clocks):
        await until(lambda: machine.remembered().get("published_at_ms"))
        zone_hand.update(f"delete {machine.hostname} A")
        clock.ahead_ms = HOUR_MS
        await until(lambda: f"60 A {ADDRESS}" in zone_hand.records(machine.hostname))


async def test_certificate_that_was_issued_anew_is_found_within_an_hour(machine: Machine) -> None:
    clock = MovedClock()
    machine.configure_certificate()
    async with machine.running_here(clock.clocks):
        await until(lambda: len(machine.hooks_run()) == 1)
        machine.ownership.release()
        certificate = machine.ownership.certificate()
        clock.ahead_ms = HOUR_MS
        await machine.until_served(certificate)
        await until(lambda: len(machine.hooks_run()) == 2)
    assert machine.hooks_run() == [f"{machine.hostname} {machine.live}"] * 2


async def test_pair_that_was_broken_by_hand_is_fetched_again(machine: Machine) -> None:
    machine.configure_certificate()
    async with machine.running_here():
        await until(lambda: len(machine.hooks_run()) == 1)
        served = machine.served()
        (machine.live / "privkey.pem").write_text("no key")
        await until(lambda: len(machine.hooks_run()) == 2)
    assert machine.served() == served


@pytest.mark.parametrize("what", ["mode", "combined"])
async def test_files_that_lost_their_access_by_hand_are_written_anew(
    machine: Machine, what: str
) -> None:
    logs = f'echo "$RENEWED_DOMAINS" >> {machine.hook_log}'
    machine.configure(certificate={"combined": True, "deploy_hook": logs})
    async with machine.running_here():
        await until(lambda: len(machine.hooks_run()) == 1)
        version, served = machine.live.readlink(), machine.served()
        if what == "mode":
            (machine.live / "privkey.pem").chmod(0o666)
        else:
            (machine.live / "combined.pem").unlink()
        await until(lambda: len(machine.hooks_run()) == 2)
        assert machine.live.readlink() != version
    assert (machine.live / "privkey.pem").stat().st_mode & 0o777 == 0o600
    assert (machine.live / "combined.pem").read_text() == served[1] + served[0]
    assert len(machine.hooks_run()) == 2


async def test_failing_hook_is_run_until_it_succeeds_and_then_no_more(machine: Machine) -> None:
    allowed = machine.folder / "allowed"
    machine.configure_certificate(f"echo tried >> {machine.hook_log}; test -e {allowed}")
    with capture_logs() as lines:
        async with machine.running_here():
            await until(lambda: machine.remembered().get("hook_tries", 0) >= 2)
            assert machine.status()["certificate"]["hook"]["fault"] is not None
            allowed.touch()
            await until(lambda: machine.remembered()["deployed_version"])
            assert machine.remembered()["hook_fault"] is None
    tries = machine.hooks_run()
    # Each failure is one line.
    failures = [line["event"] for line in lines if line["log_level"] in ("warning", "error")]
    assert failures == ["deploy hook failed"] * (len(tries) - 1)
    assert machine.once().code == 0
    assert machine.hooks_run() == tries


async def test_gateway_that_comes_back_is_used_at_once_and_was_told_of(
    machine: Machine, liar: Liar
) -> None:
    good = LabAuthority().as_certificate(machine.hostname)
    machine.url = liar.url
    machine.configure_certificate()
    with capture_logs() as lines:
        async with machine.running_here():
            await until(lambda: machine.remembered().get("certificate_fault"))
            assert machine.served() == ("", "")
            liar.ready_with(good)
            await until(lambda: machine.served() == (good.chain_pem, good.private_key_pem))
            await until(lambda: machine.remembered()["certificate_fault"] is None)
    told = [line["event"] for line in lines if "gateway" in line["event"] or "keeper" in line]
    assert told == ["not current", "that is over"]


async def test_token_that_is_not_there_is_told_for_all_and_taken_when_it_is(
    machine: Machine,
) -> None:
    machine.configure(record={"value": ADDRESS}, certificate={})
    machine.token_file.unlink()
    with capture_logs() as lines:
        async with machine.running_here():
            await until(lambda: machine.remembered().get("certificate_fault"))
            machine.give_token(machine.ownership.caller.token or "")
            await until(lambda: machine.served() != ("", ""))
            await until(lambda: machine.remembered()["published"])
    told = [line["event"] for line in lines if "gateway" in line["event"] or "keeper" in line]
    assert told == ["the gateway cannot be used", "the gateway can be used again"]


async def test_address_command_is_not_run_at_each_retry(misled: Machine, liar: Liar) -> None:
    runs = misled.folder / "runs"
    command = ["sh", "-c", f"echo ran >> {runs}; echo {ADDRESS}"]
    misled.configure(record={"command": command, "ttl": 60})
    liar.answers(failure("internal", incidentId="1f3c"))
    async with misled.running_here():
        await until(lambda: len(liar.methods) >= 4)
    assert runs.read_text().split() == ["ran"]


async def test_source_that_gives_an_address_at_last_is_soon_seen(
    machine: Machine, zone_hand: Hand, tmp_path: Path
) -> None:
    printed = tmp_path / "address"
    machine.configure(record={"command": ["cat", str(printed)], "ttl": 60, "check_seconds": 600})
    async with machine.running_here():
        await until(lambda: machine.remembered().get("record_fault"))
        printed.write_text(ADDRESS)
        await until(lambda: f"60 A {ADDRESS}" in zone_hand.records(machine.hostname))


async def test_agent_that_starts_again_publishes_no_sooner_for_it(
    misled: Machine, liar: Liar
) -> None:
    misled.configure(record={"value": ADDRESS, "ttl": 60})
    liar.answers(managed(misled.hostname))
    for _ in range(3):
        async with misled.running_here():
            await until(lambda: misled.remembered().get("published"))
        assert (await misled.once_here()).code == 0
    assert len(liar.methods) == 1


async def test_gateway_that_goes_away_leaves_the_files_and_status_says_so(
    machine: Machine, lab: Lab
) -> None:
    clock = MovedClock()
    with cut_off(machine, lab) as way:
        machine.configure_certificate()
        async with machine.running_here(clock.clocks):
            await until(lambda: len(machine.hooks_run()) == 1)
            before = machine.certificates()
            way.break_with(Fault.CUT_BEFORE_ANSWER)
            clock.ahead_ms = HOUR_MS
            await until(lambda: machine.remembered()["certificate_fault"])
            certificate = machine.status()["certificate"]
            assert "broke before an answer" in certificate["fault"]["sentence"]
            assert certificate["usable"] is True
    assert machine.certificates() == before


async def test_token_that_is_rotated_is_taken_without_a_restart(
    machine: Machine, agent_world: World, zone_hand: Hand, tmp_path: Path
) -> None:
    client = machine.ownership.caller.call("getGatewayClientContext")["context"]["clientId"]
    printed = tmp_path / "address"
    printed.write_text(ADDRESS)
    machine.configure(record={"command": ["cat", str(printed)], "ttl": 60, "check_seconds": 1})
    async with machine.running_here():
        await until(lambda: machine.remembered().get("published"))
        made = agent_world.admin.call(PROVISION, action="rotate", spec={"clientId": client})
        printed.write_text(NEW_ADDRESS)
        await until(lambda: "apiToken" in (machine.remembered()["record_fault"] or ""))
        machine.give_token(made["apiToken"])
        await until(lambda: f"60 A {NEW_ADDRESS}" in zone_hand.records(machine.hostname))


async def test_certificate_of_minutes_is_renewed_when_it_is_due(
    misled: Machine, liar: Liar
) -> None:
    clock, authority = MovedClock(), LabAuthority()
    misled.configure_certificate()
    first = authority.as_certificate(misled.hostname)
    liar.ready_with(first)
    async with misled.running_here(clock.clocks):
        await until(lambda: misled.served()[0] == first.chain_pem)
        # The clock may move only when the answer was noted, which is after the files are there.
        await until(lambda: misled.remembered().get("asked_at_ms"))
        second = authority.as_certificate(misled.hostname)
        liar.ready_with(second)
        clock.ahead_ms = first.renew_after - first.valid_from
        await until(lambda: misled.served()[0] == second.chain_pem)
