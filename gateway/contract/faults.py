"""What is wrong with a value, and how it is said.

Responsible for the form of a fault (a path and a sentence) and for showing values inside sentences:
bounded, escaped to printable ASCII, and never a token or a private key, since the sentences reach
answers and logs. Judges no value. Used by the value modules and by the schemas.

Everything here accepts any Python object. Types are compared with `is`, because `isinstance`, `==`
and hashing may run code of the object or of its metaclass.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

_SHOWN_CHARACTERS: Final = 64
_SHOWN_INTEGERS: Final = 10**20
_SECRET: Final = re.compile(r"(gw[ac]_|-----BEGIN ).*", re.IGNORECASE | re.DOTALL)
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}


class Fault(NamedTuple):
    """One violation: where (relative to the value that was judged) and what, as a predicate."""

    path: str
    sentence: str

    def under(self, parent: str) -> "Fault":
        """The same fault, seen from the object that holds the judged value as `parent`."""
        return Fault(joined(parent, self.path), self.sentence)

    def __str__(self) -> str:
        return f"{self.path} {self.sentence}"


Check = Callable[[object], str | None]
"""Judges a single value: what is wrong with it, as a predicate (`must …`), or None."""


def joined(parent: str, path: str) -> str:
    """`a` and `b` give `a.b`, `a` and `[0]` give `a[0]`; an empty side leaves the other."""
    if not parent or not path or path.startswith("["):
        return parent + path
    return f"{parent}.{path}"


def path_text(steps: Iterable[str | int]) -> str:
    """Keys and list positions as one path: `record.ttl`, `spec.hostnamePatterns[3]`."""
    path = ""
    for step in steps:
        if type(step) is int:
            path = f"{path}[{step}]"
        elif _PLAIN_KEY.fullmatch(key := str(step)) and not _SECRET.search(key):
            path = joined(path, key)
        else:
            path = f"{path}[{quoted(key)}]"
    return path


def quoted(text: str) -> str:
    """Text in double quotes, cut to 64 characters, secrets cut out, printable ASCII only."""
    shown = _SECRET.sub(r"\1(hidden)", text[:_SHOWN_CHARACTERS])
    cut = "..." if len(text) > _SHOWN_CHARACTERS else ""
    return f'"{"".join(map(_escaped, shown))}"{cut}'


def plain(text: str, longest: int) -> str:
    """Somebody else's sentence: cut to a length, secrets cut out, no control characters."""
    shown = _SECRET.sub(r"\1(hidden)", text[:longest])
    cut = "..." if len(text) > longest else ""
    if shown.isprintable():
        return shown + cut  # as nearly every text; character by character took ten times as long
    return "".join(each if each.isprintable() else _escaped(each) for each in shown) + cut


def described(value: object) -> str:
    """Any value as a noun for a sentence: `null`, `"text"`, `the number 5`, `a list`."""
    if type(value) is str:
        return quoted(value)
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is list or type(value) is tuple:
        return "a list"
    if type(value) is dict:
        return "an object"
    if type(value) is float:
        return f"the number {value!r}"
    if type(value) is int:
        # Turning thousands of digits into text is refused by Python and slow before that.
        small = -_SHOWN_INTEGERS < value < _SHOWN_INTEGERS
        return f"the number {value}" if small else "a number of more than 20 digits"
    return "a value that JSON does not have"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if " " <= character <= "~":
        return character
    return f"\\u{{{ord(character):x}}}"
