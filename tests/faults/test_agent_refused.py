"""Refused any single call, the agent keeps the old pair or has the new one, and says why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from gateway.agent.clocks import machine_now_ms
from gateway.agent.lineage import InstallFailed, Unusable
from gateway.client import Bundle, read_bundle
from tests.faults.agent_files import HOSTNAME, LATER_MS, Files
from tests.faults.disk_calls import LOOKING, passing
from tests.lab import disks
from tests.lab.certificates import LabAuthority
from tests.lab.liar import Liar


@dataclass(frozen=True)
class Outcome:
    """What an installation said that was refused one call, what it left, and how the next ended."""

    call: str
    fault: str | None
    live: Bundle | Unusable
    unfinished: Sequence[str]
    at_the_end: Bundle | Unusable
    versions_at_the_end: int


@dataclass(frozen=True)
class Walk:
    old: Bundle
    new: Bundle
    outcomes: Sequence[Outcome]


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    authority = LabAuthority()
    issued = [authority.issue(HOSTNAME) for _ in range(2)]
    old, new = (read_bundle(each.chain_pem, each.private_key_pem, HOSTNAME) for each in issued)
    now_ms = machine_now_ms()
    with disks.open_folder(in_memory=True) as folder, Liar() as gateway:
        start = Files(folder / "start", gateway.url)
        start.root.mkdir()
        gateway.ready_with(issued[0].as_certificate(HOSTNAME))
        start.run(now_ms)
        gateway.ready_with(issued[1].as_certificate(HOSTNAME))
        undisturbed = start.copy_to(folder / "undisturbed")
        with passing(also=LOOKING) as passed:
            _install(undisturbed, new)
        outcomes = [
            _refused(start.copy_to(folder / str(number)), number, call, new, now_ms + LATER_MS)
            for number, call in enumerate(passed.calls)
        ]
        yield Walk(old, new, outcomes)


def _refused(files: Files, number: int, call: str, new: Bundle, next_ms: int) -> Outcome:
    with passing(refused_at=number, also=LOOKING):
        fault = _install(files, new)
    live, unfinished = files.lineage.read(), files.unfinished
    files.run(next_ms)
    at_the_end, versions = files.lineage.read(), len(files.versions)
    files.remove()
    return Outcome(f"{call} ({number})", fault, live, unfinished, at_the_end, versions)


def _install(files: Files, bundle: Bundle) -> str | None:
    try:
        files.lineage.install(bundle)
    except InstallFailed as fault:
        return str(fault)
    return None


def test_refused_anywhere_the_old_or_the_new_pair_is_live(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    for outcome in walk.outcomes:
        with subtests.test(outcome.call):
            assert outcome.live in (walk.old, walk.new)


def test_refused_anywhere_nothing_unfinished_is_left(walk: Walk, subtests: pytest.Subtests) -> None:
    for outcome in walk.outcomes:
        with subtests.test(outcome.call):
            assert outcome.unfinished == []


def test_installation_that_is_not_live_is_told(walk: Walk, subtests: pytest.Subtests) -> None:
    for outcome in walk.outcomes:
        with subtests.test(outcome.call):
            assert (outcome.fault is not None) or outcome.live == walk.new


def test_refusal_is_told_with_its_path_and_reason(walk: Walk) -> None:
    faults = [outcome.fault for outcome in walk.outcomes if outcome.fault is not None]
    assert len(faults) > len(walk.outcomes) / 2
    assert [each for each in faults if not each.startswith("cannot ")] == []
    assert [each for each in faults if not each.endswith(": Disk quota exceeded")] == []
    assert [each for each in faults if HOSTNAME not in each and "/live" not in each] == []


def test_refused_anywhere_the_next_run_ends_with_the_new_pair(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    for outcome in walk.outcomes:
        with subtests.test(outcome.call):
            assert outcome.at_the_end == walk.new
            assert outcome.versions_at_the_end == 2
