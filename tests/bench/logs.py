"""Counts what a gateway has logged as an error or a warning, by its event. Called by `soak`."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LogCount:
    """How often each event was logged."""

    errors: dict[str, int]
    warnings: dict[str, int]


def count_log(file: Path) -> LogCount:
    """Read a log in JSON; what is not JSON (a traceback on its own) counts as an error."""
    counts: dict[str, Counter[str]] = {"error": Counter(), "warning": Counter()}
    with file.open(errors="replace") as lines:
        for line in lines:
            try:
                told = json.loads(line)
                level, event = str(told["level"]), str(told["event"])
            except (ValueError, TypeError, KeyError):
                level, event = "error", "a line that is not JSON"
            if level in counts:
                counts[level][event] += 1
    return LogCount(dict(counts["error"]), dict(counts["warning"]))
