"""The private Redis: starts that fail, servers that hang, and what helps then."""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

import gateway.store.embedded
from gateway.store.embedded import EmbeddedRedis, EmbeddedRedisFault
from tests.integration.embedded.servers import (
    LIMIT_SECONDS,
    SHORT_LIMIT_SECONDS,
    Embed,
    client_of,
    kill_other_gateway,
    pid_of,
    until_restarted,
)
from tests.lab.process import pause, read_until


def make_folder(path: Path) -> None:
    path.mkdir(parents=True)


def open_file(path: Path) -> BinaryIO:
    return path.open("wb")


def make_file(path: Path) -> None:
    path.touch()


async def test_missing_program_names_the_package(
    embed: Embed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedRedisFault, match="Debian package redis-server"):
        await embed().start()


async def test_server_can_be_had_after_a_start_that_failed(
    embed: Embed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = embed()
    with monkeypatch.context() as without_program:
        without_program.setenv("PATH", str(tmp_path))
        with pytest.raises(EmbeddedRedisFault):
            await embedded.start()
    assert not embedded.is_owner
    await embedded.start()
    assert embedded.is_owner


async def test_path_that_is_too_long_for_a_socket_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedRedisFault, match="state_dir is too long"):
        await EmbeddedRedis(tmp_path / ("d" * 100)).start()


async def test_state_dir_that_is_a_file_is_a_fault(embed: Embed, state_dir: Path) -> None:
    make_file(state_dir)
    with pytest.raises(EmbeddedRedisFault, match="state_dir cannot be used"):
        await embed().start()


async def test_folder_of_another_user_is_a_fault(
    embed: Embed, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = embed()
    await embedded.connect_or_start()
    await embedded.stop()
    own_id = os.geteuid()
    with monkeypatch.context() as as_other:
        as_other.setattr(os, "geteuid", lambda: own_id + 1)
        with pytest.raises(EmbeddedRedisFault, match=f"user id {own_id}"):
            await embedded.connect_or_start()


async def test_other_user_may_use_a_server_that_runs(
    embed: Embed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await embed().start()
    own_id = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own_id + 1)
    command = embed()
    await command.connect_or_start()
    assert not command.is_owner


async def test_spoilt_data_is_a_fault_with_the_servers_last_words(
    embed: Embed, state_dir: Path
) -> None:
    embedded = embed()
    await embedded.start()
    async with client_of(embedded) as client:
        await client.set("name", "value")
    await embedded.stop()
    (increments,) = (state_dir / "redis" / "appendonlydir").glob("*.incr.aof")
    increments.write_bytes(b"spoilt\r\n" + increments.read_bytes())
    with pytest.raises(EmbeddedRedisFault, match=r"ended at its start .*redis\.log"):
        await embedded.start()
    increments.write_bytes(b"")


@contextmanager
def hanging(pid: int) -> Iterator[None]:
    """A process that does nothing meanwhile."""
    pause(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_no_second_server_is_started_beside_one_that_hangs(
    embed: Embed, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = kill_other_gateway(state_dir)
    monkeypatch.setattr(gateway.store.embedded, "START_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    monkeypatch.setattr(gateway.store.embedded, "_ANSWER_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    with hanging(pid):
        with pytest.raises(EmbeddedRedisFault, match="does not answer"):
            await embed().start()
        assert pid_of(state_dir) == pid
    embedded = embed()
    await embedded.start()
    assert pid_of(state_dir) == pid


async def test_command_soon_gives_up_a_server_that_takes_connections_and_answers_none(
    embed: Embed, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = kill_other_gateway(state_dir)
    monkeypatch.setattr(gateway.store.embedded, "SILENCE_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    monkeypatch.setattr(gateway.store.embedded, "_ANSWER_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    with hanging(pid):
        with pytest.raises(EmbeddedRedisFault, match=r"answers none: .*redis\.pid"):
            await embed().connect_or_start()
        assert pid_of(state_dir) == pid
    await embed().connect_or_start()
    assert pid_of(state_dir) == pid


async def test_no_second_server_is_started_beside_one_whose_socket_is_gone(
    embed: Embed, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = kill_other_gateway(state_dir)
    (state_dir / "redis" / "redis.sock").unlink()
    monkeypatch.setattr(gateway.store.embedded, "START_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    try:
        with pytest.raises(EmbeddedRedisFault, match="does not answer"):
            await embed().start()
        assert pid_of(state_dir) == pid
    finally:
        os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def scripted_server(state_dir: Path, answers: Callable[[str], str]) -> AsyncIterator[None]:
    """Something that speaks on the socket: for states that a real server is seldom seen in."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while command := (await reader.readline()).decode().strip():
            if command == "SHUTDOWN":
                lock.close()
                break
            writer.write(f"{answers(command)}\r\n".encode())
        writer.close()

    folder = state_dir / "redis"
    make_folder(folder)
    with open_file(folder / "server.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        async with await asyncio.start_unix_server(speak, folder / "redis.sock"):
            yield


async def test_start_waits_as_long_as_the_server_loads_its_file(
    embed: Embed, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway.store.embedded, "START_LIMIT_SECONDS", 0.0)
    loading = ["-LOADING Redis is loading the dataset in memory"] * 10
    asked: list[str] = []

    def answers(command: str) -> str:
        asked.append(command)
        if command == "PING":
            return loading.pop() if loading else "+PONG"
        return "+OK"

    async with scripted_server(state_dir, answers):
        embedded = embed()
        await embedded.start()
        await embedded.stop()
    assert not loading
    assert 'CONFIG SET appendfsync "always"' in asked


async def test_left_over_server_that_cannot_be_set_up_is_a_fault(
    embed: Embed, state_dir: Path
) -> None:
    def answers(command: str) -> str:
        return "+PONG" if command == "PING" else "-ERR not here"

    async with scripted_server(state_dir, answers):
        with pytest.raises(EmbeddedRedisFault, match="takes no appendonly: -ERR not here"):
            await embed().start()


async def test_server_is_had_again_when_it_could_not_be_restarted_for_a_while(
    embed: Embed, state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = embed()
    await embedded.start()
    pid = pid_of(state_dir)
    told: list[str] = []
    monkeypatch.setattr(
        gateway.store.embedded._log, "error", lambda text, *parts: told.append(text % parts)
    )

    async def told_twice() -> bool:
        return sum("redis-server is missing" in each for each in told) >= 2

    with monkeypatch.context() as without_program:
        without_program.setenv("PATH", str(tmp_path))
        os.kill(pid, signal.SIGKILL)
        await read_until(told_twice, bool, LIMIT_SECONDS)
    await until_restarted(state_dir, embedded, pid)
