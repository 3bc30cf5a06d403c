"""Runs `gateway` commands, and spoils the configuration that they are given."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab import forks

LIMIT_SECONDS = 60.0

Findings = dict[str, dict[str, str]]


def run(*arguments: str | Path, environ: Mapping[str, str] | None = None) -> Any:
    everything = {"PATH": "/usr/bin:/usr/sbin:/bin", **(environ or {})}
    return forks.run_command([str(each) for each in arguments], everything, LIMIT_SECONDS)


def check(config_file: Path, environ: Mapping[str, str] | None = None) -> Findings:
    """The findings by part, the last of each; no output shows a secret of the file."""
    result = run("check", "--json", "--config", config_file, environ=environ)
    assert result.stdout, result.stderr
    answer = json.loads(result.stdout)
    findings = {finding["part"]: finding for finding in answer["checks"]}
    failed = any(finding["state"] == "failed" for finding in answer["checks"])
    assert answer["ok"] is not failed
    assert result.returncode == (1 if failed else 0)
    assert result.stderr == ""
    for secret in re.findall(r'secret = "([^"]+)"', config_file.read_text()):
        assert secret not in result.stdout
    return findings


def make_client(config_file: Path) -> None:
    """Provision one, since a Redis without any is worth a warning."""
    made = run(
        "clients",
        "ensure",
        "cluster-a",
        "--type",
        "cloudly",
        "--pattern",
        "*.example.test",
        "--config",
        config_file,
    )
    assert made.returncode == 0, made.stderr


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def spoil(config_file: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, config_file.read_text())
    assert count > 0
    config_file.write_text(text)
