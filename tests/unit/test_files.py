"""Files that are none, and reads that hang."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.files import Reading, read_file

LIMIT_SECONDS = 30.0

# Ends while a thread hangs for which the end of its event loop would wait.
HANGING = """
import asyncio, threading
from gateway.ending import Budget

async def main():
    Budget(0.05).begin()
    await asyncio.to_thread(threading.Event().wait)

asyncio.run(main())
"""


def test_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ValueError, match="it is too large"):
        read_file(tmp_path / "file", 4)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none", 5)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ValueError, match="it is not a file"):
            read_file(path, 5)


async def test_reading_answers_or_raises_what_was_read() -> None:
    assert await Reading(lambda: 5, LIMIT_SECONDS).result() == 5
    with pytest.raises(ZeroDivisionError):
        await Reading(lambda: 1 / 0, LIMIT_SECONDS).result()


async def test_read_that_hangs_is_not_begun_again_before_it_ends() -> None:
    goes_on = threading.Event()
    begun: list[None] = []

    def read() -> int:
        begun.append(None)
        goes_on.wait(LIMIT_SECONDS)
        return len(begun)

    reading = Reading(read, 0.01)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await reading.result()
    assert len(begun) == 1
    goes_on.set()
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            try:
                assert await reading.result() == 1
                break
            except TimeoutError:
                continue
    assert await Reading(read, LIMIT_SECONDS).result() == 2


def test_event_loop_ends_while_a_read_hangs() -> None:
    goes_on = threading.Event()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await Reading(goes_on.wait, 0.01).result()

    asyncio.run(give_up())
    goes_on.set()


def test_stop_that_hangs_is_cut_short() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], check=False, capture_output=True, timeout=LIMIT_SECONDS
    )
    assert ended.returncode == 1
