"""The page's pictures: what stands where, and that words and table tell the same figures."""

from datetime import UTC, date, datetime
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from gateway.http.page import charts
from gateway.http.page.charts import DayOfIssuances

DAY = date(2026, 11, 30)
counts = st.lists(st.integers(0, 10**7), min_size=1, max_size=91)
days = st.lists(
    st.builds(
        DayOfIssuances,
        st.just(DAY),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=14,
)


def _assert_within(picture: charts.Picture) -> None:
    least = 3 * 1.5  # what is too small to be seen is drawn higher than it is
    for box in picture.boxes:
        assert box.x >= picture.left
        assert box.x + box.width <= picture.right
        assert box.width > 0
        assert box.height > 0
        assert box.y >= 12 - least
        assert box.y + box.height <= picture.height - 22 + 0.02
    for label in picture.labels:
        assert 0 <= label.x <= picture.width
        assert 0 < label.y <= picture.height


@given(counts)
def test_bars_of_ends_lie_within_their_picture(ends: list[int]) -> None:
    chart = charts.expiries(ends, DAY)
    _assert_within(chart.wide)
    _assert_within(chart.narrow)


@given(days)
def test_bars_of_issuances_lie_within_their_picture(of_days: list[DayOfIssuances]) -> None:
    chart = charts.issuances(of_days)
    _assert_within(chart.wide)
    _assert_within(chart.narrow)


@given(counts)
def test_the_table_has_every_day_on_which_one_ends(ends: list[int]) -> None:
    table = charts.expiries(ends, DAY).table
    assert sum(int(count.replace(",", "")) for _, count in table.rows) == sum(ends)
    assert len(table.rows) == sum(1 for count in ends if count)
    assert all(len(row) == len(table.heads) for row in table.rows)


def test_a_day_has_a_bar_with_its_date_and_count() -> None:
    ends = [0] * 91
    ends[2] = 1500
    chart = charts.expiries(ends, DAY)
    assert [box.words for box in chart.wide.boxes] == ["2026-12-02, certificates: 1,500"]
    assert chart.table.rows == (("2026-12-02", "1,500"),)
    assert chart.wide.summary == "1,500 in all; most of them on 2026-12-02: 1,500."


def test_three_days_are_one_bar_on_a_phone_and_the_last_may_be_one_day() -> None:
    narrow = charts.expiries([1] * 91, DAY).narrow
    assert [box.words for box in narrow.boxes[:2]] == [
        "2026-11-30 to 2026-12-02, certificates: 3",
        "2026-12-03 to 2026-12-05, certificates: 3",
    ]
    assert narrow.boxes[-1].words == "2027-02-28, certificates: 1"
    assert len(narrow.boxes) == 31


def test_nothing_ends_and_the_picture_says_so() -> None:
    chart = charts.expiries([0] * 91, DAY)
    assert chart.wide.boxes == ()
    assert chart.wide.summary == "None ends in this time."
    assert chart.table.rows == ()


def test_one_of_ten_thousand_is_seen() -> None:
    few, many = charts.expiries([1, 10_000], DAY).wide.boxes
    assert few.height == 1.5
    assert many.height > 100


@pytest.mark.parametrize(
    ("most", "ticks"),
    [(1, "0 1"), (2, "0 1 2"), (3, "0 2 4"), (5, "0 3 6"), (9, "0 5 10"), (11, "0 10 20")],
)
def test_the_scale_ends_at_a_round_number(most: int, ticks: str) -> None:
    picture = charts.expiries([most], DAY).wide
    assert [label.text for label in picture.labels if label.anchor == "end"] == ticks.split()
    assert len(picture.lines) == len(ticks.split())


def test_names_of_days_do_not_overlap() -> None:
    for picture in (charts.expiries([1] * 91, DAY).wide, charts.expiries([1] * 91, DAY).narrow):
        places = [label.x for label in picture.labels if label.anchor == "start"]
        assert len(places) >= 3
        assert all(after - before >= 63 for before, after in pairwise(places))
        assert places[-1] + 63 <= picture.width


def test_kinds_of_a_day_stand_on_each_other() -> None:
    chart = charts.issuances([DayOfIssuances(DAY, 2, 3, 1)])
    issued, renewed, failed = chart.wide.boxes
    assert [box.kind for box in chart.wide.boxes] == ["issued", "renewed", "failed"]
    assert issued.y == pytest.approx(renewed.y + renewed.height, abs=0.02)
    assert renewed.y == pytest.approx(failed.y + failed.height, abs=0.02)
    assert renewed.height == pytest.approx(issued.height * 1.5, abs=0.02)
    assert failed.words == "2026-11-30, failures: 1"


def test_issuances_tell_each_day_in_the_table_quiet_ones_too() -> None:
    chart = charts.issuances([DayOfIssuances(DAY, 0, 0, 0), DayOfIssuances(DAY, 1, 2000, 3)])
    assert chart.table.rows == (
        ("2026-11-30", "0", "0", "0"),
        ("2026-11-30", "1", "2,000", "3"),
    )
    assert chart.wide.summary == "First certificates: 1; renewals: 2,000; failures: 3."


def test_a_bar_shows_how_much_of_a_lifetime_has_passed() -> None:
    bar = charts.validity(1000, 2000, 1250, renew_at_ms=1600, window_ms=(1500, 1700))
    assert bar.words == "25 % of its lifetime has passed; its renewal is due at 60 %"
    assert [(mark.x, mark.kind) for mark in bar.marks] == [(150, "now"), (360, "renewal")]
    window = bar.boxes[-1]
    assert (window.x, window.width, window.kind) == (300, 120, "window")


def test_an_expired_certificate_says_so() -> None:
    bar = charts.validity(1000, 2000, 2000, renew_at_ms=1600)
    assert bar.words == "expired"
    assert bar.boxes[-1].kind == "expired"


@given(*[st.integers(0, 2**53)] * 6)
def test_a_bar_holds_whatever_times_are_stored(a: int, b: int, c: int, d: int, e: int, f: int):
    bar = charts.validity(a, b, c, renew_at_ms=d, window_ms=(e, f))
    assert all(0 <= mark.x <= charts.BAR_WIDTH for mark in bar.marks)
    assert all(0 <= box.x <= box.x + box.width <= charts.BAR_WIDTH + 0.01 for box in bar.boxes)


@pytest.mark.parametrize(
    ("used", "of", "share", "level"),
    [
        *[(0, 300, 0, "room"), (1, 300, 0, "room"), (240, 300, 80, "near")],
        *[(299, 300, 99, "near"), (300, 300, 100, "full"), (301, 300, 100, "full")],
        (0, 0, 100, "full"),
    ],
)
def test_a_meter_is_full_only_when_nothing_is_left(
    used: int, of: int, share: int, level: str
) -> None:
    meter = charts.meter(used, of, "new orders in 3 hours")
    assert (meter.share, meter.level) == (share, level)
    assert meter.words == f"{max(0, of - used)} of {of} new orders in 3 hours are free"


def test_a_day_is_that_of_utc() -> None:
    midnight_ms = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp() * 1000)
    assert charts.day_of(midnight_ms) == date(2026, 12, 1)
    assert charts.day_of(midnight_ms - 1) == DAY
