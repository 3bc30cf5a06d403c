"""`gateway explain`: its verdicts are what the calls then answer, and it changes nothing."""

import asyncio
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import CliRunner
from structlog.testing import capture_logs

from gateway import logs
from gateway.certificates.ca_limits import Reach
from gateway.certificates.ledger_values import StoredHold, written_hold
from gateway.cli import claims, explain, explanation_json
from gateway.config import load_settings
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.explaining import Question, explained
from gateway.store import keys
from gateway.views import explanation
from gateway.views.explanation import Explanation
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import GET, SYNC, Ownership, World
from tests.integration.service.fates import (
    ADDRESS,
    FATES,
    Asked,
    client_id,
    foreign,
    free,
    made_up,
    published,
    without_zone,
)
from tests.integration.service.inside import resting_while_published, stored
from tests.integration.service.test_commands import gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.ports import free_port
from tests.lab.process import wait_until

State = tuple[dict[bytes, tuple[object, bool]], list[int]]
"""All that Redis holds, each with whether it lapses by itself, and each zone's serial number."""


@pytest.fixture(scope="module")
def service_lab() -> Iterator[Lab]:
    """A lab of these tests' own: who may hold a hostname is told of all clients that there are."""
    with running_lab(LabOptions(gateways=2, log_level="debug")) as lab:
        yield lab


@pytest.fixture(scope="module")
def world(service_lab: Lab) -> World:
    return World(service_lab.config.url, service_lab.config.admin_token)


@pytest.fixture(scope="module")
def hand(service_lab: Lab) -> Hand:
    return Hand.at(service_lab.bind)


@pytest.fixture(autouse=True)
def logging_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands run in this process; how it logs is not theirs to say, nor part of what they say."""
    monkeypatch.setattr(logs, "configure_logging", lambda *_: None)
    with capture_logs():
        yield


def explained_here(
    lab: Lab | Path,
    hostname: str,
    client: str | None = None,
    app_id: str | None = None,
    address: str | None = None,
) -> Explanation:
    """As the command has it, without the time that another Python takes to start."""
    question = Question(
        Hostname(hostname),
        None if client is None else ClientId(client),
        None if app_id is None else AppId(app_id),
        address,
    )
    config_file = lab if isinstance(lab, Path) else lab.config.config_file
    settings = load_settings(config_file, {})
    return asyncio.run(explained(settings, question))


def told(*asked: Any) -> str:
    """The text of what `explained_here` finds, each run of spaces as one."""
    return in_one(explanation.lines(explained_here(*asked)))


def changed_config(lab: Lab, folder: Path, *changes: tuple[str, str]) -> Path:
    """The lab's configuration with other words in it."""
    text = lab.config.config_file.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    config_file = folder / f"{secrets.token_hex(4)}.toml"
    config_file.write_text(text)
    return config_file


def in_one(lines: Iterable[str]) -> str:
    return "\n".join(" ".join(line.split()) for line in lines)


def answered(ownership: Ownership, method: str, **request: object) -> str:
    """The status of a call, or the code of its error."""
    body = ownership.caller.answer(method, ownership=ownership.wire, **request)
    if body["response"] is None:
        code: str = body["error"]["data"]["code"]
        return code
    status: str = body["response"]["status"]
    return body["response"].get("reason") or status


@pytest.mark.parametrize("fate", FATES)
def test_verdicts_are_what_the_calls_then_answer(
    service_lab: Lab, world: World, hand: Hand, fate: Callable[[World, Hand], Asked]
) -> None:
    asked = fate(world, hand)
    mine = asked.ownership
    client = asked.client or client_id(mine)
    found = explained_here(service_lab, mine.hostname, client, mine.app_id, asked.address)
    foreseen = found.certificate.reason or found.certificate.status
    assert (found.sync.status, foreseen) == (asked.sync, asked.certificate)
    # A certificate first: an issuance under way changes nothing for a sync.
    assert answered(mine, GET) == asked.certificate
    record = {"type": "A", "value": asked.address}
    assert answered(mine, SYNC, record=record) == asked.sync


