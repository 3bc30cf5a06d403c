"""What was measured comes into the page between its marks, and nothing else of it changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.comparing import alone, at_least, at_most, compared
from tests.bench.document import BEGIN, END, SPENT_HEAD, rewrite
from tests.bench.reporting import machine_now


def kept(folder: Path, name: str, rows: list[dict[str, Any]], **more: Any) -> None:
    folder.mkdir(exist_ok=True)
    report = {
        "bench": name,
        "seconds": 90,
        "machine": machine_now(),
        "loadAverageBefore": 0.3,
        "rounds": 3,
        "rows": rows,
        "notes": [],
        "faults": [],
        **more,
    }
    (folder / f"{name}.json").write_text(json.dumps(report))


def page_with(folder: Path, measured: str) -> Path:
    page = folder / "page.md"
    page.write_text(f"above\n\n{BEGIN}{measured}{END}\n\nbelow\n")
    return page


def test_each_row_has_its_figures_its_goal_and_whether_it_was_reached(tmp_path: Path) -> None:
    fast = compared("get", "calls/s", "a loop", [(3000.0, 1500.0)], at_least(1.5))
    slow = compared("sync", "calls/s", "a loop", [(10.0, 20.0)], at_least(1.0))
    kept(tmp_path / "measured", "ready", [fast, slow])
    kept(tmp_path / "measured", "year", [alone("expired", "", [0.0], at_most(0))])
    page = page_with(tmp_path, "")
    rewrite(page, tmp_path / "measured", ("ready", "year"))
    text = page.read_text()
    assert "| get, calls/s | 3,000 | 1,500, a loop | 2 | at least 1.5 | yes |" in text
    assert "| sync, calls/s | 10 | 20, a loop | 0.5 | at least 1 | **no** |" in text
    assert "| expired | 0 |  |  | at most 0 | yes |" in text
    assert text.index("| get,") < text.index("| expired") < text.index("| ready |")


def test_it_is_made_anew_and_what_stands_around_it_stays(tmp_path: Path) -> None:
    page = page_with(tmp_path, "what was there")
    kept(tmp_path / "measured", "ready", [alone("get", "ms", [2.0])])
    rewrite(page, tmp_path / "measured", ("ready",))
    once = page.read_text()
    rewrite(page, tmp_path / "measured", ("ready",))
    assert page.read_text() == once
    assert "what was there" not in once
    assert once.startswith("above\n\n")
    assert once.endswith("\n\nbelow\n")


def test_curves_are_shown_and_what_is_a_point_of_one_only_is_no_row(tmp_path: Path) -> None:
    detail = {**alone("10: get", "ms", [2.0]), "isDetail": True}
    curve = {"name": "calls", "title": "Median", "unit": "ms"}
    rows = [detail, alone("100: get", "ms", [2.0])]
    kept(tmp_path / "measured", "growth", rows, curves=[curve])
    page = page_with(tmp_path, "")
    rewrite(page, tmp_path / "measured", ("growth",))
    text = page.read_text()
    assert "| 100: get, ms |" in text
    assert "| 10: get" not in text
    assert "![Median, ms](measured/growth-calls.svg)" in text


def test_processor_time_is_told_by_program(tmp_path: Path) -> None:
    spent = [{"work": "get", "ms": {"gateway": 0.126, "Redis": 0.04}, "cores": 1.9}]
    kept(tmp_path / "measured", "ready", [], spent=spent)
    kept(tmp_path / "measured", "growth", [])
    page = page_with(tmp_path, "")
    rewrite(page, tmp_path / "measured", ("ready", "growth"))
    text = page.read_text()
    head = f"{SPENT_HEAD}:\n\n| work | gateway | Redis | all | cores in use |\n"
    assert f"{head}| --- | --- | --- | --- | --- |\n| get | 0.13 | 0.04 | 0.17 | 1.9 |\n" in text


def test_there_is_one_blank_line_between_two_tables_where_no_processor_time_is_known(
    tmp_path: Path,
) -> None:
    kept(tmp_path / "measured", "year", [alone("expired", "", [0.0])])
    page = page_with(tmp_path, "")
    rewrite(page, tmp_path / "measured", ("year",))
    text = page.read_text()
    assert "| expired | 0 |  |  |  |  |\n\n| bench |" in text
    assert SPENT_HEAD not in text


def test_a_page_without_a_place_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"no end\n{BEGIN}\n")
    with pytest.raises(ValueError, match="no place for figures"):
        rewrite(page, tmp_path, ())
    assert page.read_text() == f"no end\n{BEGIN}\n"
