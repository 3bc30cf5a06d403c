"""Text of others on a terminal or in a log: it can neither begin a line nor steer the terminal.

Pure. Called by `logs`, by `cli.session` for whatever a command says, and for the operator's page.
"""

from __future__ import annotations


class _Escapes(dict[int, str]):
    """A table for `str.translate` that is made as characters come: a megabyte has few sorts."""

    def __missing__(self, code: int) -> str:
        each = chr(code)
        shown = each if each.isprintable() else each.encode("unicode_escape").decode()
        self[code] = shown
        return shown


def printable(text: str, keeps: str = "") -> str:
    """The text with each character that is not for printing as Python would escape it.

    `keeps` are characters that are left as they are.
    """
    if text.isprintable():
        return text
    return text.translate(_Escapes((ord(each), each) for each in keeps))