@dataclass(frozen=True)
class Seen:
    """What was explained while nobody else changed anything, and all there was before and after."""

    before: State
    under_way: str
    verdicts: list[str]
    after: State


@pytest.fixture(scope="module")
def seen(service_lab: Lab, world: World, hand: Hand) -> Seen:
    """Hostnames of different fates, and one whose issuance waits for a silent name server."""
    fates = (published, free, foreign, made_up, without_zone)
    hostnames = [fate(world, hand).ownership.hostname for fate in fates]
    mine, silent = world.ownership(), silent_server(service_lab)
    with ExitStack() as standstill:
        with resting_while_published(service_lab, mine):
            wait_until(
                lambda: silent in stored(service_lab, mine.hostname)["issuance"],
                "the issuance knows which server it waits for",
            )
            for each in service_lab.gateways:
                each.process.pause()
                standstill.callback(each.process.resume)
            wait_until(
                lambda: state(service_lab) == state(service_lab),
                "what was sent before the standstill has arrived",
            )
            before = state(service_lab)
            under_way = told(service_lab, mine.hostname)
        verdicts = [explained_here(service_lab, hostname).sync.status for hostname in hostnames]
        return Seen(before, under_way, verdicts, state(service_lab))


def silent_server(lab: Lab) -> str:
    return "{}:{}".format(*lab.bind.secondary_as_ns2)


def state(lab: Lab) -> State:
    hand = Hand.at(lab.bind)
    with redis.Redis.from_url(lab.redis.url) as connection:
        held = {
            key: (connection.dump(key), connection.pttl(key) > 0) for key in connection.scan_iter()
        }
    return held, [hand.serial(zone) for zone in lab.bind.zones]


def test_nothing_is_changed_in_redis_or_in_a_zone(seen: Seen) -> None:
    held, serials = seen.before
    lapsed = {key for key in held.keys() - seen.after[0].keys() if held[key][1]}
    assert seen.after == ({key: each for key, each in held.items() if key not in lapsed}, serials)
    assert seen.verdicts == [
        "managed-unchanged",
        "managed-created",
        "record-conflict",
        "managed-created",
        "zone-unavailable",
    ]


def test_issuance_on_the_way_is_explained_with_the_server_it_waits_for(
    service_lab: Lab, seen: Seen
) -> None:
    silent, text = silent_server(service_lab), seen.under_way
    assert f"({silent}) does not answer: challenges wait for it" in text
    assert "state published since" in text
    assert "in the zone example.test; TXT there: " in text
    assert "would answer\nmanaged-created: " in text
    assert "a request would answer pending: an issuance is under way" in text


def test_parts_that_are_away_leave_the_rest_of_the_explanation(
    service_lab: Lab, mine: Ownership, tmp_path: Path
) -> None:
    mine.publish(ADDRESS)
    zone_away = ("{}:{}".format(*service_lab.bind.primary), f"127.0.0.1:{free_port()}")
    redis_away = (service_lab.redis.url, f"redis://127.0.0.1:{free_port()}/0")

    def view(*away: tuple[str, str], code: int = 0) -> dict[str, Any]:
        config_file = changed_config(service_lab, tmp_path, *away)
        arguments = [mine.hostname, "--json", "--config", str(config_file)]
        result = CliRunner().invoke(explain.command, arguments)
        assert result.exit_code == code, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    without_zone, without_redis = view(zone_away), view(redis_away)
    nothing = view(zone_away, redis_away, code=1)
    assert without_zone["holding"]["record"]["value"] == ADDRESS
    assert "connection refused" in without_zone["name"]["fault"]
    assert without_zone["sync"]["status"] == "zone-unavailable"
    assert without_redis["holding"] == {"fault": "Redis cannot be reached."}
    assert without_redis["name"]["records"][0]["value"] == ADDRESS
    assert without_redis["certificate"]["status"] == "unavailable"
    assert nothing["sync"]["status"] == "unavailable"


