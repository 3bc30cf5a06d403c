"""The processor time of a piece of work, by program."""

import os
import subprocess
import sys

import pytest

from tests.bench.spending import CALLERS, Spending
from tests.bench.watching import cpu_seconds
from tests.lab.process import wait_until

_BUSY = "import ctypes; ctypes.CDLL(None).prctl(15, b'{}')\nwhile True: pass"
"""It calls itself by another program's name (PR_SET_NAME), and is never idle."""


@pytest.mark.parametrize(
    ("called", "counted_as"), [("named", "BIND"), ("gateway", "gateway"), ("wrk", CALLERS)]
)
def test_time_of_a_program_that_goes_on_is_told_for_each_piece_of_work(
    called: str, counted_as: str
) -> None:
    spending = Spending()
    with subprocess.Popen([sys.executable, "-c", _BUSY.format(called)]) as busy:
        try:
            wait_until(lambda: cpu_seconds(busy.pid) > 0.1, "it has called itself so")
            before = cpu_seconds(busy.pid)
            with spending.on("turning") as spent:
                wait_until(lambda: cpu_seconds(busy.pid) > before + 0.2, "it has turned")
                spent.count += 2
        finally:
            busy.kill()
    (told,) = spending.report()
    assert told["work"] == "turning"
    assert told["ms"].keys() == {"gateway", "Redis", "BIND", "Pebble", CALLERS}
    assert told["ms"][counted_as] >= 100
    assert told["cores"] > 0


def test_time_of_a_program_that_ends_meanwhile_is_the_callers() -> None:
    spending, before = Spending(), os.times()
    for _ in range(2):
        with spending.on("turning") as spent:
            subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
            spent.count += 1
    after = os.times()
    seconds = after.children_user - before.children_user
    (told,) = spending.report()
    assert told["ms"][CALLERS] * 2 >= seconds * 1000 * 0.9 > 0
    # A Redis that serves other tests is looked after by itself now and then.
    assert told["ms"][CALLERS] == max(told["ms"].values())
