"""The page's pictures as numbers: rectangles, lines and labels that a template draws as SVG. Pure.

Responsible for the geometry, for what each picture says in words, and for the same figures as a
table: whoever sees no picture misses nothing, and no colour alone carries a meaning (each kind has
a pattern or a shape of its own in the style sheet).
Must not: know HTML, colours, or where figures come from. Called by the pages that show them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDE: Final = 860
NARROW: Final = 340
"""Widths in units that are about a pixel, on a desktop and on a phone: what is written in a picture
stays legible, since neither is scaled by much."""

_HEIGHT: Final = 170
_LEFT: Final = 44
_RIGHT: Final = 6
_TOP: Final = 12
_BOTTOM: Final = 22
_GAP_SHARE: Final = 0.2
_LABEL_UNITS: Final = 64
"""Room for the name of a day below the bars."""

_LEAST_UNITS: Final = 1.5
"""What is there is seen, be it one of ten thousand."""

_STEPS: Final = (1, 2, 4, 6, 8)
_NEAR_PERCENT: Final = 80

BAR_WIDTH: Final = 600
_BAR_TOP: Final = 8
_BAR_THICKNESS: Final = 12


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. `kind` names how it is drawn, `words` what it stands for."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a place; `anchor` is `start`, `middle` or `end`, as SVG has it."""

    x: float
    y: float
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Table:
    """The figures of a picture: the names of the columns, and rows of as many cells each."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: `title` names it, `summary` says in a sentence what is seen on it.

    `lines` are the heights of its horizontal lines, `kinds` the kinds of boxes with their names.
    """

    width: int
    height: int
    title: str
    summary: str
    boxes: tuple[Box, ...]
    labels: tuple[Label, ...] = ()
    lines: tuple[float, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()

    @property
    def left(self) -> int:
        """Where its horizontal lines begin."""
        return _LEFT

    @property
    def right(self) -> int:
        """Where they end."""
        return self.width - _RIGHT


@dataclass(frozen=True, slots=True)
class Chart:
    """The same figures as a picture for a wide screen, one for a narrow one, and a table."""

    wide: Picture
    narrow: Picture
    table: Table


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment on a validity bar, in the bar's units; `kind` names its shape."""

    x: float
    kind: str


@dataclass(frozen=True, slots=True)
class ValidityBar:
    """How much of a certificate's lifetime has passed."""

    words: str
    boxes: tuple[Box, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Meter:
    """How much of a figure is used. `share` is in percent; `level` is `room`, `near` or `full`."""

    share: int
    level: str
    words: str


class DayOfIssuances(NamedTuple):
    """What came of issuances on one day (UTC)."""

    day: date
    issued: int
    renewed: int
    failed: int


class _Bar(NamedTuple):
    """The days from `first` to `last`, and how many of each kind they had together."""

    first: date
    last: date
    counts: dict[str, int]

    @property
    def words(self) -> str:
        """Its days."""
        first, last = self.first.isoformat(), self.last.isoformat()
        return first if first == last else f"{first} to {last}"


_ISSUANCE_KINDS: Final = (
    ("issued", "first certificates"),
    ("renewed", "renewals"),
    ("failed", "failures"),
)
_END_KINDS: Final = (("ends", "certificates"),)


def expiries(ends: Sequence[int], first_day: date) -> Chart:
    """How many certificates end on each day, from `first_day` (UTC) on."""
    title = f"Certificates by the day on which they end, over {len(ends)} days"
    summary = _ends_words(ends, first_day)
    bars = [_one_day(first_day + timedelta(days=at), ends=ends[at]) for at in range(len(ends))]
    rows = tuple((bar.words, f"{bar.counts['ends']:,}") for bar in bars if bar.counts["ends"])
    return Chart(
        _columns(WIDE, title, summary, bars, _END_KINDS),
        _columns(NARROW, title, summary, _by_threes(bars), _END_KINDS),
        Table(("Day (UTC)", "Certificates that end"), rows),
    )


def issuances(days: Sequence[DayOfIssuances]) -> Chart:
    """What came of issuances on each day, oldest first."""
    title = f"Certificates issued over {len(days)} days"
    summary = (
        f"First certificates: {sum(each.issued for each in days):,};"
        f" renewals: {sum(each.renewed for each in days):,};"
        f" failures: {sum(each.failed for each in days):,}."
    )
    bars = [
        _one_day(each.day, issued=each.issued, renewed=each.renewed, failed=each.failed)
        for each in days
    ]
    rows = tuple(
        (bar.words, *(f"{bar.counts[kind]:,}" for kind, _ in _ISSUANCE_KINDS)) for bar in bars
    )
    return Chart(
        _columns(WIDE, title, summary, bars, _ISSUANCE_KINDS),
        _columns(NARROW, title, summary, bars, _ISSUANCE_KINDS),
        Table(("Day (UTC)", "First", "Renewals", "Failures"), rows),
    )


def validity(
    from_ms: int,
    until_ms: int,
    now_ms: int,
    *,
    renew_at_ms: int | None = None,
    window_ms: tuple[int, int] | None = None,
) -> ValidityBar:
    """A certificate's lifetime as a bar, with now, its renewal and its CA's window on it."""

    def place(at_ms: int) -> float:
        share = (at_ms - from_ms) / max(1, until_ms - from_ms)
        return _rounded(BAR_WIDTH * min(1.0, max(0.0, share)))

    passed = round(100 * place(now_ms) / BAR_WIDTH)
    is_over = now_ms >= until_ms
    boxes = [
        Box(0, _BAR_TOP, BAR_WIDTH, _BAR_THICKNESS, "lifetime"),
        Box(0, _BAR_TOP, place(now_ms), _BAR_THICKNESS, "expired" if is_over else "passed"),
    ]
    marks = [Mark(place(now_ms), "now")]
    words = "expired" if is_over else f"{passed} % of its lifetime has passed"
    if window_ms is not None:
        start, end = place(window_ms[0]), place(window_ms[1])
        width = max(_LEAST_UNITS, end - start)
        start = min(start, BAR_WIDTH - width)
        boxes.append(Box(start, _BAR_TOP + _BAR_THICKNESS + 2, width, 4, "window"))
    if renew_at_ms is not None:
        marks.append(Mark(place(renew_at_ms), "renewal"))
        share = round(100 * place(renew_at_ms) / BAR_WIDTH)
        words += f"; its renewal is due at {share} %" if not is_over else ""
    return ValidityBar(words, tuple(boxes), tuple(marks))


def meter(used: int, of: int, what: str) -> Meter:
    """How much of a figure is used and how much free: `what` is counted, in the plural."""
    share = 100 if used >= of else min(99, 100 * used // of)
    level = "full" if used >= of else "near" if share >= _NEAR_PERCENT else "room"
    return Meter(max(0, share), level, f"{max(0, of - used):,} of {of:,} {what} are free")


def day_of(at_ms: int) -> date:
    """The day (UTC) of a moment in epoch milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def _ends_words(ends: Sequence[int], first_day: date) -> str:
    total = sum(ends)
    if not total:
        return "None ends in this time."
    most = max(range(len(ends)), key=lambda at: ends[at])
    day = (first_day + timedelta(days=most)).isoformat()
    return f"{total:,} in all; most of them on {day}: {ends[most]:,}."


def _one_day(day: date, **counts: int) -> _Bar:
    return _Bar(day, day, counts)


def _by_threes(bars: list[_Bar]) -> list[_Bar]:
    """Three days in one: on a phone a bar of each would be a hair."""
    threes = [bars[at : at + 3] for at in range(0, len(bars), 3)]
    return [
        _Bar(each[0].first, each[-1].last, {"ends": sum(bar.counts["ends"] for bar in each)})
        for each in threes
    ]


def _columns(
    width: int, title: str, summary: str, bars: list[_Bar], kinds: tuple[tuple[str, str], ...]
) -> Picture:
    """The bars side by side, the kinds of each on top of each other in the order of `kinds`."""
    top = _ceiling(max((sum(bar.counts.values()) for bar in bars), default=0))
    bottom = _HEIGHT - _BOTTOM
    unit = (bottom - _TOP) / top
    pitch = (width - _LEFT - _RIGHT) / max(1, len(bars))
    boxes = []
    for at, bar in enumerate(bars):
        x, y = _LEFT + at * pitch + pitch * _GAP_SHARE / 2, float(bottom)
        for kind, name in kinds:
            count = bar.counts[kind]
            if not count:
                continue
            height = max(_LEAST_UNITS, count * unit)
            y -= height
            size = (_rounded(pitch * (1 - _GAP_SHARE)), _rounded(height))
            boxes.append(
                Box(_rounded(x), _rounded(y), *size, kind, f"{bar.words}, {name}: {count:,}")
            )
    heights = [(value, _rounded(bottom - value * unit)) for value in _ticks(top)]
    labels = [Label(_LEFT - 6, height + 4, f"{value:,}", "end") for value, height in heights]
    labels += _day_labels(bars, pitch)
    lines = tuple(height for _, height in heights)
    return Picture(width, _HEIGHT, title, summary, tuple(boxes), tuple(labels), lines, kinds)


def _day_labels(bars: list[_Bar], pitch: float) -> list[Label]:
    """The first day of every so many bars, as far apart as their names need."""
    every = max(1, math.ceil(_LABEL_UNITS / pitch))
    fitting = [at for at in range(0, len(bars), every) if (len(bars) - at) * pitch >= _LABEL_UNITS]
    return [
        Label(_rounded(_LEFT + at * pitch), _HEIGHT - 6, _short(bars[at].first), "start")
        for at in fitting
    ]


def _ticks(top: int) -> tuple[int, ...]:
    return (0, top // 2, top) if top % 2 == 0 else (0, top)


def _ceiling(most: int) -> int:
    """The least of 1, 2, 4, 6, 8, 10, 20 … that is not below a number."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power >= most:
                return step * power
        power *= 10


def _rounded(number: float) -> float:
    return round(number, 2)


def _short(day: date) -> str:
    return f"{day.day} {day:%b}"
