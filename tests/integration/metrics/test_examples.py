"""Dashboard and alerts go by figures that there are, and every alert says what to do.

The rules are read by a parser of our own, for the one form that they are written in: Prometheus's
YAML needs a library that nothing else here does.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.metrics.conftest import MeteredLab
from tests.integration.metrics.scraping import Page

DOCS = Path(__file__).parents[3] / "docs"
RULES = DOCS / "examples" / "prometheus" / "gateway-rules.yml"
DASHBOARD = DOCS / "examples" / "grafana" / "gateway.json"

OF_PROMETHEUS = {"job", "instance", "le", "up"}
"""What Prometheus itself adds to what is scraped."""

NAME = re.compile(r"\b(?:gateway|process)_[a-z_]+\b|\bup\b")
SELECTED = re.compile(r'([a-z_]+) *(?:=~|!~|!=|=) *"')
GROUPED = re.compile(r"\b(?:by|without) *\(([^)]*)\)")


@dataclass(frozen=True)
class Rule:
    """One alert as it is written."""

    name: str
    keys: dict[str, str]

    @property
    def expression(self) -> str:
        return self.keys["expr"]


def rules() -> list[Rule]:
    head, *blocks = re.split(r"^      - alert: ", RULES.read_text("utf-8"), flags=re.MULTILINE)
    assert head.endswith("groups:\n  - name: gateway\n    rules:\n")
    return [Rule(block.partition("\n")[0], dict(_keys(block))) for block in blocks]


def _keys(block: str) -> Iterator[tuple[str, str]]:
    """Keys with their values, those of the annotations as `annotations.<key>`."""
    under, last, text = "", "", ""
    for line in block.splitlines()[1:]:
        found = re.fullmatch(r"( {8}| {10})([a-z_]+):(?: (.*))?", line)
        if found is None:
            assert not line.strip() or line.startswith(" " * 10), line
            text += f"\n{line.strip()}"
            continue
        if last:
            yield last, text.strip()
        indent, key, value = found[1], found[2], found[3]
        under = under if len(indent) == 10 else ""
        last, text = f"{under}{key}", value or ""
        if value is None:
            under, last = f"{key}.", ""
    yield last, text.strip()


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return loaded


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    of_panels = [target["expr"] for panel in panels() for target in panel["targets"]]
    return of_panels + [rule.expression for rule in rules()]


@pytest.fixture(scope="module")
def full_page(metered_lab: MeteredLab) -> Page:
    """What a gateway shows that has issued a certificate."""
    metered_lab.world.ownership().certificate()
    metered_lab.metrics.until(lambda page: page.has("gateway_acme_budget_left"), "budget is read")
    return metered_lab.metrics.counted()


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_every_figure_and_label_that_is_used_is_shown(full_page: Page, expression: str) -> None:
    shown = full_page.labels()
    used = set(NAME.findall(expression)) - OF_PROMETHEUS
    assert used <= full_page.names()
    labels = set(SELECTED.findall(expression))
    labels |= {name.strip() for group in GROUPED.findall(expression) for name in group.split(",")}
    known = OF_PROMETHEUS.union(*(shown.get(name, set()) for name in used))
    assert labels - {""} <= known
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing)


def test_every_alert_has_its_entry_in_the_runbook() -> None:
    headings = re.findall(r"^### (Gateway\w+)$", (DOCS / "operating.md").read_text(), re.MULTILINE)
    names = [rule.name for rule in rules()]
    assert names == headings
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_alert_has_all_that_prometheus_and_a_person_need(rule: Rule) -> None:
    assert {"expr", "labels", "annotations.summary", "annotations.runbook_url"} <= rule.keys.keys()
    assert rule.keys.keys() <= {
        *("expr", "for", "labels", "annotations.summary", "annotations.runbook_url")
    }
    assert re.fullmatch(r"\{severity: (critical|warning)\}", rule.keys["labels"])
    assert re.fullmatch(r"[1-9][0-9]*[mh]", rule.keys.get("for", "1m"))
    assert rule.keys["annotations.runbook_url"] == f"docs/operating.md#{rule.name.lower()}"
    summary = rule.keys["annotations.summary"]
    # A plain scalar that begins like one of YAML's own signs would be read as that.
    assert summary.startswith('"{{') or summary[0].isalpha()
    assert ": " not in summary or summary.startswith('"')


def test_dashboard_can_be_imported_on_any_prometheus() -> None:
    loaded = dashboard()
    assert loaded["schemaVersion"] >= 36
    assert loaded["uid"]
    (source,) = (each for each in loaded["templating"]["list"] if each["type"] == "datasource")
    assert source["query"] == "prometheus"
    wanted = {"type": "prometheus", "uid": f"${{{source['name']}}}"}
    for panel in panels():
        assert all(target["datasource"] == wanted for target in panel["targets"])
    assert "id" not in loaded


def test_panels_stand_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)
