"""Real commands that print an address, or do not."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from gateway.agent.addresses import AddressUnknown, CommandAddress, address
from gateway.contract import RecordType
from tests.lab.process import wait_until

PATIENCE_SECONDS = 30.0


async def printed(*command: str, record_type: RecordType | None = None) -> str:
    return await address(CommandAddress(command, PATIENCE_SECONDS, record_type))


async def said_by(
    *command: str, record_type: RecordType | None = None, seconds: float = PATIENCE_SECONDS
) -> str:
    with pytest.raises(AddressUnknown) as caught:
        await address(CommandAddress(command, seconds, record_type))
    return str(caught.value)


@pytest.mark.parametrize("text", ["198.51.100.7", "2001:db8::7"])
async def test_printed_address_is_answered(text: str) -> None:
    assert await printed("echo", text) == text


async def test_white_space_around_it_is_no_fault() -> None:
    assert await printed("printf", "\n 198.51.100.7 \r\n\n") == "198.51.100.7"


async def test_command_is_no_shell_s() -> None:
    assert '"$(echo 198.51.100.7)"' in await said_by("echo", "$(echo 198.51.100.7)")


async def test_program_is_found_by_its_path(tmp_path: Path) -> None:
    script = tmp_path / "my address"
    script.write_text("#!/bin/sh\necho 198.51.100.7\n")
    script.chmod(0o755)
    assert await printed(str(script)) == "198.51.100.7"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("127.0.0.1", 'must be a unicast address, and "127.0.0.1" is a loopback address'),
        ("198.51.100.1\n198.51.100.2", 'must be an IPv4 or IPv6 address, not "198.51.100.1\\n'),
        ("2001:DB8::7", 'must be spelled "2001:db8::7", not "2001:DB8::7"'),
        ("\x1b[31m", 'must be an IPv4 or IPv6 address, not "\\u{1b}[31m"'),
    ],
)
async def test_what_is_no_address_is_told(text: str, fault: str) -> None:
    assert (await said_by("echo", text)).startswith(f"what the command echo printed {fault}")


async def test_address_of_the_other_family_is_told() -> None:
    said = await said_by("echo", "2001:db8::7", record_type="A")
    assert said.endswith('must be an IPv4 address to fit the type A, not "2001:db8::7"')


async def test_nothing_printed_is_told() -> None:
    assert await said_by("true") == "the command true printed nothing, and must print an address"


async def test_output_without_end_is_cut() -> None:
    assert await said_by("yes") == "the command yes printed more than 4096 bytes"


async def test_complaints_without_end_are_no_fault() -> None:
    script = "head -c 1000000 /dev/zero >&2; echo 198.51.100.7"
    assert await printed("sh", "-c", script) == "198.51.100.7"


async def test_failure_is_told_with_the_last_line_of_the_complaints() -> None:
    said = await said_by("sh", "-c", "echo one >&2; echo no lease >&2; echo 198.51.100.7; exit 3")
    assert said == 'the command sh ended with exit code 3: "no lease"'


async def test_failure_without_a_word_is_told() -> None:
    assert await said_by("false") == "the command false ended with exit code 1"


async def test_end_by_a_signal_is_told() -> None:
    assert await said_by("sh", "-c", "kill -KILL $$") == "the command sh was ended by SIGKILL"


async def test_program_that_is_not_there_is_told() -> None:
    said = await said_by("/nowhere/my-address")
    assert said == "the command /nowhere/my-address cannot be run: No such file or directory"


async def test_file_that_may_not_be_run_is_told(tmp_path: Path) -> None:
    file = tmp_path / "my-address"
    file.touch(0o644)
    assert await said_by(str(file)) == f"the command {file} cannot be run: Permission denied"


async def test_command_that_hangs_is_ended(tmp_path: Path) -> None:
    said = await said_by("sh", "-c", _NOTES_PID, "sh", str(tmp_path / "pid"), seconds=0.2)
    assert said == "the command sh did not end within 0.2 s"


async def test_what_the_command_left_behind_is_ended_with_its_time(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"({_NOTES_PID}) & while ! [ -s $1 ]; do :; done; echo 198.51.100.7"
    await said_by("sh", "-c", script, "sh", str(file), seconds=2)
    await asyncio.to_thread(wait_until, lambda: _has_ended(file), "the child's end")


async def test_cancelled_command_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    task = asyncio.create_task(printed("sh", "-c", _NOTES_PID, "sh", str(file)))
    await asyncio.to_thread(wait_until, lambda: file.exists() and file.read_text(), "its start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _has_ended(file)


async def test_command_has_no_input() -> None:
    assert await printed("sh", "-c", "cat; echo 198.51.100.7") == "198.51.100.7"


@pytest.mark.parametrize(
    ("name", "is_there"),
    [("KEPT", True), ("TOKEN", False), ("NOTIFY_SOCKET", False), ("WATCHDOG_USEC", False)],
)
async def test_variables_that_are_not_its_business_are_withheld(
    monkeypatch: pytest.MonkeyPatch, name: str, *, is_there: bool
) -> None:
    monkeypatch.setenv(name, "198.51.100.7")
    source = CommandAddress(("sh", "-c", f"echo ${{{name}-198.51.100.8}}"), 30, None, ("TOKEN",))
    assert await address(source) == ("198.51.100.7" if is_there else "198.51.100.8")


async def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await printed("echo", "198.51.100.7")
        await said_by(sys.executable + "-is-not-there")
    assert len(os.listdir("/proc/self/fd")) == before


_NOTES_PID = 'sh -c "echo \\$\\$" >/dev/null; echo $$ >"$1.new"; mv "$1.new" "$1"; sleep 1000'


def _has_ended(file: Path) -> bool:
    return not Path("/proc", file.read_text().strip()).exists()
