"""Killed at any call that touches the disk, the agent leaves the old pair or the new one.

The points are not listed here: an undisturbed run of `--once` tells which calls it makes. Then, for
each side of each call, a process is killed there, on files of its own; what it left is looked at,
and one more run must end as if nothing had been.
"""

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import pytest

from gateway.agent.clocks import machine_now_ms
from gateway.agent.lineage import Unusable
from gateway.client import Bundle, read_bundle
from tests.faults.agent_files import HOSTNAME, LATER_MS, Files, run_to
from tests.faults.disk_calls import Point, passing
from tests.integration.agent_files.apart import Apart
from tests.lab import disks
from tests.lab.certificates import LabAuthority
from tests.lab.liar import Liar

_AT_A_TIME = 8


@dataclass(frozen=True)
class Fate:
    """What was on disk when the process was dead, and when another had run."""

    point: Point
    code: int
    at_death: Bundle | Unusable
    open_keys_at_death: Sequence[str]
    at_the_end: Bundle | Unusable
    version: str | None
    versions: Sequence[str]
    unfinished: Sequence[str]
    hook_runs: Sequence[str]
    deployed: str | None


@dataclass(frozen=True)
class Walk:
    """All points of one start: with `before` installed one after the other, or with nothing."""

    before: Sequence[Bundle]
    versions_before: Sequence[str]
    old: Bundle | Unusable
    new: Bundle
    points: Sequence[Point]
    fates: Sequence[Fate]


@pytest.fixture(scope="module", params=[0, 2], ids=["first", "renewal"])
def walk(request: pytest.FixtureRequest) -> Iterator[Walk]:
    authority = LabAuthority()
    issued = [authority.issue(HOSTNAME) for _ in range(request.param + 1)]
    *before, new = (read_bundle(each.chain_pem, each.private_key_pem, HOSTNAME) for each in issued)
    now_ms = machine_now_ms()
    with disks.open_folder(in_memory=True) as folder, Liar() as gateway:
        start = Files(folder / "start", gateway.url)
        start.root.mkdir()
        for each in issued[:-1]:
            gateway.ready_with(each.as_certificate(HOSTNAME))
            start.run(now_ms)
            now_ms += LATER_MS
        gateway.ready_with(issued[-1].as_certificate(HOSTNAME))
        undisturbed = start.copy_to(folder / "undisturbed")
        with passing() as passed:
            undisturbed.run(now_ms)
        assert undisturbed.lineage.read() == new
        fates = tuple(_killed(start, passed.points, now_ms))
        old = start.lineage.read()
        yield Walk(before, start.versions, old, new, passed.points, fates)


def _killed(start: Files, points: Sequence[Point], now_ms: int) -> Iterator[Fate]:
    left = iter(points)
    while batch := list(islice(left, _AT_A_TIME)):
        running = []
        for number, point in enumerate(batch):
            folder = start.root.with_name(str(number))
            folder.mkdir(exist_ok=True)
            files = start.copy_to(folder / "files")
            process = Apart(folder, run_to, files.root, files.url, now_ms, point)
            running.append((point, files, process))
        for point, files, process in running:
            yield _fate(point, process.ended(), files, now_ms)
            files.remove()


def _fate(point: Point, code: int, files: Files, now_ms: int) -> Fate:
    at_death, open_keys = files.lineage.read(), files.open_keys
    files.run(now_ms)
    return Fate(
        point=point,
        code=code,
        at_death=at_death,
        open_keys_at_death=open_keys,
        at_the_end=files.lineage.read(),
        version=files.lineage.version,
        versions=files.versions,
        unfinished=files.unfinished,
        hook_runs=files.hook_runs,
        deployed=files.deployed,
    )


@pytest.fixture(scope="module", autouse=True)
def _table(walk: Walk, tables: list[str]) -> None:
    calls = Counter(point.call for point in walk.points)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(calls.items()))
    twice = sum(len(fate.hook_runs) > len(walk.before) + 1 for fate in walk.fates)
    tables.append(
        f"agent's files, {len(walk.before)} versions before: {len(walk.points)} points, "
        f"{len(walk.fates)} killed, the hook ran twice after {twice} of them\n  {kinds}"
    )


def test_walk_passes_every_kind_of_step(walk: Walk) -> None:
    assert {point.call for point in walk.points} >= {
        *("open", "mkdir", "fchmod", "write", "fsync", "rename", "replace", "symlink", "Popen")
    }


def test_walk_kills_a_process_at_every_point(walk: Walk, subtests: pytest.Subtests) -> None:
    assert [fate.point for fate in walk.fates] == walk.points
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert fate.code == -signal.SIGKILL


def test_killed_anywhere_the_old_or_the_new_pair_is_live(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            is_none = isinstance(fate.at_death, Unusable) and isinstance(walk.old, Unusable)
            assert is_none or fate.at_death in (walk.old, walk.new)


def test_killed_anywhere_no_key_is_left_open(walk: Walk, subtests: pytest.Subtests) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert fate.open_keys_at_death == []


def test_killed_anywhere_the_next_run_ends_with_the_new_pair(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert fate.at_the_end == walk.new


def test_killed_anywhere_the_hook_runs_for_what_is_live(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert fate.hook_runs[-1] == fate.version == fate.deployed


def test_killed_anywhere_the_hook_runs_twice_at_most(walk: Walk, subtests: pytest.Subtests) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert len(fate.hook_runs) - len(walk.before) in (1, 2)


def test_killed_anywhere_nothing_is_left_over(walk: Walk, subtests: pytest.Subtests) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert fate.versions == [*walk.versions_before[-1:], fate.version]
            assert fate.unfinished == []
