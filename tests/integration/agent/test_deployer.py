"""Deploy hooks: one at a time, for the version that is live, and ended with the agent."""

import asyncio
import contextlib
import json
import os
from pathlib import Path

import pytest

from gateway.agent.clocks import Clocks, Pace
from gateway.agent.deployer import Deployer
from gateway.agent.hook import Hook
from gateway.agent.lineage import FileAccess, Lineage
from gateway.agent.memory import Memories, Memory
from gateway.agent.notebook import Notebook
from gateway.client import read_bundle
from gateway.contract import Hostname
from tests.integration.agent.machine import Machine, until
from tests.lab.certificates import LabAuthority
from tests.lab.liar import Liar
from tests.lab.process import LabFault, wait_until

authority = LabAuthority()


class Deployed:
    """One hostname's files with their deployer, as one run of the agent has them."""

    def __init__(
        self,
        folder: Path,
        hostname: str,
        script: str,
        turn: asyncio.Lock,
        clocks: Clocks = Clocks(),  # noqa: B008 (it cannot be changed)
        memories: Memories | None = None,
    ) -> None:
        self.hostname = hostname
        self.lineage = Lineage(folder, hostname, FileAccess())
        remembered = memories or Memories(folder / "state")
        self.notebook = Notebook(remembered, Hostname(hostname), clocks)
        hook = Hook(("sh", "-c", script), 30.0)
        self.deployer = Deployer(
            Hostname(hostname), hook, self.lineage, self.notebook, clocks, turn
        )

    def go_back_to(self, version: str) -> None:
        """What a person does who wants the version before."""
        self.lineage.live.unlink()
        self.lineage.live.symlink_to(f"../archive/{self.hostname}/{version}")

    def install(self) -> str:
        issued = authority.issue(self.hostname)
        return self.lineage.install(
            read_bundle(issued.chain_pem, issued.private_key_pem, self.hostname)
        )


async def test_hooks_of_several_hostnames_run_one_at_a_time(tmp_path: Path) -> None:
    log, turn = tmp_path / "log", asyncio.Lock()
    script = f"echo begun >> {log}; sleep 0.05; echo ended >> {log}"
    several = [Deployed(tmp_path, f"{name}.example.test", script, turn) for name in "abcd"]
    for each in several:
        each.install()
    await asyncio.gather(*(each.deployer.round() for each in several))
    assert log.read_text().split() == ["begun", "ended"] * 4


async def test_newer_version_takes_the_place_of_one_whose_hook_fails(tmp_path: Path) -> None:
    deployed = Deployed(tmp_path, "a.example.test", "exit 1", asyncio.Lock())
    deployed.install()
    assert (await deployed.deployer.round()).needs_a_person
    # Not yet again: its pause is ten seconds.
    assert (await deployed.deployer.round()).needs_a_person
    assert deployed.notebook.memory.hook_tries == 1
    deployed.install()
    await deployed.deployer.round()
    assert deployed.notebook.memory.hook_tries == 1


async def test_failures_for_one_version_are_counted(tmp_path: Path) -> None:
    clocks = Clocks(pace=Pace(first_hook_pause_ms=0))
    deployed = Deployed(tmp_path, "a.example.test", "exit 1", asyncio.Lock(), clocks)
    deployed.install()
    for _ in range(3):
        await deployed.deployer.round()
    assert deployed.notebook.memory.hook_tries == 3


async def test_each_failure_is_something_to_report_though_it_is_like_the_last(
    tmp_path: Path,
) -> None:
    clocks = Clocks(pace=Pace(first_hook_pause_ms=0))
    deployed = Deployed(tmp_path, "a.example.test", "exit 1", asyncio.Lock(), clocks)
    deployed.install()
    first, second = await deployed.deployer.round(), await deployed.deployer.round()
    assert second.fault == first.fault
    assert second.differs_from(first)


async def test_look_between_two_tries_is_nothing_to_report(tmp_path: Path) -> None:
    deployed = Deployed(tmp_path, "a.example.test", "exit 1", asyncio.Lock())
    deployed.install()
    first, look = await deployed.deployer.round(), await deployed.deployer.round()
    assert deployed.notebook.memory.hook_tries == 1
    assert not look.differs_from(first)


async def test_failures_are_counted_over_restarts(tmp_path: Path) -> None:
    for tries in (1, 2, 3):
        deployed = Deployed(tmp_path, "a.example.test", "exit 1", asyncio.Lock())
        if tries == 1:
            deployed.install()
        await deployed.deployer.round()
        await deployed.notebook.written()
        assert deployed.notebook.memory.hook_tries == tries


async def test_fault_is_remembered_with_its_version(tmp_path: Path) -> None:
    deployed = Deployed(tmp_path, "a.example.test", "exit 1", asyncio.Lock())
    version = deployed.install()
    await deployed.deployer.round()
    assert deployed.notebook.memory.hook_failed_version == version


