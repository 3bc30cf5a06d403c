"""Every row of `scripts/bench` in its smoke form: that it works, not how fast it is."""

import sys

import pytest

from tests.bench.__main__ import main
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
