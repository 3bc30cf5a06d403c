"""Reads docs/deploying.md: its blocks, its commands, its links.

Called by: tests of the page, and of the files it goes with.
"""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "deploying.md"
TEXT = PAGE.read_text("utf-8")
SEVERAL = "\n## Several gateways\n"
"""Where the part begins that goes with docs/examples/several."""


def blocks(kind: str, text: str = TEXT) -> list[str]:
    """The fenced blocks of a kind: `sh`, `toml`, or none at all."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for of_kind, block in found if of_kind == kind]


def commands(text: str = TEXT) -> list[list[str]]:
    """Each command of the page's shell blocks as its words, comments and continuations gone."""
    lines = "".join(blocks("sh", text)).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def links() -> list[str]:
    """Where the page's links lead, as they are written."""
    return re.findall(r"\]\(([^)]+)\)", TEXT)


def heading_names(page: Path) -> set[str]:
    """The fragments that a page's headings have on the web."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
