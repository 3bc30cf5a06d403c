"""`gateway holdings` beside a running gateway: what an operator types, reads and gets."""

import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from structlog.testing import capture_logs

from gateway import logs
from gateway.cli import main
from gateway.contract.names import Hostname
from gateway.store import keys
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import PROVISION, Caller, Ownership, spec
from tests.integration.service.test_commands import LIMIT_SECONDS
from tests.lab import forks
from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.gateway import GatewayConfig, start_gateway, write_gateway_config
from tests.lab.redis import RedisProcess, ask_redis, start_redis

KEPT, GONE = "kept.test", "gone.test"
ADDRESS, OTHER = "198.51.100.5", "198.51.100.6"
Process = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Office:
    """A gateway without a CA, on servers of its own, and an operator at a terminal."""

    config: GatewayConfig
    redis: RedisProcess
    bind: BindPair

    def command(self, *arguments: str | Path, config_file: Path | None = None) -> Process:
        """The command in a process of its own."""
        file = config_file or self.config.config_file
        typed = ["holdings", *map(str, arguments), "--config", str(file)]
        return forks.run_command(typed, os.environ, LIMIT_SECONDS)

    def here(self, *arguments: str | Path, config_file: Path | None = None) -> Result:
        """The command in this process, whose logging stays as it is."""
        return self.beside("holdings", *arguments, config_file=config_file)

    def beside(self, *arguments: str | Path, config_file: Path | None = None) -> Result:
        """Any command in this process."""
        file = config_file or self.config.config_file
        typed = [*map(str, arguments), "--config", str(file)]
        with pytest.MonkeyPatch.context() as patch, capture_logs():
            patch.setattr(logs, "configure_logging", lambda *_: None)
            return CliRunner().invoke(main, typed)

    def answer(self, *arguments: str | Path, config_file: Path | None = None) -> Any:
        result = self.here(*arguments, "--json", config_file=config_file)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def ownership(
        self, client_id: str, hostname: str, app_id: str = "relay", **changes: object
    ) -> Ownership:
        admin = Caller(self.config.url, self.config.admin_token)
        made = admin.call(PROVISION, action="ensure", spec=spec(client_id, hostname, **changes))
        return Ownership(Caller(admin.url, made["apiToken"]), hostname, app_id)

    def flush(self) -> None:
        ask_redis(self.redis.port, "FLUSHALL")

    def in_zone(self, hostname: str) -> set[str]:
        return Hand.at(self.bind).records(hostname)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    bind = start_bind_pair(tmp_path_factory.mktemp("office-bind"), [KEPT, GONE])
    redis = start_redis(tmp_path_factory.mktemp("office-redis"))
    try:
        folder = tmp_path_factory.mktemp("office")
        config = write_gateway_config(folder / "gateway", bind, redis.url, None)
        gateway = start_gateway(config)
        try:
            yield Office(config, redis, bind)
        finally:
            gateway.stop()
    finally:
        redis.stop()
        bind.stop()


@pytest.fixture
def office(running: Office) -> Office:
    running.flush()
    return running


@pytest.fixture
def hostname() -> str:
    return f"t{secrets.token_hex(6)}.{KEPT}"


def published(office: Office, client_id: str, hostname: str) -> Ownership:
    mine = office.ownership(client_id, hostname)
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    return mine


def test_record_is_listed_handed_over_lost_and_rebuilt(office: Office, hostname: str) -> None:
    giver = published(office, "mine", hostname)
    taker = office.ownership("theirs", hostname, "app:with:colons")
    words = ("hand-over", hostname, "--from", "mine:relay", "--to", "theirs:app:with:colons")
    result = office.command(*words)
    assert result.stdout == (
        f"{hostname} A {ADDRESS}, TTL 300 s is held by theirs for app:with:colons now.\n"
    ), result.stderr
    assert giver.publish(ADDRESS)["status"] == "record-conflict"
    assert taker.publish(ADDRESS)["status"] == "managed-unchanged"
    line = f"{hostname}  theirs for app:with:colons  A {ADDRESS}, TTL 300 s"
    assert office.command("list").stdout.splitlines() == [line]
    office.flush()
    taker = office.ownership("theirs", hostname, "app:with:colons")
    result = office.command("rebuild", "--app-id", "app:with:colons", "--zone", KEPT)
    assert (result.returncode, result.stderr) == (0, f"Reading the zone {KEPT} …\n")
    assert f"{line}  restored: proven, and written into Redis" in result.stdout.splitlines()
    assert taker.withdraw()["status"] == "managed-deleted"


