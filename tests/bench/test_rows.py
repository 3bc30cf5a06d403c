"""Every row of `scripts/bench` in its smoke form: that it works, not how fast it is."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.bench.comparing import alone, at_least, compared
from tests.bench.paces import Pace
from tests.bench.program import run as run_program
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
    assert "only proves that the bench works" in table


def test_each_row_has_a_line_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_program(["--help"], [])
    words = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {row.tells}; {row.lasts}" in words for name, row in ROWS.items())


def test_all_keeps_each_report_though_a_row_breaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def breaks(pace: Pace) -> dict[str, Any]:
        raise ValueError("what nobody thought of")

    monkeypatch.setitem(ROWS, "ready", dataclasses.replace(ROWS["ready"], measure=breaks))
    others = [name for name in ROWS if name not in {"starts", "ready", "year"}]
    without = [word for name in others for word in ("--without", name)]
    kept: list[Path] = []
    assert run_program(["all", "--smoke", "--plots", str(tmp_path), *without], kept) == 1
    shown = capsys.readouterr()
    report = json.loads(shown.out.splitlines()[-1])
    assert [each["bench"] for each in report["reports"]] == ["starts", "year"]
    assert report["faults"] == ["ready: ValueError('what nobody thought of')"]
    for each in report["reports"]:
        assert json.loads((tmp_path / f"{each['bench']}.json").read_text()) == each
        assert compared_table(each) in shown.out
    written = [tmp_path / name for name in ("starts.json", "year.json", "year-days.svg")]
    assert kept == written
    assert [file for file in written if f"written: {file}\n" in shown.err] == written


def test_all_goes_on_though_a_report_cannot_be_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ROWS:
        monkeypatch.setitem(ROWS, name, dataclasses.replace(ROWS[name], measure=_nothing))
    (tmp_path / "starts.json").mkdir()
    without = [word for name in list(ROWS)[2:] for word in ("--without", name)]
    kept: list[Path] = []
    assert run_program(["all", "--smoke", "--plots", str(tmp_path), *without], kept) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [each["bench"] for each in report["reports"]] == list(ROWS)[:2]
    (fault,) = report["faults"]
    assert "starts: not all of its report was kept: " in fault
    assert "Is a directory" in fault
    assert kept == [tmp_path / f"{list(ROWS)[1]}.json"]


def test_a_smoke_is_not_held_against_goals() -> None:
    row = compared("get", "calls/s", "a loop", [(1.0, 2.0)], at_least(1.5))
    report = {"bench": "ready", "rows": [row], "notes": [], "faults": [], "isSmoke": True}
    smoke = compared_table(report)
    assert "only proves that the bench works" in smoke.splitlines()[0]
    words = {"goal", "reached", "no"}
    assert not words & set(smoke.split())
    assert words <= set(compared_table({**report, "isSmoke": False}).split())


def test_a_machine_that_was_busy_before_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "ready", dataclasses.replace(ROWS["ready"], measure=_nothing))
    cores = os.cpu_count() or 1
    monkeypatch.setattr(os, "getloadavg", lambda: (cores * 0.5, 0.0, 0.0))
    assert "not idle" not in str(run("ready", None, None, is_smoke=False)["notes"])
    monkeypatch.setattr(os, "getloadavg", lambda: (cores * 0.5 + 0.1, 0.0, 0.0))
    assert "not idle" in str(run("ready", None, None, is_smoke=False)["notes"])


def _nothing(pace: Pace) -> dict[str, Any]:
    """Stands for what would take minutes."""
    return {"rows": [alone("nothing", "s", [float(pace.rounds)])], "notes": [], "faults": []}
