"""Tables that fault tests show when all tests are over.

Responsible for: bringing them from the processes that share the tests to the one that prints.
Called by: `tests.conftest`, since the process that prints reads only the topmost of these files.
"""

from typing import Any

import pytest

TABLES = pytest.StashKey[list[str]]()
_HANDED_OVER = "fault tables"


def hand_over(config: pytest.Config) -> None:
    """Give this process's tables to the one that prints, where they are two."""
    output: dict[str, object] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[_HANDED_OVER] = config.stash.get(TABLES, [])


def take_over(node: Any) -> None:
    """Take the tables of a process that has run a share of the tests."""
    tables = node.config.stash.setdefault(TABLES, [])
    tables += getattr(node, "workeroutput", {}).get(_HANDED_OVER, [])


def show(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print them."""
    for table in dict.fromkeys(config.stash.get(TABLES, [])):
        terminalreporter.write_line("")
        terminalreporter.write_line(table)
