"""Explaining within a process that serves: on its Redis, in time, and leaving nothing behind."""

import asyncio
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

import gateway
from gateway import measures
from gateway.access.foresight import NO_TIME, UNKNOWN
from gateway.cli import explanation_json
from gateway.config import Settings, load_settings
from gateway.contract import Overloaded
from gateway.contract.names import ClientId, Hostname
from gateway.dns.situation import Presence
from gateway.explaining import AT_ONCE, Explaining, NotExplained, Question, explained
from gateway.store.documents import Document
from gateway.store.keys import host_key
from gateway.stores import open_redis
from gateway.views import explanation
from gateway.views.explanation import Fault
from gateway.wiring import open_gateway
from tests.integration.dns.lines import delaying, line
from tests.integration.dns.servers import black_hole
from tests.integration.service.calling import GET, SYNC, Ownership, World
from tests.integration.service.fates import ADDRESS, client_id
from tests.integration.service.inside import stored
from tests.integration.service.test_explain import changed_config, in_one
from tests.lab.lab import Lab
from tests.lab.process import read_until

GATEWAY = Path(gateway.__file__).parent


def settings_of(lab: Lab, folder: Path, *changes: tuple[str, str]) -> Settings:
    """The lab's settings with other words in their file."""
    return load_settings(changed_config(lab, folder, *changes), {})


def plain(lab: Lab) -> Explaining:
    return Explaining(load_settings(lab.config.config_file, {}), lab.redis.url)


def fresh_question(world: World) -> Question:
    """Of a client that may call: another that the lab has may have lost its tokens."""
    mine = world.ownership()
    return Question(Hostname(mine.hostname), ClientId(client_id(mine)))


def connections(url: str) -> int:
    with redis.Redis.from_url(url) as connection:
        return len(connection.client_list())


def under_way() -> list[str]:
    """What of the gateway runs in this loop, beside the test."""
    running = (task.get_coro() for task in asyncio.all_tasks())
    return [
        coroutine.__qualname__
        for coroutine in running
        if inspect.iscoroutine(coroutine) and GATEWAY in Path(coroutine.cr_code.co_filename).parents
    ]


async def until_no_more_than(count: int, url: str) -> None:
    async def seen() -> int:
        return connections(url)

    await read_until(seen, lambda now: now <= count)


