"""Plain values as TOML, on one line for each top key: the standard library only reads it."""

import json
import math
from typing import Any


def written(document: dict[str, Any]) -> str:
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in document.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_text(key)} = {_value(each)}" for key, each in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return json.dumps(value)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for the delete character, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
