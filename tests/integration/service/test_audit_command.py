"""`gateway audit`: what it shows, following it, and a trail whose process or Redis was killed."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.store.connection import Store
from gateway.store.keys import AUDIT_KEY
from tests.integration.service.calling import Ownership
from tests.integration.service.test_commands import COMMAND, gateway
from tests.integration.service.trailing import deeds, told_of, trail
from tests.lab import forks
from tests.lab.lab import Lab
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, start_redis

LIMIT_SECONDS = 30.0


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path)
    yield server
    server.stop()


class Following:
    """A running `gateway audit --follow`, and what it has printed so far."""

    def __init__(self, lab: Lab, *options: str, **environ: str) -> None:
        arguments = ["audit", "--follow", "--json", *options]
        arguments += ["--config", str(lab.config.config_file)]
        self.command = forks.Command(arguments, {**os.environ, **environ})

    @property
    def entries(self) -> list[dict[str, Any]]:
        output, _ = self.command.written()
        return [json.loads(line) for line in output.splitlines(keepends=True) if line[-1] == "\n"]

    @property
    def complaints(self) -> str:
        return self.command.written()[1]

    def ended_by(self, number: signal.Signals) -> subprocess.CompletedProcess[str]:
        self.command.send_signal(number)
        return self.command.ended(LIMIT_SECONDS)


@contextlib.contextmanager
def following(lab: Lab, *options: str, **environ: str) -> Iterator[Following]:
    started = Following(lab, *options, **environ)
    try:
        yield started
    finally:
        started.command.kill()


async def fill(server: RedisProcess, count: int, *, bound: int = 100_000, ago_ms: int = 0) -> None:
    """Entries of hostnames n0, n1, … in a Redis."""
    store = Store(server.url, replicas=0)
    at_ms = time.time_ns() // 1_000_000 - ago_ms
    entry = {"at": at_ms, "who": "admin", "what": "claim-add", "outcome": "claimed"}
    lines = [
        (secrets.token_hex(8), json.dumps({**entry, "hostname": f"n{number}.example.test"}))
        for number in range(count)
    ]
    added = ("XADD", AUDIT_KEY, "MAXLEN", "~", bound, "*")
    commands = [(*added, "id", name, "entry", text) for name, text in lines]
    await store.answers_of_each([(AUDIT_KEY, commands)])
    await store.close()


def shown(lab: Lab, server: RedisProcess, *options: str) -> tuple[list[str], str]:
    """The hostnames that it prints from a Redis, and what it says beside."""
    printed = gateway(lab, "audit", "--json", *options, GATEWAY_REDIS__URL=server.url)
    assert printed.returncode == 0, printed.stderr
    entries = [json.loads(line) for line in printed.stdout.splitlines()]
    return [entry["hostname"].partition(".")[0] for entry in entries], printed.stderr


def test_person_reads_one_line_for_each_entry(service_lab: Lab, mine: Ownership) -> None:
    mine.publish("198.51.100.5")
    told_of(service_lab, mine.hostname, ("record-sync", "managed-created"))
    (line,) = gateway(service_lab, "audit", "--hostname", mine.hostname).stdout.splitlines()
    assert "record-sync" in line
    assert "nothing -> A 198.51.100.5, TTL 300 s" in line


async def test_newest_are_shown_oldest_first(service_lab: Lab, own_redis: RedisProcess) -> None:
    await fill(own_redis, 1_200)
    newest, _ = shown(service_lab, own_redis)
    assert newest == [f"n{number}" for number in range(1_150, 1_200)]
    limited, _ = shown(service_lab, own_redis, "--limit", "2")
    assert limited == ["n1198", "n1199"]
    since, _ = shown(service_lab, own_redis, "--since", "1h")
    assert since == [f"n{number}" for number in range(1_200)]
    one, _ = shown(service_lab, own_redis, "--hostname", "n3.example.test")
    assert one == ["n3"]


async def test_time_leaves_out_what_was_before(service_lab: Lab, own_redis: RedisProcess) -> None:
    await fill(own_redis, 3, ago_ms=7_200_000)
    await fill(own_redis, 1)
    assert shown(service_lab, own_redis, "--since", "1h")[0] == ["n0"]
    assert shown(service_lab, own_redis, "--since", "3h", "--limit", "2")[0] == ["n2", "n0"]


async def test_what_was_trimmed_is_said(service_lab: Lab, own_redis: RedisProcess) -> None:
    await fill(own_redis, 1_000, bound=100)
    found, said = shown(service_lab, own_redis, "--limit", "1000")
    assert 100 <= len(found) < 1_000
    assert f"{1_000 - len(found)} older entries are gone (trimmed by audit.entries" in said
    assert shown(service_lab, own_redis, "--limit", "2")[1] == ""


async def test_odd_entries_hide_no_other_and_say_no_more_than_they_are(
    service_lab: Lab, own_redis: RedisProcess
) -> None:
    """Whoever may write to Redis, or a later release, may have put anything there."""
    whole = {"at": 1, "who": "admin", "what": "claim-add", "outcome": "claimed"}
    unreadable = [
        {**whole, "hostname": {"a": 1}},
        {**whole, "ofClient": ["x"]},
        {**whole, "detail": 7},
        {**whole, "repeated": "x"},
        {**whole, "later": float("nan")},
        {**whole, "later": [[]]},
        {**whole, "at": True},
    ]
    await fill(own_redis, 1)
    with redis.Redis.from_url(own_redis.url) as client:
        for entry in [*map(json.dumps, unreadable), "[" * 100_000, "", "9" * 5_000]:
            client.xadd(AUDIT_KEY, {"entry": entry})
        client.xadd(AUDIT_KEY, {"entry": b"\xff", "id": b"\xfe"})
        client.xadd(AUDIT_KEY, {"entry": json.dumps({**whole, "place": "9-9", "later": 1})})
    await fill(own_redis, 1)
    odd, url = len(unreadable) + 4, own_redis.url
    printed = gateway(service_lab, "audit", GATEWAY_REDIS__URL=url)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.count("an entry that this release can't read\n") == odd
    assert printed.stdout.count("n0.example.test") == 2
    in_json = gateway(service_lab, "audit", "--json", GATEWAY_REDIS__URL=url)
    entries = [json.loads(line, parse_constant=pytest.fail) for line in in_json.stdout.splitlines()]
    assert [each.get("unreadable", False) for each in entries].count(True) == odd
    assert len(entries) == odd + 3
    assert entries[-2]["later"] == 1
    assert "9-9" not in [each["place"] for each in entries]
    assert shown(service_lab, own_redis, "--hostname", "n0.example.test")[0] == ["n0", "n0"]


def test_hostname_in_another_spelling_is_told_the_right_one(service_lab: Lab) -> None:
    wrong = gateway(service_lab, "audit", "--hostname", "Relay.example.test.")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith('--hostname must be spelled "relay.example.test", not "Relay')


def test_empty_trail_and_wrong_time_are_said(service_lab: Lab, own_redis: RedisProcess) -> None:
    assert shown(service_lab, own_redis)[1] == "The trail has nothing of that.\n"
    wrong = gateway(service_lab, "audit", "--since", "yesterday")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("--since must be a time such as 2h, 7d, ")
    assert wrong.stderr.endswith(", not 'yesterday'.\n")


def test_following_shows_what_comes_and_ends_quietly(service_lab: Lab, mine: Ownership) -> None:
    mine.publish("198.51.100.5")
    told_of(service_lab, mine.hostname, ("record-sync", "managed-created"))
    with following(service_lab, "--hostname", mine.hostname) as seen:
        wait_until(lambda: len(seen.entries) == 1, "what there was is shown")
        mine.publish("198.51.100.6")
        wait_until(lambda: len(seen.entries) == 2, "what comes is shown")
        assert deeds(seen.entries)[1] == ("record-sync", "managed-updated")
        ended = seen.ended_by(signal.SIGINT)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_following_ends_when_nobody_reads(service_lab: Lab) -> None:
    reading, writing = os.pipe()
    command = [str(COMMAND), "audit", "--follow", "--hostname", "nothing.example.test"]
    command += ["--config", str(service_lab.config.config_file)]
    process = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    os.close(reading)
    _, complaints = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 141
    assert complaints in {"", "The trail has nothing of that.\n"}


async def test_following_goes_on_after_redis_was_away(
    service_lab: Lab, own_redis: RedisProcess
) -> None:
    await fill(own_redis, 1)
    with following(service_lab, GATEWAY_REDIS__URL=own_redis.url) as seen:
        wait_until(lambda: len(seen.entries) == 1, "what there was is shown")
        own_redis.kill()
        wait_until(lambda: bool(seen.complaints), "it says that Redis is away")
        own_redis.start()
        await fill(own_redis, 2)
        wait_until(lambda: len(seen.entries) == 3, "what came afterwards is shown")
        ended = seen.ended_by(signal.SIGTERM)
        assert ended.returncode == 0
        assert ended.stderr.count("\n") == 1
        assert "this goes on when it is back" in ended.stderr


def test_trail_goes_on_after_a_process_was_killed(service_lab: Lab, mine: Ownership) -> None:
    victim = service_lab.gateways[1]
    there = mine.at(victim.url)
    there.publish("198.51.100.5")
    victim.kill()
    victim.start()
    there.publish("198.51.100.6")

    def last() -> dict[str, Any]:
        found = trail(service_lab, "--hostname", mine.hostname)
        return found[-1] if found else {}

    wait_until(lambda: last().get("outcome") == "managed-updated", "the later one is told")
    assert last()["before"] == "A 198.51.100.5 300"
    # What was not written yet when it was killed is lost; nothing of it is there in part.
    found = deeds(trail(service_lab, "--hostname", mine.hostname))
    assert found in (
        [("record-sync", "managed-created"), ("record-sync", "managed-updated")],
        [("record-sync", "managed-updated")],
    )
