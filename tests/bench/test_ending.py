"""The bench is ended by a signal: it says so in a sentence, and what was kept."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bench import program
from tests.bench.__main__ import main
from tests.lab.ending import ENDING_SIGNALS, AskedToEnd

_LIMIT_SECONDS = 60
_STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
_STOPPED = "bench: stopped; nothing was kept\n"
_LONG = (sys.executable, "-m", "tests.bench", "year", "--certificates", "1,000,000")

_SIGNALLED_AS_IT_IS_READ = """
import os, runpy, signal, sys

class Signaller:
    def find_spec(self, name, path=None, target=None):
        if name == "tests.bench.soak":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Signaller())
runpy.run_module("tests.bench", run_name="__main__")
"""


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_signal_ends_a_measurement_in_a_sentence(number: signal.Signals) -> None:
    with started(_LONG) as running:
        assert running.stderr is not None
        assert "year 1 of 1" in running.stderr.readline()
        running.send_signal(number)
        assert ended(running) == (_STATUS[number], "", _STOPPED)


def test_a_signal_while_its_modules_are_read_ends_it_as_well() -> None:
    with started([sys.executable, "-c", _SIGNALLED_AS_IT_IS_READ]) as running:
        assert ended(running) == (130, "", _STOPPED)


def test_what_was_kept_before_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(arguments: list[str], kept: list[Path]) -> int:
        kept += [tmp_path / "a.json", tmp_path / "b.json"]
        raise AskedToEnd(signal.SIGTERM)

    monkeypatch.setattr(program, "run", run)
    handlers = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    try:
        assert main() == 143
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    said = capsys.readouterr().err
    assert said == f"bench: stopped; kept: {tmp_path}/a.json, {tmp_path}/b.json\n"


def started(command: Sequence[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def ended(running: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit status, and what it says until its end."""
    try:
        out, said = running.communicate(timeout=_LIMIT_SECONDS)
    finally:
        running.kill()
    return running.returncode, out, said
