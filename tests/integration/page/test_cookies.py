"""Which of a browser's cookies is the session, and when one is taken away."""

import secrets
from collections.abc import AsyncIterator

import pytest

from gateway.http.page.cookies import MOST_SHOWN
from gateway.store.connection import Store
from tests.integration.page.browsing import PLAIN_COOKIE, SECURE_COOKIE
from tests.integration.page.framed import Clock, Framed


@pytest.fixture
async def framed(store: Store) -> AsyncIterator[Framed]:
    framed = Framed(store, Clock())
    await framed.log_in()
    yield framed
    await framed.client.aclose()


def session_id() -> str:
    return secrets.token_urlsafe(32)


def taken_from(framed: Framed) -> str:
    """The session's id, which the browser has no longer."""
    own = framed.client.cookies[PLAIN_COOKIE]
    framed.client.cookies.clear()
    return own


def shown(*values: str) -> str:
    return "; ".join(f"{PLAIN_COOKIE}={each}" for each in values)


async def test_session_is_found_beside_cookies_that_others_have_planted(framed: Framed) -> None:
    own, planted = taken_from(framed), [session_id() for _ in range(MOST_SHOWN - 1)]
    for values in ([own, *planted], [*planted, own], ["no id", "", *planted, own, planted[0]]):
        assert (await framed.get(Cookie=shown(*values))).status_code == 200


async def test_only_so_many_cookies_are_looked_at(framed: Framed) -> None:
    own, planted = taken_from(framed), [session_id() for _ in range(MOST_SHOWN)]
    assert (await framed.get(Cookie=shown(*planted, own))).status_code == 303


async def test_login_beside_a_planted_cookie_is_a_login(framed: Framed) -> None:
    framed.client.cookies.clear()
    framed.client.cookies.set(PLAIN_COOKIE, session_id(), framed.client.base_url.host, "/")
    assert not await framed.is_logged_in()
    await framed.log_in()
    assert await framed.is_logged_in()
    # The planted one is gone from the browser as well.
    assert [each.path for each in framed.client.cookies.jar] == ["/operator"]


async def test_logout_takes_away_the_planted_one_too(framed: Framed) -> None:
    framed.client.cookies.set(PLAIN_COOKIE, session_id(), framed.client.base_url.host, "/")
    keys = await framed.keys("/operator/logout")
    assert (await framed.post("/operator/logout", keys)).status_code == 303
    assert not list(framed.client.cookies.jar)


async def test_logout_takes_the_cookie_away_where_there_is_tls(store: Store) -> None:
    framed = Framed(store, Clock(), scheme="https")
    await framed.log_in()
    assert SECURE_COOKIE in framed.client.cookies
    await framed.post("/operator/logout", await framed.keys("/operator/logout"))
    assert not list(framed.client.cookies.jar)


@pytest.mark.parametrize("headers", [{}, {"X-Page-Poll": "1"}], ids=["page", "poll"])
async def test_answer_to_a_former_session_leaves_the_new_cookie_alone(
    framed: Framed, headers: dict[str, str]
) -> None:
    former = taken_from(framed)
    await framed.log_in()
    new = framed.client.cookies[PLAIN_COOKIE]
    other = Framed(framed.store, framed.clock, admin_token=framed.admin_token)
    other.client.cookies.set(PLAIN_COOKIE, former)
    await other.log_in()
    # Sent by another tab before the login was answered, and answered after it.
    answer = await framed.get(Cookie=shown(former), **headers)
    assert answer.status_code == 303
    framed.client.cookies.extract_cookies(answer)
    assert framed.client.cookies.get(PLAIN_COOKIE) == new
