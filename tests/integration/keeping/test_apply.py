"""`gateway clients apply`: clients and claims become what a file says, and stay so."""

import json
import os
import secrets
import signal
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.integration.cli.terminal import Terminal
from tests.integration.dns.hand import Hand
from tests.integration.keeping.applying import Applier, claim, client
from tests.integration.keeping.redises import (
    connection,
    contents,
    empty,
    until_caught,
)
from tests.integration.service.calling import CONTEXT, SYNC, Caller
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayProcess
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "clients.toml"


def test_example_file_is_applied_and_a_second_time_changes_nothing(applier: Applier) -> None:
    text = EXAMPLE.read_text()
    first = applier.applied(text)
    assert set(first["tokens"]) == {"cluster-a", "status-page"}
    assert applier.claims() == {"www.example.com": "the web team's, by hand"}
    before = contents(applier.url)
    again = applier.applied(text, "--prune")
    assert (again["changes"], again["tokens"], again["applied"]) == ([], {}, False)
    assert contents(applier.url) == before
    assert {each["policyGeneration"] for each in applier.clients().values()} == {1}
    shown = applier.run(text)
    assert shown.returncode == 2  # nobody to ask
    assert applier.run(text, "--dry-run").stdout == "Nothing differs.\n"


def test_token_that_is_shown_is_good_at_once(
    applier: Applier, gateway: GatewayProcess, bind: BindPair
) -> None:
    hostname = f"t{secrets.token_hex(6)}.example.test"
    told = applier.run(client("a", hostname), "--yes")
    assert told.returncode == 0
    assert told.stderr == "Each token is shown this once.\n"
    *shown, last = told.stdout.splitlines()
    assert shown == [
        "+ client a",
        "    + type t",
        f"    + pattern {hostname}",
        "    + allow 198.51.100.0/24",
        "    + capability syncDnsRecords",
        "1 to add, 0 to change, 0 to remove.",
    ]
    token = last.removeprefix("token of a: ")
    caller = Caller(gateway.url, token)
    assert caller.call(CONTEXT)["context"]["clientId"] == "a"
    wire = {"appId": "r", "hostname": hostname}
    record = {"type": "A", "value": "198.51.100.9"}
    assert caller.call(SYNC, ownership=wire, record=record)["status"] == "managed-created"
    with connection(applier.url) as redis:
        assert not redis.exists("gw:untold")

    refused = applier.run("clients = []\nclaims = []\n", "--prune", "--yes")
    assert refused.returncode == 1
    assert f"- client a (holds {hostname})" in refused.stdout
    assert refused.stderr.splitlines()[0].startswith(f"Client a holds {hostname}: --release")
    assert set(applier.clients()) == {"a"}

    pruned = applier.applied("clients = []\n", "--prune", "--release-holdings")
    assert pruned["changes"] == [
        {"action": "remove", "client": "a", "fields": {}, "holds": [hostname]}
    ]
    assert applier.clients() == {}
    assert Hand.at(bind).records(hostname) == set()
    assert caller.refused(CONTEXT)["code"] == "unauthorized"


def test_dry_run_says_what_would_be_refused(
    applier: Applier, gateway: GatewayProcess, tmp_path: Path
) -> None:
    hostname = f"t{secrets.token_hex(6)}.example.test"
    token = applier.applied(client("a", hostname))["tokens"]["a"]
    wire, record = {"appId": "r", "hostname": hostname}, {"type": "A", "value": "198.51.100.9"}
    Caller(gateway.url, token).call(SYNC, ownership=wire, record=record)
    before = contents(applier.url)
    (tmp_path / "b.token").touch()
    text = client("a", hostname) + claim(hostname)
    claimed = applier.run(text, "--dry-run")
    assert (claimed.returncode, claimed.stderr) == (
        1,
        f"{hostname} is held by a: the claim would be refused.\n",
    )
    options = ("--prune", "--tokens-dir", str(tmp_path), "--dry-run")
    pruned = applier.run(client("b"), *options)
    assert pruned.returncode == 1
    first, second = pruned.stderr.splitlines()
    assert first.startswith(f"Client a holds {hostname}: --release-holdings")
    assert second.startswith(f"{tmp_path / 'b.token'} is there already")
    released = applier.run("clients = []\n" + claim(hostname), *options, "--release-holdings")
    assert (released.returncode, released.stderr) == (0, "")
    assert contents(applier.url) == before

    kept = applier.keeper.run(applier.url, "clients", "remove", "a")
    assert (kept.returncode, kept.stderr) == (
        1,
        f"a still holds hostnames (1, such as {hostname}): add --release-holdings to withdraw and"
        " release all of it\n",
    )


