"""When a fault gets a line in the log."""

from gateway.agent.clocks import HOUR_MS, MINUTE_MS
from gateway.agent.telling import Telling, Word

NOW = 1_795_000_000_000


def test_fault_is_said_when_it_begins() -> None:
    told, word = Telling().note("away", NOW, 0)
    assert (word, told.since_ms) == (Word.BEGUN, NOW)


def test_same_fault_is_said_hourly() -> None:
    told, _ = Telling().note("away", NOW, 0)
    words = []
    for minute in range(1, 24 * 60):
        told, word = told.note("away", NOW + minute * MINUTE_MS, minute * MINUTE_MS)
        words.append(word)
    assert [each for each in words if each is not None] == [Word.STILL] * 23


def test_fault_keeps_its_beginning_while_it_lasts() -> None:
    told, _ = Telling().note("away", NOW, 0)
    told, _ = told.note("away otherwise", NOW + HOUR_MS, HOUR_MS)
    assert told.since_ms == NOW


def test_other_fault_is_said_after_a_minute() -> None:
    told, _ = Telling().note("away", NOW, 0)
    told, word = told.note("forbidden", NOW, MINUTE_MS - 1)
    assert word is None
    assert told.note("forbidden", NOW, MINUTE_MS)[1] is Word.STILL


def test_end_of_a_fault_is_said_once() -> None:
    told, _ = Telling().note("away", NOW, 0)
    told, word = told.note(None, NOW, 1)
    assert word is Word.OVER
    assert told.note(None, NOW, 2)[1] is None


def test_nothing_is_said_while_all_is_well() -> None:
    assert Telling().note(None, NOW, 0) == (Telling(), None)


def test_clock_set_back_silences_nothing() -> None:
    told, _ = Telling().note("away", NOW, 0)
    assert told.note("away", NOW - 24 * HOUR_MS, HOUR_MS)[1] is Word.STILL
