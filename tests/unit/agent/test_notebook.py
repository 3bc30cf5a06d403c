"""What keepers remember: written in a thread, together, and since when a fault lasts."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.agent.clocks import Clocks
from gateway.agent.memory import Memories, Memory
from gateway.agent.notebook import Notebook
from gateway.agent.rounds import Fault
from gateway.contract import Hostname

HOST = Hostname("a.example.test")


class Counted(Memories):
    """Counts how often something is written."""

    writings = 0

    def write(self, hostname: str, memory: Memory) -> None:
        self.writings += 1
        super().write(hostname, memory)


@pytest.fixture
def memories(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


@pytest.fixture
def times() -> Iterator[int]:
    return iter(range(1_795_000_000_000, 1_795_000_001_000))


def opened(memories: Memories, times: Iterator[int]) -> Notebook:
    return Notebook(memories, HOST, Clocks(lambda: next(times), lambda: 0, lambda: 0.0))


async def test_changes_that_come_together_are_written_together(
    memories: Counted, times: Iterator[int]
) -> None:
    notebook = opened(memories, times)
    for tries in range(500):
        notebook.change(hook_tries=tries)
        await asyncio.sleep(0)
    await notebook.written()
    assert memories.read(HOST).memory.hook_tries == 499
    assert memories.writings < 100


async def test_nothing_new_is_not_written(memories: Counted, times: Iterator[int]) -> None:
    notebook = opened(memories, times)
    notebook.change(hook_tries=0)
    await notebook.written()
    assert memories.writings == 0


async def test_fault_with_another_incident_each_time_is_written_once(
    memories: Counted, times: Iterator[int]
) -> None:
    notebook = opened(memories, times)
    for number in range(5):
        notebook.note_record_fault(Fault("It failed.", mends=True, incident=f"i{number}"))
        await notebook.written()
    memory = memories.read(HOST).memory
    assert (memory.record_fault, memories.writings) == ("It failed. (incident i0)", 1)


async def test_fault_keeps_its_beginning_until_it_is_over(
    memories: Counted, times: Iterator[int]
) -> None:
    notebook = opened(memories, times)
    notebook.note_record_fault(Fault("away", mends=True))
    since_ms = notebook.memory.record_fault_since_ms
    notebook.note_record_fault(Fault("forbidden", mends=False))
    assert notebook.memory.record_fault_since_ms == since_ms
    notebook.note_record_fault(None)
    assert notebook.memory.record_fault_since_ms is None
    await notebook.written()


async def test_memory_that_cannot_be_written_is_told_and_written_when_it_can(
    memories: Counted, times: Iterator[int], tmp_path: Path
) -> None:
    blocking = tmp_path / "state"
    blocking.write_text("no folder")
    notebook = opened(memories, times)
    with capture_logs() as lines:
        notebook.change(hook_tries=1)
        await notebook.written()
        assert notebook.write_fault is not None
        blocking.unlink()
        notebook.change(hook_tries=1)
        await notebook.written()
    assert notebook.write_fault is None
    assert memories.read(HOST).memory.hook_tries == 1
    assert [line["event"] for line in lines] == [
        "memory not written",
        "what is remembered can be written again",
    ]
