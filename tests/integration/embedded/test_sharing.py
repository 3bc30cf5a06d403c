"""The private Redis: what it keeps, who shares it, crashes and take-over."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from gateway.store.embedded import EmbeddedRedis
from tests.integration.embedded.servers import (
    SHORT_LIMIT_SECONDS,
    Embed,
    client_of,
    is_alive,
    kill_other_gateway,
    other_gateway,
    pid_of,
    until_restarted,
)


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


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


async def test_url_is_usable_when_the_folder_has_a_space(tmp_path: Path) -> None:
    embedded = EmbeddedRedis(tmp_path / "a b%")
    await embedded.start()
    try:
        async with client_of(embedded) as client:
            assert await client.ping()
    finally:
        await embedded.stop()


async def test_server_that_does_not_end_is_killed_by_stop(embed: Embed, state_dir: Path) -> None:
    embedded = embed()
    await embedded.start()
    pid = pid_of(state_dir)
    os.kill(pid, signal.SIGSTOP)
    await embedded.stop(SHORT_LIMIT_SECONDS)
    assert not is_alive(pid)
