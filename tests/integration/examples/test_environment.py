"""What clients' examples read from the environment does not get into the way of `gateway check`.

The gateway takes each variable that begins with GATEWAY_ for a setting, and refuses those it does
not know; a person who runs an example may have one in the same shell. The server's own examples may
set settings.
"""

import re
from pathlib import Path

import pytest

from gateway.config.environment import setting_variables

DOCS = Path(__file__).parents[3] / "docs"
SUFFIXES = {".py", ".mjs", ".toml", ".service", ".md"}
OF_THE_SERVER = {"compose", "grafana", "one", "prometheus", "several", "systemd"}
READ = [
    *(
        file
        for file in sorted((DOCS / "examples").rglob("*"))
        if file.suffix in SUFFIXES and file.parent.name not in OF_THE_SERVER
    ),
    *(DOCS / f"{page}.md" for page in ("agent", "clients", "command-line")),
]


@pytest.mark.parametrize("file", READ, ids=lambda file: str(file.relative_to(DOCS)))
def test_variables_with_the_gateways_prefix_are_those_of_its_command_line(file: Path) -> None:
    names = re.findall(r"\bGATEWAY_[A-Z_]+\b", file.read_text(encoding="utf-8"))
    assert setting_variables(dict.fromkeys(names, "")) == {}
