"""A program that a bench runs ends in time, or is a fault in words."""

import sys

import pytest

from tests.bench.commands import run
from tests.lab.process import LabFault


def test_what_a_program_says_and_how_long_it_took_is_known() -> None:
    ended = run([sys.executable, "-c", "print(input())"], given="here", limit_seconds=60)
    assert (ended.stdout, ended.stderr) == ("here\n", "")
    assert ended.seconds > 0


def test_a_program_that_fails_is_a_fault_with_what_it_said() -> None:
    with pytest.raises(LabFault, match="failed with exit status 1: for a reason"):
        run([sys.executable, "-c", "exit('for a reason')"], limit_seconds=60)


def test_a_program_that_does_not_end_is_a_fault() -> None:
    with pytest.raises(LabFault, match=r"is not done in 0\.1 s"):
        run(["sleep", "60"], limit_seconds=0.1)
