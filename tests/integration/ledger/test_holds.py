"""What a CA said about coming back holds for every process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.certificates.budget import HOUR_MS, WEEK_MS, Budget, Renewal
from gateway.certificates.ledger import (
    LONGEST_HOLD_MS,
    LONGEST_SUSPENSION_MS,
    Granted,
    Held,
    HeldBy,
    Ledger,
)
from gateway.contract.names import Hostname
from tests.integration.ledger.asking import (
    BLUE,
    HOSTNAME,
    NOW_MS,
    OTHER,
    Clock,
    held,
    new,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.store.connection import Store


@pytest.mark.parametrize("renewal", Renewal)
async def test_hold_of_the_account_is_seen_by_another_process(
    ledger: Ledger, store_elsewhere: Store, ledger_on: Callable[..., Ledger], renewal: Renewal
) -> None:
    until_ms = NOW_MS + HOUR_MS
    await ledger.hold(HOSTNAME, until_ms, "too many new orders", ca_words="too many new orders")
    others = ledger_on(store_elsewhere)
    assert await held(others, HOSTNAME, renewal) == Held(
        until_ms,
        "ca.example takes no orders from this account before 2026-12-01T11:00:00Z"
        ": too many new orders",
        HeldBy.AUTHORITY,
    )
    # Whose order was refused, and with what words, is nobody else's business.
    assert (await held(others, OTHER, renewal)).detail == (
        "ca.example takes no orders from this account before 2026-12-01T11:00:00Z"
    )


async def test_hold_of_a_domain_spares_other_domains(ledger: Ledger) -> None:
    words = 'too many certificates (50) already issued for "example.com"'
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS, words, ca_words=words)
    assert "for example.com before" in (await held(ledger, OTHER)).detail
    assert await new(ledger, Hostname("relay.example.org"))


async def test_hold_of_a_hostname_spares_its_neighbours(ledger: Ledger) -> None:
    words = "too many certificates (5) already issued for this exact set of identifiers"
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS, words, ca_words=words)
    assert words in (await held(ledger)).detail
    assert await new(ledger, OTHER)


async def test_longer_hold_stays_when_a_shorter_one_follows(ledger: Ledger) -> None:
    for hours in (2, 1):
        await ledger.hold(HOSTNAME, NOW_MS + hours * HOUR_MS, "later", ca_words="")
    assert (await held(ledger)).until_ms == NOW_MS + 2 * HOUR_MS


async def test_hold_ends_at_its_time(ledger: Ledger, clock: Clock) -> None:
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS, "later", ca_words="")
    clock.now_ms = NOW_MS + HOUR_MS
    assert await new(ledger)


async def test_hold_is_never_for_ever(ledger: Ledger) -> None:
    await ledger.hold(HOSTNAME, NOW_MS + 1_000 * WEEK_MS, "later", ca_words="")
    assert (await held(ledger)).until_ms == NOW_MS + LONGEST_HOLD_MS


async def test_last_of_several_holds_is_the_one_named(
    store: Store, ledger_on: Callable[..., Ledger]
) -> None:
    ledger = ledger_on(store, Budget(6, 0, 0, 0))
    for _ in range(6):
        assert await new(ledger)
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS // 4, "later", ca_words="")
    assert (await held(ledger)).by is HeldBy.BUDGET
    await ledger.suspend(NOW_MS + HOUR_MS, "the connection was refused")
    assert (await held(ledger)).by is HeldBy.SUSPENDED


async def test_suspended_authority_is_skipped_whatever_the_order_is_for(ledger: Ledger) -> None:
    until_ms = NOW_MS + HOUR_MS
    await ledger.suspend(until_ms, "the connection was refused")
    assert await held(ledger, renewal=Renewal.DUE) == Held(
        until_ms,
        "ca.example is left alone until 2026-12-01T11:00:00Z",
        HeldBy.SUSPENDED,
    )


async def test_words_about_anothers_order_are_for_the_operator_alone(ledger: Ledger) -> None:
    words = f"serverInternal: cannot finalize the order for {OTHER}"
    await ledger.suspend(NOW_MS + HOUR_MS // 2, words)
    await ledger.hold(OTHER, NOW_MS + HOUR_MS, words, ca_words="")
    answers = [await held(ledger, HOSTNAME), await ledger.holds_on(HOSTNAME)]
    assert all(answer is not None and OTHER not in answer.detail for answer in answers)
    assert {hold.detail for hold in (await ledger.state()).holds} == {words}


async def test_suspension_is_for_an_hour_at_most(ledger: Ledger) -> None:
    await ledger.suspend(NOW_MS + 31 * 24 * HOUR_MS, "503 with a far-off Retry-After")
    assert (await held(ledger)).until_ms == NOW_MS + LONGEST_SUSPENSION_MS == NOW_MS + HOUR_MS


EVERYBODY = (HOSTNAME, OTHER, Hostname("example.com"), Hostname("relay.example.org"))


@pytest.mark.parametrize("words", ["", "slow down", "too many new orders (300) from this account"])
@pytest.mark.parametrize("renewal", Renewal)
async def test_hold_that_names_nobody_holds_every_hostname_until_its_time(
    ledger: Ledger,
    store_elsewhere: Store,
    ledger_on: Callable[..., Ledger],
    clock: Clock,
    words: str,
    renewal: Renewal,
) -> None:
    until_ms = NOW_MS + 30 * 24 * HOUR_MS
    await ledger.hold(HOSTNAME, until_ms, words, ca_words=words)
    narrower = f"too many failed authorizations (5) for {HOSTNAME}"
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS, narrower, ca_words=narrower)
    others = ledger_on(store_elsewhere)
    for now_ms in (NOW_MS, NOW_MS + HOUR_MS, until_ms - 1):
        clock.now_ms = now_ms
        for hostname in EVERYBODY:
            answers = [await held(others, hostname, renewal), await others.holds_on(hostname)]
            assert {(each.until_ms, each.by) for each in answers if each is not None} == {
                (until_ms, HeldBy.AUTHORITY)
            }
    clock.now_ms = until_ms
    for hostname in EVERYBODY:
        assert await others.holds_on(hostname) is None
        assert isinstance(await others.spend(hostname, BLUE, renewal=renewal), Granted)


async def test_holds_on_a_hostname_leave_the_figures_out(
    store: Store, ledger_on: Callable[..., Ledger]
) -> None:
    ledger = ledger_on(store, Budget(1, 0, 0, 0))
    assert await ledger.holds_on(HOSTNAME) is None
    assert await new(ledger)  # asking has charged nothing
    await held(ledger)
    assert await ledger.holds_on(HOSTNAME) is None


async def test_holds_on_a_hostname_are_those_that_concern_it(ledger: Ledger) -> None:
    words = "too many certificates (5) already issued for this exact set of identifiers"
    await ledger.hold(HOSTNAME, NOW_MS + 2 * HOUR_MS, words, ca_words=words)
    assert await ledger.holds_on(OTHER) is None
    await ledger.suspend(NOW_MS + HOUR_MS, "gone")
    assert (await ledger.holds_on(OTHER)) == Held(
        NOW_MS + HOUR_MS, "ca.example is left alone until 2026-12-01T11:00:00Z", HeldBy.SUSPENDED
    )
    own = await ledger.holds_on(HOSTNAME)
    assert own is not None
    assert (own.until_ms, own.by) == (NOW_MS + 2 * HOUR_MS, HeldBy.AUTHORITY)
    assert words in own.detail
