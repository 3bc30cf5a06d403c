"""What is told after a deed, and what is shown and told while Redis takes no writes."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
import redis

from gateway.contract import Unavailable
from gateway.http.page.frame import Fields, Page, Redirect, Shown, Visit
from gateway.http.page.sessions import MOST_NOTICES, NOTED_EVERY_MS
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.nodes import Command
from tests.integration.page.browsing import Html
from tests.integration.page.framed import Clock, Framed, a_page
from tests.lab.redis import RedisProcess, running_redis

UNSURE = "It may have been done all the same"


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A Redis of this module's own: it refuses writes now and then."""
    with running_redis(tmp_path_factory.mktemp("notices")) as server:
        yield server


@pytest.fixture
async def store(own_redis: RedisProcess) -> AsyncIterator[Store]:
    store = Store(own_redis.url)
    yield store
    await store.close()


@pytest.fixture
async def framed(store: Store) -> AsyncIterator[Framed]:
    framed = Framed(store, Clock(), [a_page(), a_page("/other")])
    await framed.log_in()
    yield framed
    await framed.client.aclose()


@pytest.fixture
def connection(own_redis: RedisProcess) -> Iterator[Any]:
    """A connection to Redis; whatever a test had it refuse is taken again afterwards."""
    with redis.Redis.from_url(own_redis.url) as connection:
        yield connection
        refuse(connection, "none")


class NoticelessStore(Store):
    """A fake of a Redis that stops to answer just when a deed was done; else as ever."""

    async def answers_of_each(self, wanted: Sequence[tuple[str, Sequence[Command]]]) -> list[Any]:
        if any(command[0] == "RPUSH" for _, commands in wanted for command in commands):
            await asyncio.Event().wait()
        return await super().answers_of_each(wanted)


def refuse(connection: Any, kind: str) -> None:
    """Have Redis refuse writes as it does without replicas or without memory."""
    connection.config_set("min-replicas-to-write", int(kind == "replicas"))
    connection.config_set("maxmemory", int(kind == "memory"))


def notices(page: Html) -> list[str]:
    return [each.text for each in page.all("p", class_="notice")]


async def told_at(framed: Framed, path: str) -> list[str]:
    return notices(Html((await framed.get(path)).text))


def acting(deed: object) -> Page:
    """A page at /acting that does this: an error is raised, anything else is run."""

    async def act(_: Visit, __: Fields) -> Shown | Redirect:
        if isinstance(deed, Exception):
            raise deed
        assert callable(deed)
        deed()
        return Redirect("/operator/plain", "done")

    return Page("/acting", "confirm.html", a_page().show, act)


def with_pages(framed: Framed, *pages: Page) -> Framed:
    other = Framed(framed.store, framed.clock, [a_page(), *pages], admin_token=framed.admin_token)
    other.client.cookies = framed.client.cookies
    return other


async def test_notice_is_told_at_the_page_that_it_is_for(framed: Framed) -> None:
    keys = await framed.keys()
    await framed.post("/operator/plain", {**keys, "told": "done"})
    assert await told_at(framed, "/operator/other") == []
    assert await told_at(framed, "/operator/plain?a=b") == ["done"]
    assert await told_at(framed, "/operator/plain") == []


async def test_notices_of_deeds_at_once_are_all_told_in_their_order(framed: Framed) -> None:
    keys = [await framed.keys() for _ in range(MOST_NOTICES + 1)]
    for number, each in enumerate(keys):
        await framed.post("/operator/plain", {**each, "told": str(number)})
    assert await told_at(framed, "/operator/plain") == [
        str(number) for number in range(1, MOST_NOTICES + 1)
    ]


async def test_notice_is_of_its_session_only(framed: Framed) -> None:
    await framed.post("/operator/plain", await framed.keys())
    other = with_pages(framed)
    other.client.cookies.clear()
    await other.log_in()
    assert await told_at(other, "/operator/plain") == []


@pytest.mark.parametrize("kind", ["replicas", "memory"])
async def test_what_was_done_is_told_as_done_where_its_notice_cannot_be_kept(
    framed: Framed, connection: Any, kind: str
) -> None:
    other = with_pages(framed, acting(lambda: refuse(connection, kind)))
    answer = await other.post("/operator/acting", await other.keys("/operator/acting"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator/plain")
    refuse(connection, "none")
    assert await told_at(framed, "/operator/plain") == []


async def test_notice_of_another_type_stops_no_page(framed: Framed, connection: Any) -> None:
    await framed.post("/operator/plain", await framed.keys())
    planted = connection.keys("gw:page-notice:*")
    for key in planted:
        connection.set(key, "something else")
    assert (await framed.get()).status_code == 200
    assert (await framed.post("/operator/plain", await framed.keys())).status_code == 303
    connection.delete(*planted)


@pytest.mark.parametrize("kind", ["replicas", "memory"])
async def test_pages_are_shown_while_redis_takes_no_writes(
    framed: Framed, connection: Any, kind: str
) -> None:
    framed.clock.pass_by(NOTED_EVERY_MS)
    keys = await framed.keys()
    framed.clock.pass_by(NOTED_EVERY_MS)
    refuse(connection, kind)
    page = Html((await framed.get()).text)
    assert "what was asked for" in page.text
    (told,) = page.all("p", class_="fault")
    assert told.text.startswith("Redis takes no writes now: ")
    refused = await framed.post("/operator/plain", keys)
    assert refused.status_code == 503
    assert UNSURE not in refused.text
    refuse(connection, "none")
    assert not Html((await framed.get()).text).all("p", class_="fault")


@pytest.mark.parametrize(
    "error",
    [StoreUnavailable("Redis cannot be reached"), Unavailable(1_000), TimeoutError(), KeyError()],
)
async def test_deed_of_which_nobody_knows_whether_it_was_done_is_told_so(
    framed: Framed, error: Exception
) -> None:
    other = with_pages(framed, acting(error))
    answer = await other.post("/operator/acting", await other.keys("/operator/acting"))
    assert answer.status_code == (500 if isinstance(error, KeyError) else 503)
    assert UNSURE in answer.text


async def test_what_was_done_does_not_wait_for_its_notice(
    framed: Framed, own_redis: RedisProcess
) -> None:
    store = NoticelessStore(own_redis.url)
    other = Framed(store, framed.clock, admin_token=framed.admin_token)
    other.client.cookies = framed.client.cookies
    answer = await other.post("/operator/plain", await other.keys())
    assert answer.status_code == 303
    await store.close()
