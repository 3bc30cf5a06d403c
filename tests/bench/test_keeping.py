"""Where reports are kept is looked at before anything is measured."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.bench.comparing import alone
from tests.bench.document import BEGIN, END
from tests.bench.keeping import CALLED_FROM, Keeping, Unkeepable
from tests.bench.paces import Pace
from tests.bench.program import run
from tests.bench.reporting import machine_now
from tests.bench.rows import ROWS


def measured(pace: Pace) -> dict[str, Any]:
    raise AssertionError("nothing is to be measured")


def refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> str:
    """What is said of a folder in which nothing can be kept."""
    monkeypatch.setitem(ROWS, "ready", dataclasses.replace(ROWS["ready"], measure=measured))
    assert run(["ready", "--smoke", "--plots", str(folder)], []) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


def test_a_folder_that_is_a_file_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    said = refusal(monkeypatch, capsys, file)
    assert said == f"bench: --plots {file}: {file}: File exists\n"
    assert "Not a directory" in refusal(monkeypatch, capsys, file / "below")


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel's own, in which nobody makes anything, root neither."""
    said = refusal(monkeypatch, capsys, Path("/proc/self"))
    assert said.startswith("bench: --plots /proc/self: ")
    assert said.count("\n") == 1


def test_a_relative_folder_is_meant_from_where_the_script_was_called(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv(CALLED_FROM, str(tmp_path))
    kept: list[Path] = []
    keeping = Keeping(Path("a/b"), kept, is_written=False)
    keeping.prepare()
    assert keeping.keep({"bench": "ready"}) == []
    assert (tmp_path / "a/b/ready.json").read_text() == '{"bench": "ready"}\n'
    assert kept == [tmp_path / "a/b/ready.json"]
    assert f"written: {kept[0]}\n" in capsys.readouterr().err


def test_what_is_written_for_the_documentation_comes_into_its_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.bench.keeping._DOCS", tmp_path)
    page = tmp_path / "performance.md"
    page.write_text(f"{BEGIN}{END}\n")
    kept: list[Path] = []
    keeping = Keeping(None, kept, is_written=True)
    keeping.prepare()
    report = {"machine": machine_now(), "loadAverageBefore": 0.1, "rounds": 1, "seconds": 60}
    rows = {"rows": [alone("get", "ms", [2.0])], "notes": [], "faults": []}
    assert keeping.keep({"bench": "ready", **report, **rows}) == []
    assert "| get, ms | 2 |" in page.read_text()
    assert kept == [tmp_path / "measured" / "ready.json", page]


def test_a_page_without_a_place_for_figures_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.bench.keeping._DOCS", tmp_path)
    (tmp_path / "performance.md").write_text("no place\n")
    with pytest.raises(Unkeepable, match=r"--write: .* has no place for figures"):
        Keeping(None, [], is_written=True).prepare()


def test_nothing_is_kept_unless_told() -> None:
    keeping = Keeping(None, [], is_written=False)
    keeping.prepare()
    assert keeping.keep({"bench": "ready"}) == []
