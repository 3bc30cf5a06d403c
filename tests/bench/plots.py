"""Draws a curve of a report as SVG, by hand: few points, so few bytes. Pure.

Along is a logarithmic scale, since sizes grow by tens, unless a curve `is_linear`; upwards is a
linear one from nothing, so that what is flat looks flat. Called by `__main__`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 200, 40, 50
_STEPS = 5
_LEGEND_STEP = 20
_MOST_DOTS, _MOST_LABELS = 20, 8
# Okabe and Ito's: told apart by those who see few colours, too.
_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f"),
)


def draw(curve: Mapping[str, Any]) -> str:
    """One SVG document of a curve: `title`, `along`, `places`, `unit` and its `lines` by name."""
    places: Sequence[float] = curve["places"]
    lines: Mapping[str, Sequence[float]] = curve["lines"]
    shares = _shares(places if curve.get("is_linear") else [*map(math.log10, places)])
    columns = [_LEFT + share * (_WIDTH - _RIGHT - _LEFT) for share in shares]
    top = _round_up(max(max(values) for values in lines.values()))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        _text(_LEFT, _TOP - 18, f"{curve['title']}, {curve['unit']}", size=14),
        *_scale(places, columns, top),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, curve["along"], anchor="middle"),
    ]
    for number, (name, values) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [(x, _upwards(value, top)) for x, value in zip(columns, values, strict=True)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        if len(points) <= _MOST_DOTS:
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points
            ]
        row = _TOP + 10 + number * _LEGEND_STEP
        column = _WIDTH - _RIGHT + 20
        parts.append(f'<rect x="{column}" y="{row - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(column + 16, row, name))
    return "\n".join([*parts, "</svg>", ""])


def _scale(places: Sequence[float], columns: Sequence[float], top: float) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for step in range(_STEPS + 1):
        value = top * step / _STEPS
        y = _upwards(value, top)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{value:g}", anchor="end"))
    every = -(-len(places) // _MOST_LABELS)
    for place, x in list(zip(places, columns, strict=True))[::every]:
        parts.append(f'<path d="M{x:.1f} {bottom}v5" stroke="#000"/>')
        parts.append(_text(x, bottom + 18, f"{place:,}", anchor="middle"))
    return parts


def _shares(places: Sequence[float]) -> list[float]:
    """How far each lies between the first and the last; in the middle where there is only one."""
    first, length = places[0], places[-1] - places[0]
    return [(place - first) / length if length else 0.5 for place in places]


def _upwards(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - _TOP)


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10 …; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {place}>{escape(text)}</text>"
