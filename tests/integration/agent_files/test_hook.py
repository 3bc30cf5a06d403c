"""Deploy hooks that behave and that do not: real commands in a real process group."""

import asyncio
import errno
import os
import signal
from pathlib import Path

import pytest

from gateway.agent.hook import OUTPUT_BYTES, Hook, HookResult
from tests.lab.process import wait_until

_LONG = 60.0
_SHORT = 0.3


async def _sh(
    script: str, timeout_seconds: float = _LONG, *, grace_seconds: float = 5.0, **environment: str
) -> HookResult:
    hook = Hook(("/bin/sh", "-c", script), timeout_seconds, grace_seconds=grace_seconds)
    return await hook.run(environment)


def _is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and waits for its parent does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _pid_in(file: Path) -> int:
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), f"{file} has a pid")
    return int(file.read_text())


# --- how it ends


async def test_hook_that_succeeds_is_told_with_its_output() -> None:
    assert await _sh("echo reloaded; echo indeed >&2") == HookResult(
        True, 'the deploy hook "echo reloaded; echo indeed >&2" succeeded', "reloaded\nindeed\n"
    )


async def test_hook_that_fails_is_told_with_its_exit_code() -> None:
    sentence = 'the deploy hook "echo no such unit >&2; exit 3" ended with exit code 3'
    result = await _sh("echo no such unit >&2; exit 3")
    assert result == HookResult(False, sentence, "no such unit\n")
    assert result.with_last_line == f"{sentence}; it said: no such unit"


async def test_hook_that_a_signal_ended_is_told_with_the_signal() -> None:
    result = await _sh("kill -SEGV $$")
    sentence = 'the deploy hook "kill -SEGV $$" was ended by SIGSEGV'
    assert result == HookResult(False, sentence, "")
    assert result.with_last_line == sentence


async def test_hook_that_a_nameless_signal_ended_is_told_with_its_number() -> None:
    result = await _sh("kill -40 $$")
    assert result.sentence == 'the deploy hook "kill -40 $$" was ended by signal 40'


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        (None, 0, "No such file or directory"),
        ("#!/bin/sh\n", 0o644, "Permission denied"),
        ("echo", 0o755, "Exec format error"),
        ("#!/no/such/interpreter\n", 0o755, "No such file or directory"),
    ],
    ids=["missing", "not-executable", "no-program", "no-interpreter"],
)
async def test_hook_that_cannot_be_started_is_told(
    tmp_path: Path, content: str | None, mode: int, reason: str
) -> None:
    program = tmp_path / "hook"
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    result = await Hook((str(program),), _LONG).run({})
    sentence = f"the deploy hook {program} cannot be started: {reason}"
    assert result == HookResult(False, sentence, "")


async def test_program_that_is_not_in_the_path_is_told() -> None:
    result = await Hook(("no-such-program-anywhere",), _LONG).run({})
    assert result.sentence == (
        "the deploy hook no-such-program-anywhere cannot be started: No such file or directory"
    )


async def test_word_that_no_command_can_have_is_told() -> None:
    result = await Hook(("true", "a\0b"), _LONG).run({})
    assert result.sentence == "the deploy hook true cannot be started: embedded null byte"


async def test_words_are_not_read_by_a_shell() -> None:
    result = await Hook(("echo", "$HOME", "; exit 1"), _LONG).run({})
    assert result.output == "$HOME ; exit 1\n"


async def test_last_of_many_lines_is_told_of_a_failure() -> None:
    result = await _sh("echo checking; echo the file is broken; echo; exit 1")
    assert result.with_last_line.endswith(" ended with exit code 1; it said: the file is broken")


async def test_last_line_is_bounded_fit_for_a_log_and_no_token() -> None:
    result = await _sh(r"printf 'gwc_abcdefgh\033'; exit 1")
    assert result.with_last_line.endswith("; it said: gwc_(hidden)")
    long = await _sh("head -c 2000 /dev/zero | tr '\\0' x; exit 1")
    assert len(long.with_last_line) < 400


def test_text_is_named_by_its_beginning_on_one_line_and_a_list_by_its_program() -> None:
    text = Hook(("/bin/sh", "-c", "nginx -t &&\n\tsystemctl reload nginx\n" + "#" * 1000), _LONG)
    assert text.name == f'"nginx -t && systemctl reload nginx {"#" * 29}"...'
    assert Hook(("systemctl", "reload", "nginx"), _LONG).name == "systemctl"


# --- what it is given


async def test_hook_has_certbots_variables() -> None:
    result = await _sh(
        'echo "$RENEWED_LINEAGE $RENEWED_DOMAINS"',
        RENEWED_LINEAGE="/live/relay.example.com",
        RENEWED_DOMAINS="relay.example.com",
    )
    assert result.output == "/live/relay.example.com relay.example.com\n"


async def test_hook_has_the_agents_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMETHING", "else")
    assert (await _sh("echo $SOMETHING")).output == "else\n"


