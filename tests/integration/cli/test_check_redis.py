"""`gateway check` looks at Redis: a server of one's own, with its faults, and the embedded one."""

import json
from pathlib import Path

import pytest
import redis

from gateway.store.embedded import EmbeddedRedis
from tests.integration.cli.running import check, run, spoil
from tests.lab.ports import free_port
from tests.lab.redis import RedisProcess


def configure(own_redis: RedisProcess, **settings: str) -> None:
    with redis.Redis.from_url(own_redis.url, decode_responses=True) as client:
        for name, value in settings.items():
            client.config_set(name.replace("_", "-"), value)


def test_check_finds_a_redis_that_is_not_there(config_file: Path) -> None:
    spoil(config_file, "redis://[^/]*", f"redis://:hush@127.0.0.1:{free_port()}")
    finding = check(config_file)["redis"]
    assert finding["state"] == "failed"
    assert "hush" not in json.dumps(finding)


@pytest.mark.parametrize(
    ("settings", "state", "words"),
    [
        ({"appendfsync": "everysec"}, "warning", "the last second"),
        ({"appendonly": "no", "save": "3600 1"}, "warning", "since its last snapshot"),
        ({"appendonly": "no"}, "failed", "it keeps nothing"),
    ],
)
def test_check_finds_a_redis_that_may_lose_data(
    config_file: Path, own_redis: RedisProcess, settings: dict[str, str], state: str, words: str
) -> None:
    configure(own_redis, **settings)
    spoil(config_file, "redis://[^/]*", f"redis://127.0.0.1:{own_redis.port}")
    finding = check(config_file)["redis"]
    assert finding["state"] == state
    assert words in finding["finding"]


def test_check_finds_a_redis_that_throws_keys_away(
    config_file: Path, own_redis: RedisProcess
) -> None:
    configure(own_redis, maxmemory="100mb", maxmemory_policy="allkeys-lru")
    spoil(config_file, "redis://[^/]*", f"redis://127.0.0.1:{own_redis.port}")
    result = run("check", "--config", config_file)
    assert result.returncode == 1
    assert "it throws keys away when its memory is full" in result.stdout


def test_check_says_what_a_redis_without_config_does_not_tell(
    config_file: Path, own_redis: RedisProcess
) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.execute_command(
            "ACL", "SETUSER", "limited", "on", ">hush-hush", "~*", "+@all", "-config"
        )
    spoil(config_file, "redis://[^/]*", f"redis://limited:hush-hush@127.0.0.1:{own_redis.port}")
    finding = check(config_file)["redis"]
    assert finding["state"] == "warning"
    assert "CONFIG is forbidden" in finding["finding"]
    assert f"at redis://127.0.0.1:{own_redis.port}/0" in finding["finding"]


def test_check_looks_at_the_clock_of_redis(config_file: Path, own_redis: RedisProcess) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.execute_command("ACL", "SETUSER", "timeless", "on", ">word", "~*", "+@all", "-time")
    assert check(config_file)["clock redis"]["state"] == "ok"
    spoil(config_file, "redis://[^/]*", f"redis://timeless:word@127.0.0.1:{own_redis.port}")
    finding = check(config_file)["clock redis"]
    assert finding["state"] == "warning"
    assert "does not tell its time" in finding["finding"]


def test_check_finds_a_redis_password_that_is_wrong(
    config_file: Path, own_redis: RedisProcess
) -> None:
    configure(own_redis, requirepass="right")
    spoil(config_file, "redis://[^/]*", f"redis://:hush-hush@127.0.0.1:{own_redis.port}")
    finding = check(config_file)["redis"]
    assert finding["state"] == "failed"
    assert "hush" not in json.dumps(finding)


def test_check_starts_the_embedded_redis_and_ends_it(config_file: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    findings = check(config_file)
    assert "(embedded, started for this check)" in findings["redis"]["finding"]
    assert findings["acme account 127.0.0.1"]["state"] == "ok"
    assert not (config_file.parent / "state" / "redis" / "redis.sock").exists()


async def test_check_uses_the_embedded_redis_of_a_gateway_that_runs(config_file: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    embedded = EmbeddedRedis(config_file.parent / "state")
    await embedded.start()
    try:
        finding = check(config_file)["redis"]
        assert "answers (embedded);" in finding["finding"]
        assert embedded.socket_path.exists()
    finally:
        await embedded.stop()


def test_check_finds_that_the_redis_program_is_missing(config_file: Path, tmp_path: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    finding = check(config_file, {"PATH": str(tmp_path)})["redis"]
    assert finding["state"] == "failed"
    assert "Debian package redis-server" in finding["finding"]


def test_command_that_cannot_start_its_redis_ends_with_1_and_is_tried_again(
    config_file: Path,
) -> None:
    spoil(config_file, 'url = "redis://[^"]*"', 'url = "embedded"')
    ended = run("clients", "list", "--config", config_file, environ={"PATH": "/nowhere"})
    assert ended.returncode == 1
    assert ended.stderr.startswith("redis-server is missing: ")
