"""The private Redis on a real `redis-server`: sharing, crashes, take-over, failing starts."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from redis.asyncio import Redis

import gateway.store.embedded
from gateway.store.embedded import EmbeddedRedis, EmbeddedRedisFault
from tests.lab.process import read_until

LIMIT_SECONDS = 20.0
SHORT_LIMIT_SECONDS = 0.3

# A gateway that is killed: starts the server, says so, and waits for its end.
OTHER_GATEWAY = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from gateway.store.embedded import EmbeddedRedis

    async def main():
        await EmbeddedRedis(Path(sys.argv[1])).start()
        print("started", flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
""")

Embed = Callable[[], EmbeddedRedis]


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def embed(state_dir: Path) -> AsyncIterator[Embed]:
    """Make any number of them on one state directory; no server is left behind."""
    made: list[EmbeddedRedis] = []

    def make() -> EmbeddedRedis:
        made.append(EmbeddedRedis(state_dir))
        return made[-1]

    yield make
    for embedded in made:
        await embedded.stop()
    if made:
        last = EmbeddedRedis(state_dir)
        if (state_dir / "redis" / "server.lock").exists():
            await last.start()
            await last.stop()


def client_of(embedded: EmbeddedRedis) -> Redis:
    return Redis.from_url(embedded.url, decode_responses=True, protocol=2)


def pid_of(state_dir: Path) -> int:
    return int((state_dir / "redis" / "redis.pid").read_text())


