"""What is told on the command line, and what is said of mistakes."""

import pytest

from tests.bench.growth import FEW
from tests.bench.options import read_options


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line of what is said of it."""
    with pytest.raises(SystemExit) as ended:
        read_options(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("text", ["0", "-1", "19", "100001", "1.5", "many", "1,00", "1_000", ""])
def test_a_number_that_cannot_be_is_told_with_its_bounds(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    said = mistake(capsys, "ready", "--holdings", text)
    assert f"must be a whole number from 20 to 100,000, not {text!r}" in said


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1,5", "many"])
def test_a_time_that_cannot_be_is_told_with_its_bounds(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    said = mistake(capsys, "soak", "--minutes", text)
    assert f"must be a number from 0.01 to 120, not {text!r}" in said


def test_numbers_may_be_written_as_the_help_writes_them() -> None:
    assert read_options(["ready", "--holdings", "1,000"]).size == 1_000
    assert read_options(["growth", "--holdings", "1,000,000"]).size == 1_000_000
    assert read_options(["soak", "--rate", "1,000.5"]).rate == 1_000.5


def test_many_holdings_are_more_than_those_they_are_held_against(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = mistake(capsys, "growth", "--holdings", f"{FEW}")
    assert "must be a whole number from 101 to 1,000,000" in said


def test_the_figures_of_a_smoke_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert "say nothing" in mistake(capsys, "ready", "--smoke", "--write")
