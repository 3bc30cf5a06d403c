"""When a session ends, and what is kept of it."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence

import pytest

from gateway.http.page.sessions import IDLE_MS, LONGEST_MS, NOTED_EVERY_MS
from gateway.store.connection import Store
from tests.integration.page.browsing import PLAIN_COOKIE
from tests.integration.page.framed import Clock, Framed
from tests.lab.redis import RedisProcess


class HeldStore(Store):
    """A Redis whose answers to reads are held back until `goes_on`."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.has_read, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()

    async def values(self, keys: Sequence[str]) -> list[str | None]:
        found = await super().values(keys)
        self.has_read.set()
        await self.goes_on.wait()
        return found


@pytest.fixture
async def framed(store: Store) -> AsyncIterator[Framed]:
    framed = Framed(store, Clock())
    await framed.log_in()
    yield framed
    await framed.client.aclose()


async def test_session_ends_an_hour_after_it_was_used_last(framed: Framed) -> None:
    for _ in range(3):
        framed.clock.pass_by(IDLE_MS - 1)
        assert await framed.is_logged_in()
    framed.clock.pass_by(IDLE_MS)
    assert not await framed.is_logged_in()


async def test_session_ends_12_hours_after_it_began_however_much_it_is_used(
    framed: Framed,
) -> None:
    for _ in range(LONGEST_MS // (IDLE_MS // 2) - 1):
        framed.clock.pass_by(IDLE_MS // 2)
        assert await framed.is_logged_in()
    framed.clock.pass_by(IDLE_MS // 2)
    assert not await framed.is_logged_in()


async def test_page_that_asks_by_itself_keeps_no_session_alive(framed: Framed) -> None:
    for _ in range(2):
        framed.clock.pass_by(IDLE_MS // 2 - 1)
        assert (await framed.get(**{"X-Page-Poll": "1"})).status_code == 200
    framed.clock.pass_by(2)
    assert (await framed.get(**{"X-Page-Poll": "1"})).status_code == 303


async def test_session_ends_with_the_admin_token_that_opened_it(framed: Framed) -> None:
    other = Framed(framed.store, framed.clock)
    other.client.cookies = framed.client.cookies
    assert not await other.is_logged_in()
    assert await framed.is_logged_in()


async def test_other_process_with_the_same_token_knows_the_session(framed: Framed) -> None:
    other = Framed(framed.store, framed.clock, admin_token=framed.admin_token)
    other.client.cookies = framed.client.cookies
    assert await other.is_logged_in()
    await other.post("/operator/logout", await other.keys("/operator/logout"))
    other.client.cookies = framed.client.cookies
    assert not await framed.is_logged_in()


async def test_logout_ends_a_session_that_is_used_at_the_same_time(
    framed: Framed, redis_server: RedisProcess
) -> None:
    held = HeldStore(redis_server.url)
    other = Framed(held, framed.clock, admin_token=framed.admin_token)
    other.client.cookies = framed.client.cookies
    framed.clock.pass_by(NOTED_EVERY_MS)
    held.goes_on.clear()
    use = asyncio.create_task(other.get())
    await held.has_read.wait()
    await framed.post("/operator/logout", await framed.keys("/operator/logout"))
    held.goes_on.set()
    await use
    assert (await other.get()).status_code == 303
    await held.close()


async def test_redis_has_neither_the_sessions_id_nor_the_token(framed: Framed) -> None:
    session_id = framed.client.cookies[PLAIN_COOKIE]
    digest = _sha256(session_id)
    keys = [key async for key in framed.store.keys_like("gw:page-*")]
    assert f"gw:page-session:{digest}" in keys
    assert not any(session_id in key for key in keys)
    (stored,) = await framed.store.values([f"gw:page-session:{digest}"])
    assert stored is not None
    assert session_id not in stored
    assert framed.admin_token not in stored
    assert _sha256(framed.admin_token) not in stored


@pytest.mark.parametrize(
    "stored",
    ["", "nonsense", "[]", "{}", '{"begunMs": "x"}', "[" * 5_000],
    ids=["empty", "text", "list", "nothing", "words", "depth"],
)
async def test_session_that_was_tampered_with_is_none(framed: Framed, stored: str) -> None:
    key = f"gw:page-session:{_sha256(framed.client.cookies[PLAIN_COOKIE])}"
    await framed.store.put(key, stored, 60_000)
    assert not await framed.is_logged_in()


async def test_session_that_begins_in_the_future_is_none(framed: Framed) -> None:
    key = f"gw:page-session:{_sha256(framed.client.cookies[PLAIN_COOKIE])}"
    (stored,) = await framed.store.values([key])
    assert stored is not None
    for name in ("begunMs", "seenMs"):
        told = {**json.loads(stored), name: framed.clock() + LONGEST_MS}
        await framed.store.put(key, json.dumps(told), 60_000)
        assert not await framed.is_logged_in()


async def test_login_begins_another_session_and_ends_the_former(framed: Framed) -> None:
    former = framed.client.cookies[PLAIN_COOKIE]
    await framed.log_in()
    assert framed.client.cookies[PLAIN_COOKIE] != former
    framed.client.cookies.clear()
    answer = await framed.get(Cookie=f"{PLAIN_COOKIE}={former}")
    assert answer.status_code == 303


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
