"""What one check found: a sentence, how bad it is, and what to do.

Responsible for the form of it, for people and for programs. Made and printed for `gateway check`
and for `gateway agent check`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer. `remedy` is empty when there is nothing to do."""

    part: str
    state: State
    finding: str
    remedy: str = ""


_MARKS: Final = {State.OK: "✓", State.WARNING: "!", State.FAILED: "✗"}


def has_failed(findings: Iterable[Finding]) -> bool:
    """Whether one of them is a failure; warnings do not count."""
    return any(finding.state is State.FAILED for finding in findings)


def lines_of(findings: Sequence[Finding], *, as_json: bool) -> list[str]:
    """What is printed of all findings: a line for each, or one of JSON."""
    if as_json:
        checks = [asdict(finding) for finding in findings]
        return [json.dumps({"ok": not has_failed(findings), "checks": checks})]
    return [_line(finding) for finding in findings]


def _line(finding: Finding) -> str:
    line = f"{_MARKS[finding.state]} {finding.part}: {finding.finding}"
    return f"{line} → {finding.remedy}" if finding.remedy else line