def test_what_a_zone_that_is_configured_no_more_holds_is_forgotten(office: Office) -> None:
    hostname = f"t{secrets.token_hex(6)}.{GONE}"
    published(office, "mine", hostname)
    records = office.in_zone(hostname)
    refused = office.here("forget", hostname, "--from", "mine:relay")
    assert refused.exit_code == 1
    assert "which is configured: withdraw its record instead" in refused.stderr
    config_file = without_zone(office.config.config_file, GONE)
    found = office.answer("list", "--zone", GONE, config_file=config_file)
    assert [(each["hostname"], each["zone"]) for each in found] == [(hostname, None)]
    forgotten = office.command("forget", hostname, "--from", "mine:relay", config_file=config_file)
    assert forgotten.stdout == (
        f"Forgotten: {hostname} A {ADDRESS}. The record and its marker stay in their zone.\n"
    ), forgotten.stderr
    assert office.in_zone(hostname) == records


def test_list_has_what_each_client_holds(office: Office, hostname: str) -> None:
    published(office, "mine", hostname)
    published(office, "theirs", f"t{secrets.token_hex(6)}.{GONE}")
    assert office.answer("list", "--client", "mine") == [
        {
            "hostname": hostname,
            "zone": KEPT,
            "clientId": "mine",
            "appId": "relay",
            "readable": True,
            "record": {"type": "A", "value": ADDRESS, "ttl": 300, "published": True},
            "certificateValidUntil": None,
            "issuance": None,
            "claim": None,
            "debts": 0,
        }
    ]
    assert [each["clientId"] for each in office.answer("list", "--zone", GONE)] == ["theirs"]
    nothing = office.here("list", "--client", "nobody")
    assert (nothing.stdout, nothing.stderr) == ("", "Redis holds nothing of that.\n")


def test_rebuild_restores_what_the_zones_prove(
    office: Office, hostname: str, tmp_path: Path
) -> None:
    published(office, "mine", hostname)
    office.flush()
    mine = office.ownership("mine", hostname)
    planned = office.here("rebuild", "--dry-run", "--app-id", "relay", "--zone", KEPT)
    record = f"{hostname}  mine for relay  A {ADDRESS}, TTL 300 s"
    assert f"{record}  restorable: proven" in planned.stdout
    assert office.answer("list") == []
    owners, names = tmp_path / "owners", tmp_path / "names"
    owners.write_text(f"mine relay {hostname}\n")
    names.write_text(f"{hostname}\n")
    text = office.here("rebuild", "--owners", owners, "--names", names).stdout
    assert f"{record}  restored: proven" in text
    report = json.loads(office.here("rebuild", "--json").stdout)
    found = {each["hostname"]: each for zone in report["zones"] for each in zone["names"]}
    assert (found[hostname]["outcome"], found[hostname]["clientId"]) == ("known", "mine")
    assert all(zone["whole"] and not zone["unreadable"] for zone in report["zones"])
    assert mine.withdraw()["status"] == "managed-deleted"


def test_rebuild_ends_with_1_while_something_is_unproven(office: Office, hostname: str) -> None:
    published(office, "mine", hostname)
    office.flush()
    result = office.here("rebuild", "--zone", KEPT)
    assert result.exit_code == 1
    assert f"{hostname}  unproven: no candidate proves its marker" in result.stdout
    assert re.search(rf"^zone {KEPT} \(read whole\): .*unproven$", result.stdout, re.MULTILINE)
    mine = office.ownership("mine", hostname)
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"
    assert mine.withdraw()["status"] == "managed-deleted"


def test_zone_that_is_not_configured_is_told(office: Office) -> None:
    result = office.here("rebuild", "--zone", "unheard-of.test")
    assert result.exit_code == 2
    assert result.stderr == "--zone unheard-of.test is not configured.\n"


def test_hand_over_says_whether_the_zone_had_it_already(office: Office, hostname: str) -> None:
    published(office, "mine", hostname)
    taker = office.ownership("theirs", hostname)
    words = ("hand-over", hostname, "--from", "mine:relay", "--to", "theirs:relay")
    assert office.answer(*words)["wasDone"] is False
    again = office.answer(*words)
    assert (again["wasDone"], again["certificateReleased"]) == (True, False)
    assert taker.withdraw()["status"] == "managed-deleted"


def test_hand_over_is_refused_where_the_takers_policy_forbids_it(
    office: Office, hostname: str
) -> None:
    giver = published(office, "mine", hostname)
    office.ownership("theirs", hostname, allowedDnsRecordAddresses=["192.0.2.0/24"])
    result = office.here("hand-over", hostname, "--from", "mine:relay", "--to", "theirs:relay")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"The address {ADDRESS} lies in none of the prefixes of theirs.\n"
    assert giver.withdraw()["status"] == "managed-deleted"


