"""Every row of `scripts/bench` in its smoke form: that it works, not how fast it is."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.__main__ import main
from tests.bench.paces import Pace
from tests.bench.reporting import compared_table
from tests.bench.rows import ROWS, run
from tests.bench.test_bench import run as run_bench


@pytest.mark.parametrize("name", ROWS)
def test_a_smoke_of_a_row_shows_all_its_figures(name: str) -> None:
    report = run(name, None, None, is_smoke=True)
    assert report["faults"] == []
    assert report["rows"]
    assert all(row["rounds"] for row in report["rows"])
    assert all(row["work"] in compared_table(report) for row in report["rows"])


def test_a_row_is_chosen_by_its_name_and_tells_how_often_it_was_measured() -> None:
    status, report, table = run_bench("year", "--smoke", "--rounds", "2", "--certificates", "110")
    assert (status, report["faults"]) == (0, [])
    assert {len(row["rounds"]) for row in report["rows"]} == {2}
    assert report["certificates"] == 110
    assert "reached" in table


def test_each_row_has_a_line_in_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--help"])
    with pytest.raises(SystemExit):
        main()
    words = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {row.tells}" in words for name, row in ROWS.items())


def test_all_keeps_each_report_though_a_row_breaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def breaks(pace: Pace) -> dict[str, Any]:
        raise ValueError("what nobody thought of")

    monkeypatch.setitem(ROWS, "ready", dataclasses.replace(ROWS["ready"], measure=breaks))
    others = [name for name in ROWS if name not in {"starts", "ready", "year"}]
    without = [word for name in others for word in ("--without", name)]
    arguments = ["bench", "all", "--smoke", "--plots", str(tmp_path), *without]
    monkeypatch.setattr(sys, "argv", arguments)
    assert main() == 1
    shown = capsys.readouterr()
    report = json.loads(shown.out.splitlines()[-1])
    assert [each["bench"] for each in report["reports"]] == ["starts", "year"]
    assert report["faults"] == ["ready: ValueError('what nobody thought of')"]
    for each in report["reports"]:
        assert json.loads((tmp_path / f"{each['bench']}.json").read_text()) == each
        assert compared_table(each) in shown.out
    assert (tmp_path / "year-days.svg").exists()
