"""Values that no ledger wrote lie in its keys: they count as absent and stop nobody."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from gateway.certificates.budget import HOUR_MS, Budget, Limit, Renewal
from gateway.certificates.ca_limits import Reach
from gateway.certificates.ledger import SUSPENDED, Granted, HeldBy, Ledger
from gateway.contract.names import Hostname
from gateway.store import keys
from tests.integration.ledger.asking import BLUE, HOSTNAME, NOW_MS, Clock, Watched, held, new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway.store.connection import Store
    from tests.lab.redis import RedisProcess

NOT_OURS = [
    pytest.param("not json", id="words"),
    pytest.param("1e9", id="float"),
    pytest.param("[]", id="list"),
    pytest.param("null", id="null"),
    pytest.param("9" * 40, id="huge"),
    pytest.param("9" * 5_000, id="too-long-for-a-number"),
    pytest.param("[" * 100_000, id="deep"),
    pytest.param("", id="empty"),
    pytest.param(b"\xff\xfe", id="no-text"),
    pytest.param('{"untilMs": null}', id="no-time"),
    pytest.param('{"untilMs": true, "detail": "x"}', id="truth-for-a-time"),
    pytest.param('{"untilMs": 99999999999999999, "detail": "x"}', id="far-off"),
    pytest.param('{"detail": "x"}', id="no-time-at-all"),
]
FIGURES = [(str(Limit.ORDERS), ""), (str(Limit.HOSTNAME), str(HOSTNAME))]
HOLDS = [(str(Reach.ACCOUNT), ""), (str(Reach.UNDER), "example.com"), (SUSPENDED, "")]


@pytest.fixture
def seen(redis_server: RedisProcess) -> Iterator[Watched]:
    watched = Watched(redis_server)
    yield watched
    watched.close()


@pytest.mark.parametrize("value", [*NOT_OURS, pytest.param(None, id="hash")])
@pytest.mark.parametrize(("kind", "subject"), FIGURES)
async def test_unreadable_figure_is_unused_and_overwritten(
    ledger: Ledger, seen: Watched, directory_url: str, kind: str, subject: str, value: object
) -> None:
    seen.put(keys.ledger_key(directory_url, kind, subject), value)
    await ledger.state()
    assert await new(ledger)
    used = {str(use.limit): use.used for use in (await ledger.state()).uses}
    assert used[kind] == 1
    await ledger.give_back(HOSTNAME, BLUE, renewal=Renewal.NEW)


@pytest.mark.parametrize("value", [*NOT_OURS, pytest.param(None, id="hash")])
@pytest.mark.parametrize(("kind", "subject"), HOLDS)
async def test_unreadable_hold_holds_nobody_and_is_overwritten(
    ledger: Ledger, seen: Watched, directory_url: str, kind: str, subject: str, value: object
) -> None:
    seen.put(keys.ledger_key(directory_url, kind, subject), value)
    assert await ledger.holds_on(HOSTNAME) is None
    assert await new(ledger)
    until_ms = NOW_MS + HOUR_MS
    if kind == SUSPENDED:
        await ledger.suspend(until_ms, "gone")
    else:
        words = f'too many certificates already issued for "{subject}"' if subject else ""
        await ledger.hold(HOSTNAME, until_ms, "later", ca_words=words)
    assert (await held(ledger)).until_ms == until_ms
    assert [hold.until_ms for hold in (await ledger.state()).holds] == [until_ms]


@pytest.mark.parametrize("value", NOT_OURS)
async def test_operator_is_shown_a_ledger_with_unreadable_values(
    ledger: Ledger, seen: Watched, directory_url: str, value: object
) -> None:
    assert await new(ledger)
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS, "later", ca_words="")
    for kind, subject in (*FIGURES, *HOLDS):
        seen.put(keys.ledger_key(directory_url, kind, subject), value)
    state = await ledger.state()
    assert {use.limit: use.used for use in state.uses if use.used} == {
        Limit.DOMAIN: 1,
        Limit.CLIENT_DOMAIN: 1,
        Limit.CLIENT_ORDERS: 1,
    }
    assert state.holds == ()


async def test_unreadable_value_is_reported_once(
    ledger: Ledger, seen: Watched, directory_url: str
) -> None:
    key = keys.ledger_key(directory_url, str(Reach.ACCOUNT))
    seen.put(key, "no hold of ours")
    with capture_logs() as logged:
        for _ in range(3):
            assert await new(ledger)
    warnings = [each for each in logged if each["log_level"] == "warning"]
    assert [each["key"] for each in warnings] == [key]
    assert "no hold of ours" not in json.dumps(logged)


@pytest.mark.parametrize("value", [None, "a string"])
async def test_index_of_another_type_is_replaced(
    ledger: Ledger, seen: Watched, directory_url: str, value: object
) -> None:
    seen.put(keys.ledger_index_key(directory_url), value)
    assert [use.limit for use in (await ledger.state()).uses] == [Limit.ORDERS]
    assert await new(ledger)
    assert {use.limit: use.used for use in (await ledger.state()).uses}[Limit.HOSTNAME] == 1


async def test_strangers_in_the_index_are_passed_over(
    ledger: Ledger, store: Store, directory_url: str
) -> None:
    index = keys.ledger_index_key(directory_url)
    assert await new(ledger)
    before = await ledger.state()
    for member in ("stranger", keys.ledger_key(directory_url, "a-newer-figure", "x")):
        await store.commit(
            f"{index}-document", index, expected_version="*", member=member, score=str(2 * NOW_MS)
        )
    assert await ledger.state() == before


async def test_words_that_cannot_be_shown_are_made_so(
    ledger: Ledger, seen: Watched, directory_url: str
) -> None:
    told = {"untilMs": NOW_MS + HOUR_MS, "detail": "red \x1b[31m \udc80", "hostname": HOSTNAME}
    seen.put(keys.ledger_key(directory_url, str(Reach.ACCOUNT)), json.dumps(told))
    answer = await held(ledger)
    assert answer.by is HeldBy.AUTHORITY
    assert answer.detail.endswith(": red ?[31m ?")


async def test_figure_that_is_full_again_is_gone_at_once(
    ledger: Ledger, seen: Watched, directory_url: str
) -> None:
    before = seen.keys()
    assert await new(ledger)
    await ledger.give_back(HOSTNAME, BLUE, renewal=Renewal.NEW)
    left = {keys.in_ledger_key(key)[0] for key in seen.keys() - before}
    assert left == {"orders", "orders-of", "ledger"}
    assert await new(ledger)


async def test_giving_back_while_others_spend_breaks_nothing(
    store: Store, ledger_on: Callable[..., Ledger], clock: Clock
) -> None:
    ledger = ledger_on(store, Budget(0, 50, 5, 0))
    for number in range(100):
        mine, other = (Hostname(f"{name}.d{number}.example") for name in "ab")
        assert await new(ledger, mine)
        clock.now_ms += 1
        _, answer = await asyncio.gather(
            ledger.give_back(mine, BLUE, renewal=Renewal.NEW),
            ledger.spend(other, BLUE, renewal=Renewal.NEW),
        )
        assert isinstance(answer, Granted)
