"""`docs/examples/two_hundred_relays.py` serves its two hundred relays."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.dns.hand import Hand
from tests.lab.lab import Lab

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "two_hundred_relays.py"
COUNT = 200
FEWER = 20
"""For what is the same for all of them: time is scarce."""


@pytest.fixture
def domain(fresh_label: str) -> str:
    return f"{fresh_label}.example.test"


def run(
    lab: Lab, token_file: Path, domain: str, *options: str, count: int = COUNT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLE, "--domain", domain, "--count", str(count), *options],
        env={
            "PATH": os.environ["PATH"],
            "GATEWAY_URL": lab.config.url,
            "OPERATOR_TOKEN_FILE": str(token_file),
        },
        capture_output=True,
        text=True,
        timeout=90,
    )


def test_relays_are_served_again_and_removed(
    lab: Lab, hand: Hand, admin_token_file: Path, domain: str
) -> None:
    for count in (COUNT, FEWER):
        done = run(lab, admin_token_file, domain, count=count)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{count} of {count} relays served in ")
        steps = re.findall(r"^(\w+) +median +[0-9.]+ s, slowest", done.stdout, re.MULTILINE)
        assert steps == ["client", "record", "certificate", "all"]
    for number in (1, FEWER, COUNT):
        assert f"60 A 198.51.100.{number}" in hand.records(f"relay-{number}.{domain}")
    done = run(lab, admin_token_file, domain, "--remove", count=FEWER)
    assert done.returncode == 0, done.stderr
    assert hand.records(f"relay-{FEWER}.{domain}") == set()


def test_relay_that_fails_is_told_and_ends_no_other(
    lab: Lab, hand: Hand, admin_token_file: Path, domain: str
) -> None:
    hand.add(f"relay-3.{domain} 300 A 192.0.2.7")
    done = run(lab, admin_token_file, domain, count=4)
    assert done.returncode == 1
    assert done.stdout.startswith("3 of 4 relays served in ")
    assert f"relay-3.{domain}: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_environment_is_told(lab: Lab, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    done = run(lab, missing, "example.test")
    assert done.returncode == 2
    assert done.stderr == f"{missing}: No such file or directory.\n"
