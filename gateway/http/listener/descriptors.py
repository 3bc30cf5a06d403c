"""File descriptors: as many as the process may have, and how many connections that allows.

Called by `gateway.listening`, once, at the start.
"""

from __future__ import annotations

import resource
from typing import Final

KEPT_FREE: Final = 512
"""For Redis, DNS, the CA, files, and what is just being opened and closed."""

MOST_RAISED: Final = 1 << 20
"""Beyond that, even where the hard limit is none, nobody gains anything."""


def raised_limit(wanted: int) -> int:
    """Raise the soft limit of open files to what is wanted, or as far as it may; the limit then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = MOST_RAISED if hard == resource.RLIM_INFINITY else hard
    target = min(wanted, ceiling)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return MOST_RAISED if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return target


def connections_within(limit: int, wanted: int) -> int:
    """How many connections may be had under a limit of open files, with room for the rest."""
    room = min(KEPT_FREE, limit // 2)
    return max(1, min(wanted, limit - room))
