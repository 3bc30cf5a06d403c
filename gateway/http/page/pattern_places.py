"""Which hostname patterns match no name of any configured zone. Pure.

Such a pattern is valid, and may be meant for a zone to come; until then calls for what it matches
are answered `zone-unavailable`. Called by `policies`, for a remark before a policy is put in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def outside(patterns: Iterable[str], zone_names: Iterable[str]) -> tuple[str, ...]:
    """The patterns that match nothing below any of the zones, in their order.

    Patterns are valid ones of the contract; zone names are without a trailing dot.
    """
    zones = [name.lower().split(".")[::-1] for name in zone_names]
    return tuple(
        pattern
        for pattern in patterns
        if not any(_may_lie_in(pattern.split(".")[::-1], zone) for zone in zones)
    )


def _may_lie_in(pattern: list[str], zone: list[str]) -> bool:
    """Whether some name that the pattern matches is below the zone; labels from the right."""
    for number, label in enumerate(zone):
        if number == len(pattern):
            return False
        if pattern[number] == "**":
            return True
        if pattern[number] not in {"*", label}:
            return False
    return len(pattern) > len(zone)