def test_only_what_differs_is_changed_and_shown(applier: Applier) -> None:
    applier.applied(
        client("a", "a.example.com", "b.example.com")
        + client("b", "b.example.com")
        + client("c")
        + claim("x.example.com", "old")
        + claim("y.example.com")
    )
    text = (
        client("a", "b.example.com", "a.example.com")
        + client("b", "c.example.com", kind="u")
        + claim("x.example.com", "new")
    )
    dry = applier.run(text, "--dry-run")
    assert dry.returncode == 0
    expected = [
        "~ client b",
        '    ~ type "t" -> "u"',
        "    + pattern c.example.com",
        "    - pattern b.example.com",
        "~ claim x.example.com",
        '    ~ note "old" -> "new"',
        "Not in the file, and left as they are without --prune: clients c; claims y.example.com.",
        "0 to add, 2 to change, 0 to remove.",
    ]
    assert dry.stdout.splitlines() == expected
    assert applier.clients()["b"]["policyGeneration"] == 1
    applier.applied(text)
    clients = applier.clients()
    assert {name: each["policyGeneration"] for name, each in clients.items()} == {
        "a": 1,
        "b": 2,
        "c": 1,
    }
    assert applier.claims() == {"x.example.com": "new", "y.example.com": ""}
    pruned = applier.applied(text, "--prune")
    assert [each["action"] for each in pruned["changes"]] == ["remove", "remove"]
    assert set(applier.clients()) == {"a", "b"}
    assert applier.claims() == {"x.example.com": "new"}


def test_claim_on_what_a_client_holds_is_refused_and_the_rest_is_done(
    applier: Applier, gateway: GatewayProcess
) -> None:
    hostname, other = (f"t{secrets.token_hex(6)}.example.test" for _ in range(2))
    caller = Caller(gateway.url, applier.applied(client("a", hostname))["tokens"]["a"])
    record = {"type": "A", "value": "198.51.100.9"}
    wire = {"appId": "r", "hostname": hostname}
    assert caller.call(SYNC, ownership=wire, record=record)["status"] == "managed-created"
    refused = applier.run(client("a", hostname) + claim(hostname) + claim(other), "--yes")
    assert refused.returncode == 1
    assert refused.stderr == f"{hostname}: {hostname} is held by a client; release it first.\n"
    assert applier.claims() == {other: ""}
    assert caller.call(SYNC, ownership=wire, delete=True)["status"] == "managed-deleted"


def test_what_was_not_shown_is_not_released(
    applier: Applier, gateway: GatewayProcess, bind: BindPair
) -> None:
    """A client publishes while the operator reads what would be released."""
    shown, later = (f"t{secrets.token_hex(6)}.example.test" for _ in range(2))
    caller = Caller(gateway.url, applier.applied(client("a", shown, later))["tokens"]["a"])
    record = {"type": "A", "value": "198.51.100.9"}

    def publish(hostname: str) -> None:
        wire = {"appId": "r", "hostname": hostname}
        assert caller.call(SYNC, ownership=wire, record=record)["status"] == "managed-created"

    publish(shown)
    applier.file.write_text("clients = []\n")
    typed = ["clients", "apply", str(applier.file), "--config", str(applier.keeper.config_file)]
    environ = applier.keeper.environ(applier.url)
    with Terminal([*typed, "--prune", "--release-holdings"], environ) as terminal:
        terminal.read_until(lambda screen: "Apply this?" in screen)
        publish(later)
        terminal.type("y\n")
        ended, output = terminal.ended()
    assert ended == 1, output
    assert f"a holds {later} by now, which was not shown" in terminal.screen
    assert Hand.at(bind).records(shown)
    assert caller.call(CONTEXT)["context"]["clientId"] == "a"
    applier.applied("clients = []\n", "--prune", "--release-holdings")
    assert Hand.at(bind).records(shown) | Hand.at(bind).records(later) == set()


def test_token_of_a_client_that_is_removed_is_missed_no_more(applier: Applier) -> None:
    applier.applied(client("a") + client("b"))
    with connection(applier.url) as redis:
        for name, each in applier.clients().items():
            redis.hset("gw:untold", each["credentials"][0]["credentialId"], name)
        pruned = applier.applied(client("b"), "--prune")
        assert pruned["lostTokens"] == ["b"]
        applier.keeper.done(applier.url, "clients", "remove", "b")
        assert not redis.exists("gw:untold")


