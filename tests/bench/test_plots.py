"""A curve is drawn to scale."""

import re
from xml.etree import ElementTree

from tests.bench.plots import draw

SVG = "{http://www.w3.org/2000/svg}"


def points(text: str) -> list[list[tuple[float, float]]]:
    lines = ElementTree.fromstring(text).iter(f"{SVG}polyline")  # noqa: S314 (our own)
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", line.attrib["points"])]
        for line in lines
    ]


def drawn(**lines: list[float]) -> str:
    return draw(
        {
            "title": "Calls <all>",
            "along": "holdings",
            "places": [100, 10_000, 1_000_000],
            "unit": "ms",
            "lines": lines,
        }
    )


def test_each_line_has_all_its_points_along_a_logarithmic_scale() -> None:
    ((first, middle, last),) = points(drawn(get=[1.0, 2.0, 3.0]))
    assert middle[0] - first[0] == last[0] - middle[0] > 0
    assert first[1] > middle[1] > last[1]


def test_what_is_flat_is_drawn_flat_and_twice_as_much_twice_as_high() -> None:
    flat, double = points(drawn(get=[4.0, 4.0, 4.0], sync=[8.0, 8.0, 8.0]))
    assert len({y for _, y in flat}) == 1
    # Up to the next round figure: 10.
    bottom = flat[0][1] + (flat[0][1] - double[0][1])
    assert double[0][1] < flat[0][1] < bottom


def test_names_are_shown_as_they_are() -> None:
    texts = [each.text for each in ElementTree.fromstring(drawn(get=[1, 2, 3])).iter(f"{SVG}text")]  # noqa: S314
    assert "Calls <all>, ms" in texts
    assert {"get", "holdings", "1,000,000"} <= set(texts)