def test_names_in_no_configured_zone_are_told(office: Office, tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("a.kpet.test\n")
    result = office.here("rebuild", "--names", names)
    assert result.exit_code == 1
    assert result.stderr.endswith("Of --names, 1 in no configured zone: a.kpet.test.\n")


def test_challenge_value_that_would_steer_a_terminal_is_shown_escaped(office: Office) -> None:
    hand = Hand.at(office.bind)
    name = f"_acme-challenge.t{secrets.token_hex(6)}.{KEPT}"
    hand.update(f'add {name} 300 TXT "x\\027[2K\\010zone {KEPT} (read whole)"')
    try:
        text = office.here("rebuild", "--zone", KEPT).stdout
    finally:
        hand.update(f"delete {name}")
    assert f"{name}  TXT x\\x1b[2K\\nzone {KEPT} (read whole)  a challenge" in text
    assert "\x1b" not in text


UNREADABLE = {
    "another-record": ("record", '{"address": "192.0.2.5"}'),
    "another-type": ("record", '{"type": "HTTPS", "value": "x", "ttl": 9, "published": true}'),
    "no-json": ("record", "{"),
    "another-holder": ("holder", '{"client": "mine"}'),
    "no-debts": ("debts", '["unheard-of"]'),
}


@pytest.mark.parametrize("field", UNREADABLE)
def test_document_that_is_not_readable_ends_no_command(
    office: Office, hostname: str, field: str
) -> None:
    published(office, "mine", hostname)
    other = f"t{secrets.token_hex(6)}.{KEPT}"
    published(office, "theirs", other)
    key = keys.host_key(Hostname(hostname))
    ask_redis(office.redis.port, "HSET", key, *UNREADABLE[field])
    listed = {each["hostname"]: each["readable"] for each in office.answer("list")}
    assert listed == {hostname: False, other: True}
    report = json.loads(office.here("rebuild", "--zone", KEPT, "--json").stdout)
    found = {each["hostname"]: each["outcome"] for each in report["zones"][0]["names"]}
    assert (found[hostname], found[other]) == ("unreadable", "known")
    sentence = f"What Redis has of {hostname} is not readable by this release.\n"
    handed = office.here("hand-over", hostname, "--from", "mine:relay", "--to", "theirs:relay")
    assert (handed.exit_code, handed.stderr) == (1, sentence)
    config_file = without_zone(office.config.config_file, KEPT)
    forgotten = office.here("forget", hostname, "--from", "mine:relay", config_file=config_file)
    assert (forgotten.exit_code, forgotten.stderr) == (1, sentence)
    told = office.beside("explain", hostname)
    assert told.exit_code == 0, told.stderr
    assert f"not known: {sentence}" in told.stdout


@pytest.mark.parametrize("field", [("debts", '[{"kind": "unheard-of"}]'), ("record", "{")])
def test_explain_and_issuances_tell_of_a_document_that_is_not_readable(
    office: Office, hostname: str, field: tuple[str, str]
) -> None:
    published(office, "mine", hostname)
    ask_redis(office.redis.port, "HSET", keys.host_key(Hostname(hostname)), *field)
    told = office.beside("explain", hostname, "--json")
    sentence = f"What Redis has of {hostname} is not readable by this release."
    assert json.loads(told.stdout)["holding"] == {"fault": sentence}
    listed = office.beside("issuances", "list")
    assert (listed.exit_code, listed.stderr) == (0, f"{sentence}\nNothing is under way.\n")
    shown = office.beside("issuances", "show", hostname)
    assert (shown.exit_code, shown.stderr) == (1, f"{sentence}\n")


def test_explain_foresees_for_the_holder_where_its_certificate_is_not_readable(
    office: Office, hostname: str
) -> None:
    published(office, "mine", hostname)
    key = keys.host_key(Hostname(hostname))
    ask_redis(office.redis.port, "HSET", key, "certificate", '{"form": 99}')
    told = json.loads(office.beside("explain", hostname, "--json").stdout)
    assert told["certificate"]["status"] == "internal"


def test_hand_over_to_nobody_is_refused(office: Office, hostname: str) -> None:
    result = office.here("hand-over", hostname, "--from", "mine:relay", "--to", "no:body")
    assert (result.exit_code, result.stderr) == (1, "There is no client no.\n")


def without_zone(config_file: Path, zone: str) -> Path:
    """The same configuration, in a file beside it, without one of its zones."""
    head, *tables = config_file.read_text().split("[[zones]]")
    kept = [table for table in tables if f'name = "{zone}"' not in table]
    assert len(kept) == len(tables) - 1
    other = config_file.with_name("without.toml")
    other.touch(mode=0o600)
    other.write_text("[[zones]]".join([head, *kept]))
    return other
