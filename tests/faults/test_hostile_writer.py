"""Another writer at work in the gateway's zone, at random: nothing of theirs is ever changed.

And every answer is true of the zone as it was while the call was under way. Both are judged by the
zone's own journal, version by version (`truth`). `scripts/hostile-writer --seed …` repeats a run.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.faults.hostilerun import Findings, Options, run

CALLS = 400
VARIANTS = {
    "one gateway, many callers": Options(CALLS, callers=24),
    "two gateways": Options(CALLS, processes=2),
    "two gateways, Redis emptied": Options(CALLS, processes=2, flushes=True),
}


@pytest.fixture(scope="module", params=list(VARIANTS))
def findings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tables: list[str]
) -> Findings:
    options = replace(VARIANTS[request.param], seed=secrets.randbelow(2**32))
    findings = run(tmp_path_factory.mktemp("hostile"), options)
    tables.append(findings.figures())
    return findings


def told(findings: Findings, objections: Sequence[str]) -> str:
    """All of it: such a run does not come again."""
    return "\n".join([findings.figures(), *objections])


def test_no_record_of_another_writer_is_changed(findings: Findings) -> None:
    assert not findings.foreign_changes, told(findings, findings.foreign_changes)


def test_every_answer_was_true_when_it_was_given(findings: Findings) -> None:
    assert not findings.untrue_answers, told(findings, findings.untrue_answers)


def test_both_were_at_work(findings: Findings) -> None:
    """A run in which nothing happened would prove nothing."""
    seen = findings.answers
    assert {"managed-created", "managed-deleted", "record-conflict"} <= set(seen)
    assert findings.hand.total() > 0
    assert findings.gateway_versions > 0
    given_up = seen["mutation-failed"] + seen["overloaded"] + seen["unavailable"]
    assert given_up * 20 < len(findings.calls)
