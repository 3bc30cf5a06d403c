"""A backup and a restore that are killed half way: nothing is half there that looks whole."""

import os
import signal
import subprocess
from pathlib import Path

from tests.integration.keeping.redises import (
    LIMIT_SECONDS,
    Keeper,
    assert_same,
    connection,
    contents,
    empty,
    expiries,
    seed,
    until_caught,
)
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess

MANY = 2_500


def partials(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".partial")]


def test_killed_backup_leaves_the_former_file(
    source: str, first_redis: RedisProcess, keeper: Keeper, tmp_path: Path
) -> None:
    seed(source, MANY)
    file = tmp_path / "backup"
    keeper.done(source, "backup", file)

    def kill_one() -> bytes | None:
        """What the file was before, if it was not replaced before the signal came."""
        former = file.read_bytes()
        saving = keeper.start(source, "backup", file)
        wait_until(lambda: bool(partials(tmp_path)) or saving.poll() is not None, "it has begun")
        first_redis.process.pause()
        try:
            saving.send_signal(signal.SIGKILL)
            saving.ended(LIMIT_SECONDS)
        finally:
            first_redis.process.resume()
        return former if partials(tmp_path) else None

    former = until_caught(kill_one)
    assert file.read_bytes() == former
    keeper.done(source, "backup", "--verify", file)


def test_terminated_backup_leaves_nothing_of_itself(
    source: str, first_redis: RedisProcess, keeper: Keeper, tmp_path: Path
) -> None:
    seed(source, MANY)
    file = tmp_path / "backup"

    def end_one() -> subprocess.CompletedProcess[str] | None:
        """What it came to, if it was not done before the signal came."""
        saving = keeper.start(source, "backup", file)
        wait_until(lambda: bool(partials(tmp_path)) or saving.poll() is not None, "it has begun")
        first_redis.process.pause()
        try:
            saving.send_signal(signal.SIGTERM)
        finally:
            first_redis.process.resume()
        result = saving.ended(LIMIT_SECONDS)
        if result.returncode == 0:
            file.unlink()
            return None
        return result

    result = until_caught(end_one)
    assert result.returncode == 1
    assert result.stderr == "Interrupted: nothing was written.\n"
    assert os.listdir(tmp_path) == []


def test_redis_that_goes_away_leaves_nothing_of_a_backup(
    source: str, first_redis: RedisProcess, keeper: Keeper, tmp_path: Path
) -> None:
    seed(source, MANY)
    file = tmp_path / "backup"

    def cut_one_off() -> str | None:
        """What it says, if it was not done before Redis went away."""
        saving = keeper.start(source, "backup", file)
        wait_until(lambda: bool(partials(tmp_path)) or saving.poll() is not None, "it has begun")
        first_redis.process.pause()
        try:
            result = saving.ended(LIMIT_SECONDS)
        finally:
            first_redis.process.resume()
        if result.returncode == 0:
            file.unlink()
            return None
        return result.stderr

    assert until_caught(cut_one_off).startswith("Redis ")
    assert os.listdir(tmp_path) == []


def test_killed_restore_keeps_gateways_away_and_is_finished_by_the_same_command(
    source: str, target: str, second_redis: RedisProcess, keeper: Keeper, tmp_path: Path
) -> None:
    file, another = tmp_path / "backup", tmp_path / "another"
    seed(source, MANY)
    keeper.done(source, "backup", another)
    keeper.done(source, "backup", file)
    before, expire = contents(source), expiries(source)

    def kill_one() -> int | None:
        """How many keys it has written, if it was not done before the signal came."""
        empty(target)
        restoring = keeper.start(target, "restore", file)
        with connection(target) as client:
            wait_until(
                lambda: client.dbsize() > 200 or restoring.poll() is not None,
                "some of it is written",
                pause_seconds=0.001,
            )
            second_redis.process.pause()
            try:
                restoring.send_signal(signal.SIGKILL)
                restoring.ended(LIMIT_SECONDS)
            finally:
                second_redis.process.resume()
            # What the killed one has sent before is still carried out.
            wait_until(lambda: len(client.client_list()) == 1, "its connections are gone")
            return client.dbsize() if client.hexists("gw:schema", "restoring") else None

    written = until_caught(kill_one)
    for arguments in (("worker",), ("clients", "list"), ("backup", tmp_path / "of-half")):
        refused = keeper.run(target, *arguments)
        assert refused.returncode == 2
        assert "A restore into this Redis was cut off: run `gateway restore`" in refused.stderr
    checked = keeper.run(target, "check")
    assert checked.returncode == 1
    assert "A restore into this Redis was cut off" in checked.stdout
    refused = keeper.run(target, "restore", another)
    assert refused.returncode == 2
    assert "A restore of the backup" in refused.stderr
    with connection(target) as client:
        assert client.dbsize() == written

    keeper.done(target, "restore", file)
    assert_same(target, before, expire)
    assert "seeded" in keeper.done(target, "holdings", "list")
    refused = keeper.run(target, "restore", file)
    assert refused.returncode == 1
    assert f"{MANY} hostnames" in refused.stderr
    empty(target)


def test_terminated_restore_says_what_is_locked_out_and_how_to_go_on(
    source: str, target: str, second_redis: RedisProcess, keeper: Keeper, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    seed(source, MANY)
    keeper.done(source, "backup", file)

    def end_one() -> subprocess.CompletedProcess[str] | None:
        """What it came to, if it was not done before the signal came."""
        empty(target)
        restoring = keeper.start(target, "restore", file)
        with connection(target) as client:
            wait_until(
                lambda: client.dbsize() > 200 or restoring.poll() is not None,
                "some of it is written",
                pause_seconds=0.001,
            )
        second_redis.process.pause()
        try:
            restoring.send_signal(signal.SIGTERM)
            result = restoring.ended(LIMIT_SECONDS)
        finally:
            second_redis.process.resume()
        return None if result.returncode == 0 else result

    result = until_caught(end_one)
    assert result.returncode == 1
    assert result.stderr.startswith(
        "Interrupted.\nThe restore is not finished, and no gateway starts"
    )
    assert "run the same command with the same file again" in result.stderr
    keeper.done(target, "restore", file)
    empty(target)


def test_state_of_a_newer_release_is_refused_by_every_start_and_left_alone(
    source: str, keeper: Keeper
) -> None:
    with connection(source) as client:
        client.hset("gw:schema", mapping={"schema": "99", "version": "v"})
        for arguments in (("worker",), ("clients", "list")):
            refused = keeper.run(source, *arguments)
            assert refused.returncode == 2
            assert refused.stderr.startswith("The state in this Redis has form 99, and this")
            assert refused.stderr.count("\n") == 1
        checked = keeper.run(source, "check")
        assert checked.returncode == 1
        assert "has form 99" in checked.stdout
        assert client.keys() == ["gw:schema"]