async def test_hook_does_not_have_what_is_the_agents_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY", "GATEWAY_TOKEN"):
        monkeypatch.setenv(name, "secret")
    result = await Hook(("env",), _LONG, withheld=("GATEWAY_TOKEN",)).run({})
    assert "secret" not in result.output


async def test_hook_has_nothing_to_read() -> None:
    assert (await _sh("cat; echo read")).output == "read\n"


async def test_hook_has_no_files_of_the_agent(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w"):
        result = await _sh("ls /proc/$$/fd")
    assert result.output.split() == ["0", "1", "2"]


# --- what it prints


async def test_only_the_end_of_long_output_is_kept() -> None:
    result = await _sh("head -c 100000000 /dev/zero; echo; echo the end")
    assert result.succeeded
    assert len(result.output) == OUTPUT_BYTES
    assert result.output.endswith("\nthe end\n")


async def test_hook_that_prints_without_end_is_killed() -> None:
    result = await _sh("exec yes", _SHORT)
    assert result.sentence == (
        'the deploy hook "exec yes" was killed: it had not ended within 0.3 seconds'
    )
    assert len(result.output) == OUTPUT_BYTES


async def test_control_characters_are_masked() -> None:
    result = await _sh(r"printf 'a\033[31mred\r\000\377\303\244\n'")
    assert result.output == "a\ufffd[31mred\ufffd\ufffd\ufffdä\n"


# --- what it leaves running


async def test_hook_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    result = await _sh(f"sleep 600 & echo $! > {tmp_path}/pid; wait", _SHORT)
    assert not result.succeeded
    child = _pid_in(tmp_path / "pid")
    wait_until(lambda: not _is_alive(child), "the child has ended")


async def test_hook_may_clean_up_when_its_time_is_over(tmp_path: Path) -> None:
    script = f"trap 'echo cleaned > {tmp_path}/file; exit 0' TERM; sleep 600 & wait"
    result = await _sh(script, _SHORT)
    assert not result.succeeded
    assert (tmp_path / "file").read_text() == "cleaned\n"


async def test_hook_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done"
    result = await _sh(script, _SHORT, grace_seconds=0.2)
    assert not result.succeeded
    assert not _is_alive(_pid_in(tmp_path / "pid"))


async def test_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ignoring = f'trap "" TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done'
    await _sh(f"sh -c '{ignoring}' & sleep 600", 0.5, grace_seconds=0.2)
    child = _pid_in(tmp_path / "pid")
    wait_until(lambda: not _is_alive(child), "the child has ended")


async def test_server_that_a_hook_started_goes_on() -> None:
    # It holds the hook's output open.
    result = await _sh("sleep 600 & echo $!")
    server = int(result.output)
    try:
        assert result.succeeded
        assert _is_alive(server)
    finally:
        os.kill(server, signal.SIGKILL)


async def test_server_that_prints_without_end_holds_nothing_up(tmp_path: Path) -> None:
    result = await _sh(f"yes & echo $! > {tmp_path}/pid")
    assert result.succeeded
    server = _pid_in(tmp_path / "pid")
    wait_until(lambda: not _is_alive(server), "it cannot print any more")


async def test_hook_is_killed_with_its_children_when_it_is_cancelled(tmp_path: Path) -> None:
    script = f"trap '' TERM; sleep 600 & echo $! > {tmp_path}/pid; wait"
    running = asyncio.create_task(_sh(script))
    child = await asyncio.to_thread(_pid_in, tmp_path / "pid")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(wait_until, lambda: not _is_alive(child), "the child has ended")


async def test_server_that_a_hook_started_outlives_an_agent_that_stops(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/hook; sleep 600 & echo $! > {tmp_path}/pid"
    running = asyncio.create_task(_sh(script))
    server = await asyncio.to_thread(_pid_in, tmp_path / "pid")
    hook = Path(f"/proc/{_pid_in(tmp_path / 'hook')}")
    await asyncio.to_thread(wait_until, lambda: not hook.exists(), "the hook has ended")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    try:
        assert _is_alive(server)
    finally:
        os.kill(server, signal.SIGKILL)


async def test_nothing_is_left_open(tmp_path: Path) -> None:
    await _sh("true")
    before = set(os.listdir("/proc/self/fd"))
    await _sh("exit 1")
    await _sh("sleep 600", 0.01)
    await Hook((str(tmp_path),), _LONG).run({})

    def nothing_new() -> bool:
        return set(os.listdir("/proc/self/fd")) == before

    # A start that was given up for lack of time closes its ends when it comes to an end itself.
    await asyncio.to_thread(wait_until, nothing_new, "all is closed again")


async def test_hook_that_cannot_be_watched_is_killed_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    # Kernels before 5.3 cannot; none of those runs here.
    def refused(pid: int) -> int:
        started.append(pid)
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", refused)
    result = await _sh(f"sleep 600; touch {tmp_path}/file")
    assert result.sentence.endswith(" cannot be started: Function not implemented")
    await asyncio.to_thread(wait_until, lambda: not _is_alive(started[0]), "its end")
