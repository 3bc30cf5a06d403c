"""How much a bench does: what its options have told it. Called by `rows` and its modules."""

import sys
from dataclasses import dataclass

_SMOKE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Pace:
    """So many rounds; `size` is how many holdings, hostnames or the like.

    `is_smoke`: only to see that it works; what its figures say is nothing.
    """

    rounds: int
    size: int
    is_smoke: bool

    def seconds(self, usual: float) -> float:
        """How long each measurement lasts."""
        return min(usual, _SMOKE_SECONDS) if self.is_smoke else usual


def tell(text: str) -> None:
    """Say on standard error how it goes."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()