@contextmanager
def other_gateway(state_dir: Path) -> Iterator[None]:
    """Another process that has started the server; it is killed at the end."""
    command = [sys.executable, "-c", OTHER_GATEWAY, str(state_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"started\n"
            yield
        finally:
            process.kill()


def kill_other_gateway(state_dir: Path) -> int:
    """Leave a server behind; returns its process id."""
    with other_gateway(state_dir):
        pass
    return pid_of(state_dir)


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def make_folder(path: Path) -> None:
    path.mkdir(parents=True)


def open_file(path: Path) -> BinaryIO:
    return path.open("wb")


def make_file(path: Path) -> None:
    path.touch()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be reaped does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def until_restarted(state_dir: Path, embedded: EmbeddedRedis, old_pid: int) -> None:
    async def restarted() -> bool:
        try:
            reader, writer = await asyncio.open_unix_connection(embedded.socket_path)
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            return await reader.readline() == b"+PONG\r\n" and pid_of(state_dir) != old_pid
        except OSError:
            return False
        finally:
            writer.close()

    await read_until(restarted, bool, LIMIT_SECONDS)


async def test_server_loses_nothing_and_has_no_port_when_started(embed: Embed) -> None:
    embedded = embed()
    await embedded.start()
    async with client_of(embedded) as client:
        config = await client.config_get("*")
    expected = {
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
        "maxmemory-policy": "noeviction",
        "port": "0",
    }
    assert {name: config[name] for name in expected} == expected


async def test_only_its_user_can_reach_the_server(embed: Embed) -> None:
    embedded = embed()
    await embedded.start()
    assert embedded.folder.stat().st_mode & 0o777 == 0o700
    assert embedded.socket_path.stat().st_mode & 0o777 == 0o700


async def test_folder_is_closed_again_when_others_could_enter(
    embed: Embed, state_dir: Path
) -> None:
    (state_dir / "redis").mkdir(mode=0o755, parents=True)
    await embed().start()
    assert (state_dir / "redis").stat().st_mode & 0o777 == 0o700


async def test_server_has_none_of_the_gateways_variables(
    embed: Embed, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_ZONES", "hush")
    await embed().start()
    assert environment_of(pid_of(state_dir)) == b""


async def test_server_is_out_of_reach_of_the_terminals_ctrl_c(
    embed: Embed, state_dir: Path
) -> None:
    await embed().start()
    assert os.getsid(pid_of(state_dir)) != os.getsid(0)


async def test_data_is_there_again_after_stop_and_start(embed: Embed) -> None:
    first = embed()
    await first.start()
    async with client_of(first) as client:
        await client.set("name", "value")
    await first.stop()
    second = embed()
    await second.start()
    async with client_of(second) as client:
        assert await client.get("name") == "value"


async def test_server_is_gone_when_stop_returns(embed: Embed, state_dir: Path) -> None:
    embedded = embed()
    await embedded.start()
    pid = pid_of(state_dir)
    await embedded.stop()
    assert not is_alive(pid)
    assert not embedded.is_owner
    await embedded.stop()


async def test_server_is_started_again_with_its_data_when_it_is_killed(
    embed: Embed, state_dir: Path
) -> None:
    embedded = embed()
    await embedded.start()
    for value in ("one", "two", "three"):
        pid = pid_of(state_dir)
        async with client_of(embedded) as client:
            await client.set("name", value)
        os.kill(pid, signal.SIGKILL)
        await until_restarted(state_dir, embedded, pid)
        async with client_of(embedded) as client:
            assert await client.get("name") == value


async def test_stop_ends_the_server_also_while_it_is_being_restarted(
    embed: Embed, state_dir: Path
) -> None:
    for delay_seconds in (0.0, 0.01, 0.02, 0.03):
        embedded = embed()
        await embedded.start()
        os.kill(pid_of(state_dir), signal.SIGKILL)
        # Not to wait for something, but to stop at different moments of the restart.
        await asyncio.sleep(delay_seconds)
        await embedded.stop()
        assert not embedded.is_owner
        with pytest.raises((ConnectionRefusedError, FileNotFoundError)):
            await asyncio.open_unix_connection(embedded.socket_path)


async def test_second_process_shares_the_server(embed: Embed, state_dir: Path) -> None:
    first, second = embed(), embed()
    await first.start()
    pid = pid_of(state_dir)
    await second.start()
    assert (first.is_owner, second.is_owner) == (True, False)
    await second.stop()
    assert is_alive(pid)
    async with client_of(first) as client:
        await client.ping()


async def test_second_process_takes_over_when_the_owner_stops(
    embed: Embed, state_dir: Path
) -> None:
    first, second = embed(), embed()
    await first.start()
    await second.start()
    pid = pid_of(state_dir)
    async with client_of(first) as client:
        await client.set("name", "value")
    await first.stop()
    await until_restarted(state_dir, second, pid)
    assert second.is_owner
    async with client_of(second) as client:
        assert await client.get("name") == "value"


async def test_many_starts_at_once_make_one_server(embed: Embed) -> None:
    all_of_them = [embed() for _ in range(8)]
    await asyncio.gather(*(each.start() for each in all_of_them))
    assert sum(each.is_owner for each in all_of_them) == 1
    async with client_of(all_of_them[0]) as client:
        await client.set("name", "value")
    async with client_of(all_of_them[-1]) as client:
        assert await client.get("name") == "value"


async def test_server_of_a_killed_gateway_is_adopted(embed: Embed, state_dir: Path) -> None:
    pid = kill_other_gateway(state_dir)
    embedded = embed()
    await embedded.start()
    assert embedded.is_owner
    assert pid_of(state_dir) == pid
    assert is_alive(pid)


async def test_adopted_server_is_ended_by_stop(embed: Embed, state_dir: Path) -> None:
    pid = kill_other_gateway(state_dir)
    embedded = embed()
    await embedded.start()
    await embedded.stop()
    assert not is_alive(pid)


async def test_adopted_server_is_restarted_when_it_is_killed(embed: Embed, state_dir: Path) -> None:
    pid = kill_other_gateway(state_dir)
    embedded = embed()
    await embedded.start()
    os.kill(pid, signal.SIGKILL)
    await until_restarted(state_dir, embedded, pid)


async def test_adopted_server_is_made_to_lose_nothing(embed: Embed, state_dir: Path) -> None:
    kill_other_gateway(state_dir)
    embedded = embed()
    async with client_of(embedded) as client:
        await client.config_set("appendfsync", "no")
        await embedded.start()
        assert await client.config_get("appendfsync") == {"appendfsync": "always"}


async def test_last_process_ends_the_server_of_a_killed_owner(
    embed: Embed, state_dir: Path
) -> None:
    with other_gateway(state_dir):
        embedded = embed()
        await embedded.start()
        assert not embedded.is_owner
    pid = pid_of(state_dir)
    assert is_alive(pid)
    await embedded.stop()
    assert not is_alive(pid)


async def test_command_uses_the_server_that_runs(embed: Embed, state_dir: Path) -> None:
    gateway, command = embed(), embed()
    await gateway.start()
    await command.connect_or_start()
    assert not command.is_owner
    await command.stop()
    assert is_alive(pid_of(state_dir))


async def test_command_starts_a_server_for_its_own_time(embed: Embed, state_dir: Path) -> None:
    command = embed()
    await command.connect_or_start()
    pid = pid_of(state_dir)
    async with client_of(command) as client:
        await client.set("name", "value")
    await command.stop()
    assert not is_alive(pid)


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


async def test_no_second_server_is_started_beside_one_that_hangs(
    embed: Embed, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = kill_other_gateway(state_dir)
    monkeypatch.setattr(gateway.store.embedded, "START_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    monkeypatch.setattr(gateway.store.embedded, "_ANSWER_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddedRedisFault, match="does not answer"):
            await embed().start()
        assert pid_of(state_dir) == pid
    finally:
        os.kill(pid, signal.SIGCONT)
    embedded = embed()
    await embedded.start()
    assert pid_of(state_dir) == pid


async def test_command_soon_gives_up_a_server_that_takes_connections_and_answers_none(
    embed: Embed, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = kill_other_gateway(state_dir)
    monkeypatch.setattr(gateway.store.embedded, "SILENCE_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    monkeypatch.setattr(gateway.store.embedded, "_ANSWER_LIMIT_SECONDS", SHORT_LIMIT_SECONDS)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddedRedisFault, match=r"answers none: .*redis\.pid"):
            await embed().connect_or_start()
        assert pid_of(state_dir) == pid
    finally:
        os.kill(pid, signal.SIGCONT)
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


async def test_url_is_usable_when_the_folder_has_a_space(tmp_path: Path) -> None:
    embedded = EmbeddedRedis(tmp_path / "a b%")
    await embedded.start()
    try:
        async with client_of(embedded) as client:
            assert await client.ping()
    finally:
        await embedded.stop()


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


async def test_server_that_does_not_end_is_killed_by_stop(embed: Embed, state_dir: Path) -> None:
    embedded = embed()
    await embedded.start()
    pid = pid_of(state_dir)
    os.kill(pid, signal.SIGSTOP)
    await embedded.stop(SHORT_LIMIT_SECONDS)
    assert not is_alive(pid)


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
