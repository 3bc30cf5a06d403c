"""Turns requests and answers into aligned lines for a person: pure.

Responsible for: wire names as they are, values as they are read best, and secrets left out.
Must not: print; `telling` does.
Called by: `caller`.

    ownership  appId     cluster-relay:cluster-a
               hostname  relay.cluster-a.example.test
    record     type      A
               …
"""

import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

# Names and addresses stay whole, so that they can be copied.
_WRAPPER = textwrap.TextWrapper(76, break_long_words=False, break_on_hyphens=False)
_GAP = "  "
_PEM_END = "-----END CERTIFICATE-----"
_MOMENTS = frozenset({"createdAt", "expiresAt", "renewAfter", "validFrom", "validUntil"})


def lines_of(fields: Mapping[str, object]) -> list[str]:
    """One line or more for each field, the values under each other."""
    if not fields:
        return ["(empty)"]
    width = max(map(len, fields))
    lines = []
    for name, value in fields.items():
        lines += _hang(f"{name:<{width}}{_GAP}", _lines_of_value(name, value))
    return lines


def _lines_of_value(name: str, value: object) -> list[str]:
    hidden = _without_secrets(name, value)
    if hidden is not None:
        return [hidden]
    if isinstance(value, Mapping):
        return lines_of(value)
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return _table(value)
    return _WRAPPER.wrap(_text_of(name, value)) or [""]


def _without_secrets(name: str, value: object) -> str | None:
    """What stands for a secret, or for a text too long to read; None when it is neither."""
    if not isinstance(value, str):
        return None
    if name == "apiToken":
        return "(the admin's token)" if value.startswith("gwa_") else "(the client's token)"
    if name == "privateKeyPem":
        return f"(private key, {len(value)} bytes)"
    if name == "chainPem":
        first_bytes = value.removeprefix("-----BEGIN CERTIFICATE-----").strip()[:12]
        count = value.count(_PEM_END)
        return f"{first_bytes}… ({count} certificates, {len(value)} bytes)"
    return None


def _text_of(name: str, value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "(none)"
    if name in _MOMENTS and isinstance(value, int):
        moment = datetime.fromtimestamp(value / 1000, UTC)
        return f"{value}  ({moment:%Y-%m-%d %H:%M:%S} UTC)"
    return str(value)


def _table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    names = list(rows[0])
    cells = [names, *([_text_of(name, row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        _GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _hang(label: str, block: Sequence[str]) -> list[str]:
    """The block beside its label, its further lines under the first."""
    first, *others = block
    return [f"{label}{first}", *(f"{' ' * len(label)}{line}" for line in others)]
