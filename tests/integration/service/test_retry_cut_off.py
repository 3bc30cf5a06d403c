"""`gateway issuances retry` that is ended while it watches: what was begun is told, and goes on."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.integration.service.calling import Ownership
from tests.integration.service.inside import at_rest, stored
from tests.integration.service.trailing import deeds, trail
from tests.lab.lab import Lab
from tests.lab.process import wait_until

LIMIT_SECONDS = 30.0


def cut_off(lab: Lab, hostname: str, end: signal.Signals) -> subprocess.CompletedProcess[str]:
    """A renewal that cannot come to an end, and whose watching is ended by a signal."""
    typed = [sys.executable, "-m", "gateway", "issuances", "retry", hostname, "--renew", "--json"]
    typed += ["--wait", "60", "--config", str(lab.config.config_file)]
    lab.pebble.process.pause()
    try:
        watching = subprocess.Popen(
            typed,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            begun = ("certificate-retry", "renewal")
            wait_until(lambda: begun in deeds(trail(lab, "--hostname", hostname)), "it has begun")
            watching.send_signal(end)
            out, err = watching.communicate(timeout=LIMIT_SECONDS)
        finally:
            watching.kill()
            watching.wait()
    finally:
        lab.pebble.process.resume()
    return subprocess.CompletedProcess(typed, watching.returncode, out, err)


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (signal.SIGINT, 130, "Interrupted.\n"),
        (signal.SIGTERM, 1, "Interrupted: what was begun goes on.\n"),
    ],
)
def test_interrupted_retry_says_what_it_has_begun(
    service_lab: Lab, mine: Ownership, end: signal.Signals, code: int, said: str
) -> None:
    at_rest(service_lab, mine)
    ended = cut_off(service_lab, mine.hostname, end)
    assert (ended.returncode, ended.stderr) == (code, said)
    told = json.loads(ended.stdout)
    assert (told["hostname"], told["began"], told["watched"]) == (mine.hostname, "renewal", False)
    wait_until(
        lambda: told["issuance"] in stored(service_lab, mine.hostname).get("certificate", ""),
        "the renewal is done",
        LIMIT_SECONDS,
    )
