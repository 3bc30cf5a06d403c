"""`docs/security.md` names tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`T/([^`]+)`", PAGE)))


@pytest.mark.parametrize("named", NAMED)
def test_test_of_a_measure_is_there(named: str) -> None:
    path, _, test = named.partition("::")
    assert (ROOT / "tests" / path).exists()
    if test:
        text = (ROOT / "tests" / path).read_text("utf-8")
        assert re.search(rf"def {test}\(", text)


def test_every_threat_has_a_test() -> None:
    table = PAGE.partition("## Threats, measures, tests")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 15
    assert [row for row in rows if "`T/" not in row] == []
