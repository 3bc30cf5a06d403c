"""Floods: who is shut out, for how long, and whom a known token lets pass."""

import secrets

import pytest

from gateway.access.tokens import digest_of
from gateway.contract import RequestEnvelope
from gateway.http import flood
from gateway.http.entrance import digest_shown
from gateway.http.flood import FloodGate, FloodLimits

SECOND_US = 1_000_000
TOKEN = f"gwc_{'a' * 36}_{'s' * 43}"


class Clock:
    def __init__(self) -> None:
        self.now_us = 10**12

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


def gate_of(clock: Clock, per_minute: int, per_second: int = 0) -> FloodGate:
    return FloodGate(FloodLimits(per_minute, per_second), clock)


def body_with(token: object) -> bytes:
    return b'{"method": "m", "request": {"apiToken": "%s"}}' % str(token).encode()


def test_address_is_shut_out_after_its_refusals_and_only_it(clock: Clock) -> None:
    gate = gate_of(clock, 3)
    for _ in range(3):
        assert gate.wait_ms("192.0.2.1") == 0
        gate.refused("192.0.2.1")
    assert gate.wait_ms("192.0.2.1") == 20_000
    assert gate.wait_ms("192.0.2.2") == 0


def test_address_is_looked_at_again_after_the_wait_that_was_told(clock: Clock) -> None:
    gate = gate_of(clock, 3)
    for _ in range(10):
        gate.refused("192.0.2.1")
    clock.now_us += gate.wait_ms("192.0.2.1") * 1_000
    assert gate.wait_ms("192.0.2.1") == 0
    gate.refused("192.0.2.1")
    assert gate.wait_ms("192.0.2.1") > 0


def test_flood_from_many_addresses_leaves_half_of_a_second_to_new_ones(clock: Clock) -> None:
    gate = gate_of(clock, 60, per_second=10)
    for number in range(5):
        gate.refused(f"192.0.2.{number}")
    assert gate.wait_ms("192.0.2.0") > 0
    assert gate.wait_ms("198.51.100.1") == 0
    for number in range(5):
        gate.refused(f"198.51.100.{number}")
    assert gate.wait_ms("203.0.113.1") > 0
    clock.now_us += SECOND_US
    assert gate.wait_ms("203.0.113.1") == gate.wait_ms("192.0.2.0") == 0


def test_without_limits_nobody_is_shut_out(clock: Clock) -> None:
    gate = gate_of(clock, 0)
    for _ in range(10_000):
        gate.refused("192.0.2.1")
    assert gate.wait_ms("192.0.2.1") == 0


def test_other_limits_take_effect_with_what_was_counted(clock: Clock) -> None:
    gate = gate_of(clock, 60)
    for _ in range(3):
        gate.refused("192.0.2.1")
    assert gate.wait_ms("192.0.2.1") == 0
    gate.use(FloodLimits(1, 0))
    assert gate.wait_ms("192.0.2.1") > 0


def test_token_that_was_right_is_known_wherever_it_stands_until_it_is_refused(
    clock: Clock,
) -> None:
    gate = gate_of(clock, 1)
    assert gate.voucher_in(body_with(TOKEN)) is None
    gate.remember(digest_of(TOKEN))
    assert gate.is_known(digest_of(TOKEN))
    assert gate.voucher_in(body_with(TOKEN)) == digest_of(TOKEN)
    assert gate.voucher_in(b"[" + TOKEN.encode()) == digest_of(TOKEN)
    assert gate.voucher_in(body_with(TOKEN[:-1] + "t")) is None
    gate.forget(digest_of(TOKEN))
    assert gate.voucher_in(body_with(TOKEN)) is None


def test_refusals_of_what_a_token_let_in_are_its_own_and_too_many_end_that(clock: Clock) -> None:
    gate = gate_of(clock, 3, per_second=10)
    gate.remember(digest_of(TOKEN))
    for _ in range(3):
        assert gate.voucher_in(body_with(TOKEN)) == digest_of(TOKEN)
        gate.charge(digest_of(TOKEN))
    assert gate.voucher_in(body_with(TOKEN)) is None
    assert not gate.is_known(digest_of(TOKEN))
    assert gate.wait_ms("192.0.2.1") == 0
    clock.now_us += 60 * SECOND_US
    assert not gate.is_known(digest_of(TOKEN))
    gate.remember(digest_of(TOKEN))
    assert gate.is_known(digest_of(TOKEN))


def test_right_call_does_not_make_good_what_a_token_let_in(clock: Clock) -> None:
    gate = gate_of(clock, 0)
    gate.remember(digest_of(TOKEN))
    for _ in range(flood.PER_MINUTE_OF_TOKEN):
        assert gate.is_known(digest_of(TOKEN))
        gate.charge(digest_of(TOKEN))
    gate.remember(digest_of(TOKEN))
    assert not gate.is_known(digest_of(TOKEN))


def test_address_that_is_shut_out_uses_up_nothing_of_the_others(clock: Clock) -> None:
    gate = gate_of(clock, 60, per_second=10)
    for _ in range(100):
        gate.refused("192.0.2.1")
    assert gate.wait_ms("192.0.2.1") > 0
    assert gate.wait_ms("198.51.100.1") == 0


def test_token_is_known_for_a_bounded_time(clock: Clock) -> None:
    gate = gate_of(clock, 1)
    gate.remember(digest_of(TOKEN))
    clock.now_us += flood.KNOWN_SECONDS * SECOND_US
    assert gate.voucher_in(body_with(TOKEN)) is None


def test_token_that_is_used_stays_known(clock: Clock) -> None:
    gate = gate_of(clock, 1)
    for _ in range(2 * flood.KNOWN_SECONDS // 7):
        gate.remember(digest_of(TOKEN))
        clock.now_us += 7 * SECOND_US
        assert gate.is_known(digest_of(TOKEN))
    clock.now_us += (flood.KNOWN_SECONDS - 70) * SECOND_US
    assert gate.is_known(digest_of(TOKEN))


@pytest.mark.parametrize("token", [None, 7, ["x"], "é", "\ud800", {}, ""])
def test_what_is_no_token_is_taken_and_is_not_known(clock: Clock, token: object) -> None:
    gate = gate_of(clock, 1)
    digest = digest_shown(RequestEnvelope("m", {"apiToken": token}, None))
    gate.remember(digest)
    gate.forget(digest)
    assert gate.voucher_in(body_with(None)) is None
    assert not gate.is_known(digest)


def test_search_for_tokens_in_a_body_ends_after_a_few(clock: Clock) -> None:
    gate = gate_of(clock, 1)
    gate.remember(digest_of(TOKEN))
    others = "".join(f"gwa_{secrets.token_urlsafe(32)} " for _ in range(4))
    assert gate.voucher_in(f"{others}{TOKEN}".encode()) is None


def test_memory_is_bounded_and_keeps_the_last(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flood, "MOST_ADDRESSES", 3)
    monkeypatch.setattr(flood, "MOST_TOKENS", 3)
    gate = gate_of(clock, 1)
    tokens = [f"gwa_{secrets.token_urlsafe(32)}" for _ in range(5)]
    for number, token in enumerate(tokens):
        gate.refused(f"192.0.2.{number}")
        gate.remember(digest_of(token))
    assert [gate.wait_ms(f"192.0.2.{number}") > 0 for number in range(5)] == [False] * 2 + [
        True
    ] * 3
    assert [gate.is_known(digest_of(token)) for token in tokens] == [False] * 2 + [True] * 3
