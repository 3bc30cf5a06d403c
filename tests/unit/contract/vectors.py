"""The cases that were given with the contract, read once."""

import json
from pathlib import Path
from typing import Any

VECTORS: dict[str, dict[str, list[Any]]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "contract.json").read_text(encoding="utf-8")
)


def cases(name: str) -> list[tuple[Any, bool]]:
    """Every case of a section with whether it is to be accepted."""
    section = VECTORS[name]
    accepted = section.get("valid", section.get("true", []))
    refused = section.get("invalid", section.get("false", []))
    return [(case, True) for case in accepted] + [(case, False) for case in refused]