def test_primary_that_is_away_is_told_beside_the_one_that_answers(
    service_lab: Lab, world: World, tmp_path: Path
) -> None:
    """The standby of this configuration is the lab's primary; nobody is at the first one."""
    mine = world.ownership()
    live, dead = "{}:{}".format(*service_lab.bind.primary), f"127.0.0.1:{free_port()}"
    both = (f'primary = "{live}"', f'primary = ["{dead}", "{live}"]')
    told_of = told(changed_config(service_lab, tmp_path, both), mine.hostname)
    assert re.search(rf"primary The DNS server {dead} .*connection refused", told_of)
    assert f"standby {live} serves the zone and takes updates" in told_of
    assert "would answer\nmanaged-created: " in told_of
    assert "an issuance would start at 127.0.0.1" in told_of


def test_holder_asks_where_nobody_is_named_and_no_secret_is_shown(
    service_lab: Lab, mine: Ownership
) -> None:
    mine.certificate()
    mine.publish(ADDRESS)
    document = stored(service_lab, mine.hostname)
    lines, view = (
        gateway(service_lab, "explain", mine.hostname, *more) for more in ([], ["--json"])
    )
    for output in (lines.stdout, view.stdout):
        assert "PRIVATE KEY" not in output
        assert json.loads(document["certificate"])["sealed_key"] not in output
        assert service_lab.bind.tsig.secret_base64 not in output
    assert json.loads(view.stdout)["sync"]["status"] == "managed-unchanged"
    assert (lines.returncode, lines.stderr) == (0, "")
    text = in_one(lines.stdout.splitlines())
    holder = f"{client_id(mine)} for {mine.app_id}"
    assert f"holder {holder}\n" in text
    assert f"marker of the key lab-1: it proves the address to be that of {holder}" in text
    assert f"asked by {holder} (which holds the hostname)" in text
    assert f"sync of A {ADDRESS}, TTL 300 s, would answer\nmanaged-unchanged: " in text
    assert "certificate a request would answer ready: valid until " in text


def test_challenge_is_followed_alias_by_alias(
    service_lab: Lab, world: World, hand: Hand, mine: Ownership
) -> None:
    challenge, target = f"_acme-challenge.{mine.hostname}", f"{mine.hostname}.example.net.test"
    hand.add(f"{challenge} 300 CNAME {target}.")
    hand.add(f'{target} 300 TXT "anothers"')
    text = told(service_lab, mine.hostname)
    way = f"challenge {challenge}\nwhich is an alias of {target}\n"
    assert f'{way}in the zone example.net.test; TXT there: "anothers"' in text
    assert "an empty non-terminal: names below it have records" in text
    assert "a request would answer pending: an issuance would start at 127.0.0.1" in text