async def test_hook_runs_for_the_version_that_a_person_went_back_to(tmp_path: Path) -> None:
    # It reloads the server, and then fails for the second version.
    log, bad = tmp_path / "log", tmp_path / "bad"
    script = f'readlink "$RENEWED_LINEAGE" >> {log}; ! [ -e {bad} ]'
    deployed = Deployed(tmp_path, "a.example.test", script, asyncio.Lock())
    first = deployed.install()
    await deployed.deployer.round()
    bad.touch()
    deployed.install()
    assert (await deployed.deployer.round()).needs_a_person
    bad.unlink()
    deployed.go_back_to(first)
    await deployed.deployer.round()
    assert Path(log.read_text().split()[-1]).name == first
    assert deployed.notebook.memory.deployed_version == first


async def test_no_version_counts_as_deployed_while_the_hook_runs(tmp_path: Path) -> None:
    memory = tmp_path / "state" / "state" / "a.example.test.json"
    seen = tmp_path / "seen"
    script = f"cp {memory} {seen}; true"
    deployed = Deployed(tmp_path, "a.example.test", script, asyncio.Lock())
    deployed.install()
    await deployed.deployer.round()
    await deployed.notebook.written()
    deployed.install()
    await deployed.deployer.round()
    assert json.loads(seen.read_text())["deployed_version"] is None


class SlowMemories(Memories):
    """Memories on a disk that takes its time; no real one can be told to. Notes what came first."""

    def __init__(self, state_dir: Path, log: Path) -> None:
        super().__init__(state_dir)
        self._log = log
        self.hook_was_first: list[bool] = []

    def write(self, hostname: str, memory: Memory) -> None:
        with contextlib.suppress(LabFault):
            wait_until(self._log.exists, "the hook runs", limit_seconds=0.3)
        self.hook_was_first.append(self._log.exists())
        super().write(hostname, memory)


async def test_hook_waits_until_it_is_written_that_none_is_deployed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    memories = SlowMemories(tmp_path / "state", log)
    memories.write("a.example.test", Memory(deployed_version="0000-20231114T221320Z-aaaaaaaaaaaa"))
    deployed = Deployed(
        tmp_path, "a.example.test", f"touch {log}", asyncio.Lock(), memories=memories
    )
    deployed.install()
    await deployed.deployer.round()
    assert log.exists()
    assert memories.hook_was_first[:2] == [False, False]


async def test_fault_is_over_when_nothing_is_left_to_deploy(tmp_path: Path) -> None:
    deployed = Deployed(tmp_path, "a.example.test", "exit 1", asyncio.Lock())
    deployed.install()
    await deployed.deployer.round()
    deployed.lineage.live.unlink()
    assert (await deployed.deployer.round()).is_current
    memory = deployed.notebook.memory
    assert (memory.hook_fault, memory.hook_failed_version, memory.hook_tries) == (None, None, 0)


async def test_hook_is_not_run_on_a_pair_that_was_broken(tmp_path: Path) -> None:
    log = tmp_path / "log"
    deployed = Deployed(tmp_path, "a.example.test", f"echo ran >> {log}", asyncio.Lock())
    deployed.install()
    (deployed.lineage.live / "privkey.pem").write_text("no key")
    assert (await deployed.deployer.round()).is_current
    assert not log.exists()


async def test_hook_that_takes_longer_than_the_grace_ends_with_the_agent_and_is_run_again(
    misled: Machine, liar: Liar
) -> None:
    pid_file = misled.folder / "pid"
    liar.ready_with(authority.as_certificate(misled.hostname))
    misled.configure_certificate(
        f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; sleep 600"
    )
    async with misled.running_here():
        await until(pid_file.exists)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert misled.remembered()["deployed_version"] is None
    misled.configure_certificate()
    assert (await misled.once_here()).code == 0
    assert len(misled.hooks_run()) == 1


async def test_memory_that_cannot_be_written_is_told_and_the_files_are_there(
    misled: Machine, liar: Liar
) -> None:
    good = authority.as_certificate(misled.hostname)
    liar.ready_with(good)
    textfile = misled.folder / "a.prom"
    misled.configure(
        certificate={"deploy_hook": f"echo ran >> {misled.hook_log}"}, textfile=str(textfile)
    )
    misled.state.mkdir()
    (misled.state / "state").write_text("no folder")
    ran = await misled.once_here()
    assert ran.code == 1
    assert f'gateway_agent_hook_ok{{hostname="{misled.hostname}"}} 1.0' in textfile.read_text()
    assert str(misled.state / "state") in ran.complaint
    assert misled.served() == (good.chain_pem, good.private_key_pem)
    assert len(misled.hooks_run()) == 1
