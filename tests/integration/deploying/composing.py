"""Reads the compose files of the docs, as far as they use YAML.

Responsible for: block mappings and lists by their indentation; `<<: *name` of one mapping. What is
written on one line (`[a, b]`, `{ a: b }`, text) stays the text that it is.
Must not: be lenient; what it does not know fails, so that the files stay plain.
Called by: tests of the deployment's files. A library for all of YAML would serve nothing else here.
"""

import re
from pathlib import Path
from typing import Any

_KEY = re.compile(r"([A-Za-z0-9_.<-]+):(?: +(?:(&[\w-]+)|([^&\s].*)))?")
_ITEM = re.compile(r"- +(\S.*)")


class NotPlain(ValueError):
    """A line that is none of the few forms, with its number."""


def read_compose(file: Path) -> dict[str, Any]:
    """The file as mappings, lists and texts."""
    return _Reader(file.read_text("utf-8")).whole()


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines = [
            (number, len(line) - len(line.lstrip(" ")), _without_comment(line).strip())
            for number, line in enumerate(text.splitlines(), start=1)
            if _without_comment(line).strip()
        ]
        self._at = 0
        self._named: dict[str, Any] = {}

    def whole(self) -> dict[str, Any]:
        table = self._mapping(0)
        if self._at != len(self._lines):
            raise NotPlain(self._lines[self._at])
        return table

    def _mapping(self, indent: int) -> dict[str, Any]:
        table: dict[str, Any] = {}
        while self._is_at(indent):
            line = self._lines[self._at]
            found = _KEY.fullmatch(line[2])
            if found is None or found[1] in table:
                raise NotPlain(line)
            self._at += 1
            key, name, text = found.groups()
            if text and text[0] not in "\"'[{*" and ": " in text:
                raise NotPlain(line)
            if key == "<<":
                table = {**self._named[text.removeprefix("*")], **table}
            else:
                table[key] = text if text else self._below(indent)
            if name:
                self._named[name.removeprefix("&")] = table[key]
        return table

    def _below(self, indent: int) -> Any:
        if self._at == len(self._lines) or self._lines[self._at][1] <= indent:
            return None
        inner = self._lines[self._at][1]
        return (
            self._list(inner) if _ITEM.fullmatch(self._lines[self._at][2]) else self._mapping(inner)
        )

    def _list(self, indent: int) -> list[str]:
        items = []
        while self._is_at(indent):
            line = self._lines[self._at]
            found = _ITEM.fullmatch(line[2])
            if found is None:
                raise NotPlain(line)
            items.append(found[1].strip('"'))
            self._at += 1
        return items

    def _is_at(self, indent: int) -> bool:
        if self._at == len(self._lines):
            return False
        if self._lines[self._at][1] > indent:
            raise NotPlain(self._lines[self._at])
        return self._lines[self._at][1] == indent


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*", "", line)
