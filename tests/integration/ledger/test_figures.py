"""The figures and the shares of clients, over a real Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.certificates.budget import HOUR_MS, WEEK_MS, Budget, Limit, Renewal
from gateway.certificates.ledger import (
    CLIENTS_COUNTED_EVERY_MS,
    Granted,
    Held,
    HeldBy,
    Ledger,
)
from gateway.contract.names import Hostname
from tests.integration.ledger.asking import (
    BLUE,
    GREEN,
    HOSTNAME,
    NOW_MS,
    OTHER,
    Clients,
    Clock,
    held,
    new,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.store.connection import Store


async def test_order_that_is_held_is_charged_to_no_figure(ledger: Ledger) -> None:
    for _ in range(5):
        assert await new(ledger)
    await held(ledger)
    used = {use.limit: use.used for use in (await ledger.state()).uses}
    assert used[Limit.ORDERS] == used[Limit.DOMAIN] == used[Limit.HOSTNAME] == 5


async def test_time_named_is_the_first_at_which_an_order_is_granted(
    ledger: Ledger, clock: Clock
) -> None:
    for _ in range(5):
        assert await new(ledger)
    answer = await held(ledger)
    assert answer == Held(
        NOW_MS + WEEK_MS // 5,
        "at ca.example, 5 certificates for relay.a.example.com in 7 days are used up;"
        " the order is placed at the earliest at 2026-12-02T19:36:00Z",
        HeldBy.BUDGET,
    )
    clock.now_ms = answer.until_ms - 1
    await held(ledger)
    clock.now_ms = answer.until_ms
    assert await new(ledger)


async def test_what_was_used_stays_counted_when_a_figure_is_changed(
    store: Store, ledger_on: Callable[..., Ledger]
) -> None:
    small, large = Budget(4, 0, 0, 0), Budget(100, 0, 0, 0)
    for _ in range(4):
        assert await new(ledger_on(store, small))
    await held(ledger_on(store, small))
    (use, *_) = (await ledger_on(store, large).state()).uses
    assert (use.used, use.of) == (4, 100)
    for _ in range(6):
        assert await new(ledger_on(store, large))
    # And the other way: more than there may be now are used.
    (use, *_) = (await ledger_on(store, small).state()).uses
    assert (use.used, use.of) == (4, 4)
    await held(ledger_on(store, small))


async def test_renewal_that_is_due_is_granted_when_all_is_used_up(ledger: Ledger) -> None:
    for _ in range(5):
        assert await new(ledger)
    await held(ledger, renewal=Renewal.EARLY)
    answer = await ledger.spend(HOSTNAME, BLUE, renewal=Renewal.DUE)
    assert isinstance(answer, Granted)


async def test_certificate_that_did_not_come_is_given_back(
    store: Store, ledger_on: Callable[..., Ledger]
) -> None:
    ledger = ledger_on(store, Budget(10, 10, 1, 0))
    assert await new(ledger)
    await held(ledger)
    await ledger.give_back(HOSTNAME, BLUE, renewal=Renewal.NEW)
    used = {use.limit: use.used for use in (await ledger.state()).uses}
    assert used == {Limit.ORDERS: 1, Limit.CLIENT_ORDERS: 1}
    assert await new(ledger)


async def test_giving_back_what_was_not_taken_changes_nothing(ledger: Ledger) -> None:
    await ledger.give_back(HOSTNAME, BLUE, renewal=Renewal.NEW)
    for _ in range(5):
        assert await new(ledger)
    await held(ledger)


async def test_failed_validations_hold_their_hostname_alone(ledger: Ledger, clock: Clock) -> None:
    for _ in range(5):
        assert await new(ledger, OTHER)
        await ledger.record_failed_validation(HOSTNAME)
    answer = await held(ledger, renewal=Renewal.DUE)
    assert answer.until_ms == NOW_MS + HOUR_MS // 5
    assert "relay.a.example.com failed 5 validations in an hour" in answer.detail
    assert await new(ledger, Hostname("relay.c.example.com"))
    clock.now_ms = answer.until_ms
    assert await new(ledger)


async def test_ledger_without_limits_grants_everything_and_keeps_nothing(
    store: Store, ledger_on: Callable[..., Ledger]
) -> None:
    ledger = ledger_on(store, Budget(0, 0, 0, 0))
    await ledger.record_failed_validation(HOSTNAME)
    for _ in range(10):
        assert await new(ledger)
    await ledger.give_back(HOSTNAME, BLUE, renewal=Renewal.NEW)
    state = await ledger.state()
    assert (state.uses, state.holds) == ((), ())


async def test_one_client_leaves_the_other_its_share(
    store: Store, ledger_on: Callable[..., Ledger], clients: Clients
) -> None:
    clients.count = 2
    ledger = ledger_on(store, Budget(0, 4, 0, 0))
    names = [Hostname(f"n{each}.example.com") for each in range(4)]
    assert [await new(ledger, name, BLUE) for name in names] == [True, True, False, False]
    assert [await new(ledger, name, GREEN) for name in names] == [True, True, False, False]
    detail = (await held(ledger)).detail
    assert "green" not in detail


async def test_clients_are_counted_again_after_a_while(
    store: Store, ledger_on: Callable[..., Ledger], clients: Clients, clock: Clock
) -> None:
    ledger = ledger_on(store, Budget(0, 4, 0, 0))
    for _ in range(3):
        assert await new(ledger)
    assert clients.asked == 1
    clients.count = 2
    clock.now_ms += CLIENTS_COUNTED_EVERY_MS
    assert "this client's share" in (await held(ledger)).detail
    assert clients.asked == 2


async def test_renewals_do_not_count_the_clients(ledger: Ledger, clients: Clients) -> None:
    await ledger.spend(HOSTNAME, BLUE, renewal=Renewal.DUE)
    assert clients.asked == 0
