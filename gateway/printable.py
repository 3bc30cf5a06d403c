"""Text of others on a terminal or in a log: it can neither begin a line nor steer the terminal.

Pure. Called by `logs`, and by `cli.session` for whatever a command says.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with each character that is not for printing as Python would escape it."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