def test_tokens_go_into_files_of_their_own_and_over_none(applier: Applier, tmp_path: Path) -> None:
    folder = tmp_path / "tokens"
    made = applier.applied(client("a") + client("x/../y"), "--tokens-dir", str(folder))
    assert made["tokens"] == {}
    assert made["tokenFiles"] == {
        "a": str(folder / "a.token"),
        "x/../y": str(folder / "x%2F..%2Fy.token"),
    }
    assert sorted(os.listdir(folder)) == ["a.token", "x%2F..%2Fy.token"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
    assert (folder / "a.token").read_text().startswith("gwc_")
    (folder / "b.token").write_text("somebody's")
    refused = applier.run(client("b"), "--yes", "--tokens-dir", str(folder))
    assert refused.returncode == 1
    assert "b.token is there already: no token is overwritten." in refused.stderr
    assert (folder / "b.token").read_text() == "somebody's"
    unusable = applier.run(client("b"), "--yes", "--tokens-dir", str(folder / "a.token"))
    assert unusable.returncode == 1
    assert unusable.stderr.splitlines()[0] == "--tokens-dir can't be made: File exists."
    assert set(applier.clients()) == {"a", "x/../y"}


def test_terminal_is_asked_and_no_is_an_answer(applier: Applier) -> None:
    applier.file.write_text(client("a"))
    typed = ["clients", "apply", str(applier.file), "--config", str(applier.keeper.config_file)]
    environ = applier.keeper.environ(applier.url)
    for answer, code, there in (("", 1, set()), ("n\n", 1, set()), ("y\n", 0, {"a"})):
        with Terminal(typed, environ) as terminal:
            terminal.read_until(lambda screen: "Apply this?" in screen)
            terminal.type(answer)
            ended, output = terminal.ended() if answer else terminal.interrupted()
        assert ended == code, terminal.screen
        assert "+ client a" in output
        assert ("token of a: gwc_" in output) is bool(there)
        assert set(applier.clients()) == there


def test_many_at_once_make_each_client_once(applier: Applier) -> None:
    applier.file.write_text("".join(client(f"c{number}") for number in range(12)))
    arguments = ("clients", "apply", applier.file, "--yes", "--json")
    started = [applier.keeper.start(applier.url, *arguments) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda each: each.ended(60), started))
    assert [each.returncode for each in results] == [0] * 4
    tokens = [token for each in results for token in json.loads(each.stdout)["tokens"].items()]
    assert sorted(name for name, _ in tokens) == sorted(f"c{number}" for number in range(12))
    clients = applier.clients()
    assert len(clients) == 12
    for client_id, token in tokens:
        (credential,) = clients[client_id]["credentials"]
        assert token.split("_")[1] == credential["credentialId"]


def test_killed_run_is_finished_by_the_next_which_names_the_lost_tokens(
    applier: Applier, first_redis: RedisProcess
) -> None:
    text = many_clients()
    until_caught(lambda: _signalled(applier, first_redis, text, signal.SIGKILL))
    with connection(applier.url) as redis:
        made, noted = set(applier.clients()), set(redis.hvals("gw:untold"))
    assert made
    assert made <= noted

    again = applier.applied(text)
    assert set(again["tokens"]) == set(applier.clients()) - made
    assert set(again["lostTokens"]) == made
    shown = applier.run(text, "--dry-run")
    first = min(made)
    assert f"`gateway clients rotate {first}` makes another." in shown.stderr
    applier.keeper.done(applier.url, "clients", "rotate", first)
    assert set(applier.applied(text)["lostTokens"]) == made - {first}


def test_terminated_run_tells_the_tokens_that_it_has_made(
    applier: Applier, first_redis: RedisProcess
) -> None:
    text = many_clients()
    result = until_caught(lambda: _signalled(applier, first_redis, text, signal.SIGTERM))
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "Interrupted: run it again for the rest."
    told = {
        line.removeprefix("token of ").partition(":")[0]
        for line in result.stdout.splitlines()
        if line.startswith("token of ")
    }
    made = set(applier.clients())
    assert told <= made
    assert len(made - told) <= 1  # the one that it was just making
    assert set(applier.applied(text)["lostTokens"]) == made - told


def many_clients() -> str:
    return "".join(client(f"c{number:03}") for number in range(200))


def _signalled(
    applier: Applier, server: RedisProcess, text: str, number: signal.Signals
) -> subprocess.CompletedProcess[str] | None:
    """What a run came to that got a signal half way; None when it was done before."""
    empty(applier.url)
    applier.file.write_text(text)
    running = applier.keeper.start(applier.url, "clients", "apply", applier.file, "--yes")
    with connection(applier.url) as redis:
        wait_until(
            lambda: redis.scard("gw:clients") > 3 or running.poll() is not None,
            "some are made",
            pause_seconds=0.001,
        )
    server.process.pause()
    try:
        running.send_signal(number)
        if number is signal.SIGKILL:
            running.wait(60)
    finally:
        server.process.resume()
    result = running.ended(60)
    return None if result.returncode == 0 else result