def test_alias_that_leads_nowhere_is_told_with_the_verdict(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    challenge = f"_acme-challenge.{mine.hostname}"
    hand.add(f"{challenge} 300 CNAME elsewhere.invalid.")
    text = told(service_lab, mine.hostname)
    fault = f"No configured zone holds elsewhere.invalid, which {challenge} is an alias of."
    assert f"which is an alias of elsewhere.invalid\n{fault}" in text
    assert "pending: an issuance would start, and get no further (see challenge)" in text


def test_claim_and_rival_are_named_to_the_operator(
    service_lab: Lab, world: World, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    rival = world.rival(mine)
    text = told(service_lab, mine.hostname, client_id(rival), rival.app_id)
    words = f"{mine.hostname} is held by another ownership: {client_id(mine)} for {mine.app_id}"
    assert f"record-conflict: {words}" in text
    claimed = f"c{secrets.token_hex(4)}.example.test"
    config_file = str(service_lab.config.config_file)
    adding = [claimed, "--note", "the website", "--config", config_file]
    assert CliRunner().invoke(claims.add, adding).exit_code == 0
    text = told(service_lab, claimed)
    assert "claim an operator's, since " in text
    assert ": the website" in text
    assert "policy no client's patterns match the hostname" in text
    assert f"record-conflict: {claimed} is claimed by an operator" in text


def test_marker_of_this_gateways_own_key_is_told_where_it_proves_nothing(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    """A marker of another name's record was copied here: Redis knows nobody who has it."""
    mine.publish(ADDRESS)
    elsewhere = f"copy-{mine.hostname}"
    marker = next(text for text in hand.records(mine.hostname) if "TXT" in text)
    hand.add(f"{elsewhere} 300 A {ADDRESS}", f"{elsewhere} {marker}")
    text = told(service_lab, elsewhere)
    words = "it proves neither this ownership nor this address"
    assert f"marker of this gateway's key lab-1: {words}" in text
    assert "not proven to be this ownership's (see marker)" in text
    assert "not tried" not in text


def test_host_that_a_challenge_would_interrupt_is_told_where_that_is_set(
    service_lab: Lab, hand: Hand, fresh_label: str, tmp_path: Path
) -> None:
    above = f"{fresh_label}.example.test"
    hand.add(f"*.{above} 300 A 192.0.2.44")
    setting = ('name = "example.test"', 'name = "example.test"\nwildcard_hosts = "interrupt"')
    text = told(changed_config(service_lab, tmp_path, setting), f"relay.{above}")
    answers = f"only the wildcard *.{above} answers for it"
    assert f"while one is there, relay.{above} does not resolve: {answers}" in text
    assert "a request would answer pending: an issuance would start" in text


def test_fault_that_every_part_meets_is_told_once(
    service_lab: Lab, mine: Ownership, tmp_path: Path
) -> None:
    dead = f"127.0.0.1:{free_port()}"
    away = ("{}:{}".format(*service_lab.bind.primary), dead)
    text = told(changed_config(service_lab, tmp_path, away), mine.hostname)
    assert text.count(dead) == 1
    assert "servers not known (see primary)\nname not known (see primary)" in text
    assert "zone-unavailable (see primary) (the client asks again in 5 s)" in text


def test_hold_of_the_authority_is_told_before_an_issuance_starts(
    service_lab: Lab, mine: Ownership
) -> None:
    """The hold is put into Redis as a refusal of the authority would be."""
    directory = service_lab.pebble.directory_url
    key = keys.ledger_key(directory, Reach.HOSTNAME, mine.hostname)
    until_ms = time.time_ns() // 1_000_000 + 3_600_000
    hold = StoredHold(until_ms, "too many certificates", mine.hostname)
    with redis.Redis.from_url(service_lab.redis.url) as connection:
        connection.set(key, written_hold(hold), px=60_000)
    found = explained_here(service_lab, mine.hostname)
    view, text = explanation_json.view(found), in_one(explanation.lines(found))
    assert view["authorities"]["127.0.0.1"]["by"] == "authority"
    assert view["certificate"]["start"]["until"] == until_ms
    words = f"127.0.0.1 takes no orders for {mine.hostname} before "
    assert f"authority 127.0.0.1: held: {words}" in text
    assert f"would answer pending: an issuance would start, and wait: {words}" in text
    assert "too many certificates" in text


def test_what_is_wrong_on_the_command_line_is_told_at_once(service_lab: Lab) -> None:
    result = gateway(
        service_lab, "explain", "Foo.example.test", "--app-id", "a b", "--address", "127.0.0.1"
    )
    assert result.returncode == 2
    assert [line.split(" ", 1)[0] for line in result.stderr.splitlines()] == [
        "HOSTNAME",
        "--app-id",
        "--app-id",
        "--address",
    ]
