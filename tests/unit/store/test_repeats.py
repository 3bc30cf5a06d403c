"""Refusals that repeat: told once in a while, counted meanwhile, and in bounded memory."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.store.deeds import Action, Actor, Deed, Role
from gateway.store.trail import MOST_REFUSALS, REPEATED_AFTER_MS, Repeats

ACTOR = Actor(Role.CLIENT, "credential", "cluster-a")
REFUSED = Deed(Action.RECORD_SYNC, "record-conflict", changed=False, hostname="a.example.test")


def test_first_one_is_told_and_the_next_held_back() -> None:
    repeats = Repeats()
    assert repeats.judge(ACTOR, REFUSED, 0) == 0
    assert repeats.judge(ACTOR, REFUSED, 1) is None


def test_one_after_the_pause_tells_how_many_were_held_back() -> None:
    repeats = Repeats()
    for at_ms in range(4):
        repeats.judge(ACTOR, REFUSED, at_ms)
    assert repeats.judge(ACTOR, REFUSED, REPEATED_AFTER_MS) == 3
    assert repeats.judge(ACTOR, REFUSED, REPEATED_AFTER_MS + 1) is None


def test_other_actor_hostname_or_outcome_is_told_by_itself() -> None:
    repeats = Repeats()
    repeats.judge(ACTOR, REFUSED, 0)
    elsewhere = Deed(Action.RECORD_SYNC, "record-conflict", changed=False, hostname="b.example")
    otherwise = Deed(Action.RECORD_SYNC, "target-invalid", changed=False, hostname="a.example.test")
    assert repeats.judge(Actor(Role.CLIENT, "other", "cluster-a"), REFUSED, 1) == 0
    assert repeats.judge(ACTOR, elsewhere, 1) == 0
    assert repeats.judge(ACTOR, otherwise, 1) == 0


def test_clock_that_went_back_holds_nothing_back() -> None:
    repeats = Repeats()
    repeats.judge(ACTOR, REFUSED, 1_000_000)
    assert repeats.judge(ACTOR, REFUSED, 5) == 0


def refusal_of(number: int) -> Deed:
    hostname = f"n{number}.example.test"
    return Deed(Action.RECORD_SYNC, "hostname-forbidden", changed=False, hostname=hostname)


def test_one_actor_cannot_fill_the_trail_with_different_refusals() -> None:
    repeats = Repeats()
    told = [repeats.judge(ACTOR, refusal_of(number), number) for number in range(1_000)]
    assert told == [0] * MOST_REFUSALS + [None] * (1_000 - MOST_REFUSALS)
    other = Actor(Role.CLIENT, "other", "cluster-b")
    assert repeats.judge(other, refusal_of(0), 1_000) == 0
    later = repeats.judge(ACTOR, refusal_of(2_000), REPEATED_AFTER_MS)
    assert later == 1_000 - MOST_REFUSALS


@given(st.lists(st.integers(0, REPEATED_AFTER_MS // 2), min_size=1, max_size=60))
def test_every_try_is_told_or_counted_by_the_next_one_told(pauses: list[int]) -> None:
    repeats, at_ms, told, counted = Repeats(), 0, 0, 0
    for pause in pauses:
        at_ms += pause
        verdict = repeats.judge(ACTOR, REFUSED, at_ms)
        told += verdict is not None
        counted += verdict or 0
    last = repeats.judge(ACTOR, REFUSED, at_ms + REPEATED_AFTER_MS)
    assert last is not None
    assert told + counted + last == len(pauses)
