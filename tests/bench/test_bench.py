"""`scripts/bench` as its users run it, with little time and few holdings."""

import json
import subprocess
import sys
from typing import Any

LIMIT_SECONDS = 100


def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit status, the JSON line, and what comes before it."""
    command = [sys.executable, "-m", "tests.bench", *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    table, _, line = ended.stdout.rstrip("\n").rpartition("\n")
    assert line, ended.stderr
    report: dict[str, Any] = json.loads(line)
    return ended.returncode, report, table


def test_a_short_soak_runs_through_and_judges() -> None:
    status, report, table = run("soak", "--minutes", "0.05", "--holdings", "100")
    assert report["failures"] == []
    assert report["logged"]["errors"] == {}
    assert report["calls"] > 0
    assert len(report["samples"]) > 0
    assert status == (1 if report["faults"] else 0)
    assert "get ready" in table


def test_calls_alone_are_measured_beside_their_parts() -> None:
    of_one_kind = ("--kind", "sync unchanged", "--seconds", "0.3", "--holdings", "100")
    status, report, table = run("calls", *of_one_kind)
    assert (status, report["faults"]) == (0, [])
    by_kind = {row["kind"]: row for row in report["rows"]}
    assert by_kind["sync unchanged"]["dns"] >= 1
    assert by_kind["Redis PING"]["count"] > 0
    assert by_kind["BIND query, signed"]["count"] > 0
    assert "sync unchanged" in table


def test_the_page_is_measured_with_few_hostnames_and_with_more() -> None:
    status, report, table = run("page", "--holdings", "200", "--loads", "2")
    assert (status, report["failures"], report["faults"]) == (0, [], [])
    assert all(row["few"] and row["many"] for row in report["rows"])
    assert "hostnames, by prefix" in table