async def test_holding_is_explained_as_the_command_does(service_lab: Lab, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    found = await plain(service_lab).explain(Question(Hostname(mine.hostname)))
    assert isinstance(found.document, Document)
    assert found.document.record is not None
    assert found.document.record["value"] == ADDRESS
    assert found.sync.status == "managed-unchanged"


@pytest.mark.parametrize("time_ms", [10**17, -1])
async def test_certificate_until_a_time_that_no_calendar_has_is_told_to_be_unreadable(
    service_lab: Lab, mine: Ownership, time_ms: int
) -> None:
    mine.certificate()
    certificate = json.loads(stored(service_lab, mine.hostname)["certificate"])
    with redis.Redis.from_url(service_lab.redis.url) as connection:
        spoiled = json.dumps({**certificate, "valid_until_ms": time_ms})
        connection.hset(host_key(Hostname(mine.hostname)), "certificate", spoiled)
    found = await plain(service_lab).explain(Question(Hostname(mine.hostname)))
    text = in_one(explanation.lines(found))
    sentence = f"What Redis has of {mine.hostname} is not readable by this release."
    assert f"holder not known: {sentence}" in text
    assert "a request would answer internal (see holder)" in text
    assert mine.caller.refused(GET, ownership=mine.wire)["code"] == "internal"
    mine.release()


def refused_by_limits() -> dict[str, float]:
    names = ("records", "certificates", "rate")
    counted = (
        measures.REGISTRY.get_sample_value("gateway_calls_limited_total", {"limit": name}) or 0.0
        for name in names
    )
    return dict(zip(names, counted, strict=True))


@pytest.mark.parametrize(("limit", "method"), [("records", SYNC), ("certificates", GET)])
async def test_only_a_call_that_a_quota_refuses_is_counted(
    service_lab: Lab, world: World, limit: str, method: str
) -> None:
    environ = {f"GATEWAY_LIMITS__{limit.upper()}": "1"}
    settings = load_settings(service_lab.config.config_file, environ)
    caller = world.client("*.example.test")
    names = world.ownership().hostname
    held, wanted = (Ownership(caller, f"{which}-{names}") for which in ("held", "wanted"))
    held.publish(ADDRESS) if method == SYNC else held.certificate()
    question = Question(Hostname(wanted.hostname), ClientId(client_id(wanted)))
    before = refused_by_limits()
    found = await explained(settings, question, redis_url=service_lab.redis.url)
    foreseen = found.sync if method == SYNC else found.certificate
    assert foreseen.status == "overloaded"
    assert refused_by_limits() == before
    request = {"apiToken": caller.token, "ownership": wanted.wire}
    record = {"record": {"type": "A", "value": ADDRESS}} if method == SYNC else {}
    async with open_gateway(settings, redis_url=service_lab.redis.url) as gateway:
        with pytest.raises(Overloaded):
            await gateway.calls.answer(method, {**request, **record})
    assert refused_by_limits() == {**before, limit: before[limit] + 1}


async def test_nothing_is_left_behind_of_many_explanations(service_lab: Lab, world: World) -> None:
    before, explaining = connections(service_lab.redis.url), plain(service_lab)
    async with asyncio.TaskGroup() as group:
        for _ in range(2 * AT_ONCE):
            group.create_task(explaining.explain(fresh_question(world), 60.0))
    assert under_way() == []
    await until_no_more_than(before, service_lab.redis.url)


async def test_visitor_who_goes_away_leaves_nothing_behind(
    service_lab: Lab, world: World, tmp_path: Path
) -> None:
    before = connections(service_lab.redis.url)
    async with black_hole() as deaf:
        behind = ("{}:{}".format(*service_lab.bind.primary), str(deaf))
        settings = settings_of(service_lab, tmp_path, behind)
        explaining = Explaining(settings, service_lab.redis.url)
        visit = asyncio.create_task(explaining.explain(fresh_question(world)))

        async def opened() -> int:
            return connections(service_lab.redis.url)

        await read_until(opened, lambda count: count > before)
        visit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visit
    assert under_way() == []
    await until_no_more_than(before, service_lab.redis.url)
    found = await Explaining(settings, service_lab.redis.url).explain(fresh_question(world))
    assert isinstance(found.document, Document)


async def test_visitor_who_goes_away_as_questions_begin_leaves_none_that_nobody_awaits(
    service_lab: Lab, world: World
) -> None:
    """Python warns of a coroutine that nobody awaits, and the suite takes warnings for errors."""

    def is_about_to_ask() -> bool:
        tasks = (task.get_coro() for task in asyncio.all_tasks())
        return any(
            inspect.iscoroutine(each)
            and each.__name__ == "_or_fault"
            and inspect.getcoroutinestate(each) == inspect.CORO_CREATED
            for each in tasks
        )

    visit = asyncio.create_task(plain(service_lab).explain(fresh_question(world)))
    while not is_about_to_ask():  # noqa: ASYNC110 (a task's first step tells nobody)
        await asyncio.sleep(0)
    visit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await visit
    assert under_way() == []


async def test_embedded_redis_of_the_process_is_used_and_none_is_started(
    service_lab: Lab, world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    settings = settings_of(
        service_lab,
        tmp_path,
        (f'"{service_lab.redis.url}"', '"embedded"'),
        (f'state_dir = "{service_lab.config.state_folder}"', f'state_dir = "{folder}"'),
    )
    async with open_redis(settings, serves=True) as url:
        pid, idle = (folder / "redis" / "redis.pid").read_text(), under_way()
        before = connections(url)
        found = await Explaining(settings, url).explain(
            Question(Hostname(world.ownership().hostname))
        )
        assert isinstance(found.document, Document)
        assert found.asker.is_real is False
        assert (folder / "redis" / "redis.pid").read_text() == pid
        assert under_way() == idle
        await until_no_more_than(before, url)
    gone = await Explaining(settings, url).explain(Question(Hostname(world.ownership().hostname)))
    assert gone.document == Fault("Redis cannot be reached.")


@pytest.fixture
def explaining_behind(service_lab: Lab, tmp_path: Path) -> Callable[[object], Explaining]:
    """Of a gateway whose zones' primary is elsewhere."""

    def at(primary: object) -> Explaining:
        behind = ("{}:{}".format(*service_lab.bind.primary), str(primary))
        return Explaining(settings_of(service_lab, tmp_path, behind), service_lab.redis.url)

    return at


async def test_zone_that_hangs_is_told_within_the_limit(
    world: World, explaining_behind: Callable[[object], Explaining]
) -> None:
    async with black_hole() as deaf, asyncio.timeout(5.0):
        found = await explaining_behind(deaf).explain(fresh_question(world), 2.0)
    assert isinstance(found.document, Document)
    assert found.name is not None
    assert found.name.presence is Presence.UNKNOWN


async def test_one_more_than_are_explained_at_once_is_told_so_or_waits(
    world: World, explaining_behind: Callable[[object], Explaining]
) -> None:
    async with black_hole() as deaf:
        explaining = explaining_behind(deaf)
        limits = (*(3.0,) * AT_ONCE, 1.0, 8.0)
        *_, refused, waited = await asyncio.gather(
            *(explaining.explain(fresh_question(world), limit) for limit in limits),
            return_exceptions=True,
        )
    assert isinstance(refused, NotExplained)
    assert str(refused).startswith("2 others are being explained just now")
    assert not isinstance(waited, BaseException)
    assert isinstance(waited.document, Document)


async def test_redis_that_hangs_is_a_sentence_in_its_place(service_lab: Lab, world: World) -> None:
    settings = load_settings(service_lab.config.config_file, {})
    async with black_hole() as deaf, asyncio.timeout(12.0):
        found = await Explaining(settings, f"redis://{deaf}/0").explain(fresh_question(world))
    assert isinstance(found.document, Fault)
    assert found.name is not None
    assert found.name.presence is Presence.ABSENT


async def test_keyring_that_cannot_be_used_is_told(
    service_lab: Lab, world: World, tmp_path: Path
) -> None:
    keyring = tmp_path / "keyring"
    settings = settings_of(service_lab, tmp_path).model_copy(update={"keyring_file": keyring})
    with pytest.raises(NotExplained, match=r"The keyring can.t be used: .*keyring"):
        await Explaining(settings, service_lab.redis.url).explain(fresh_question(world))
    keyring.write_text("lab-1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
    keyring.chmod(0o600)
    with pytest.raises(NotExplained, match="does not hold the key"):
        await Explaining(settings, service_lab.redis.url).explain(fresh_question(world))


async def test_each_part_that_no_time_is_left_for_says_so_in_its_place(
    service_lab: Lab, world: World
) -> None:
    settings = load_settings(service_lab.config.config_file, {})
    question = fresh_question(world)
    found = await explained(settings, question, limit_seconds=0.0)
    assert (found.document, found.coverage) == (Fault(NO_TIME), Fault(NO_TIME))
    assert list(found.authorities.values()) == [Fault(NO_TIME)]
    assert (found.sync.status, found.certificate.status) == (UNKNOWN, UNKNOWN)
    text = in_one(explanation.lines(found))
    no_time = r"No time was left to ask the DNS server .*"
    assert re.search(rf"\nprimary {no_time}\nservers not known \(see primary\)\n", text)
    for topic in ("holder", "policy", "authority 127.0.0.1:"):
        assert f"\n{topic} not known: {NO_TIME}\n" in text
    assert f"would answer\nnot known: {NO_TIME}\n" in text
    assert text.endswith(f"a request would answer not known: {NO_TIME}")


async def test_answers_that_come_after_the_end_are_not_waited_for(
    service_lab: Lab, world: World, tmp_path: Path
) -> None:
    """Each answer comes early enough for its question, and too late for the explanation."""
    question = fresh_question(world)
    late = delaying(1.0)
    async with line(service_lab.bind.primary, udp=late, tcp=late) as slow:
        behind = ("{}:{}".format(*service_lab.bind.primary), str(slow))
        settings = settings_of(service_lab, tmp_path, behind)
        found = await explained(settings, question, limit_seconds=0.6)
    view = explanation_json.view(found)
    assert [each["ok"] for each in view["zone"]["primaries"]] == [False]
    assert (view["name"]["state"], view["challenge"]["target"]) == ("unknown", None)
    assert (found.sync.status, found.certificate.status) == (UNKNOWN, UNKNOWN)
