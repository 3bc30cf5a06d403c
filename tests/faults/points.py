"""The points at which a gateway can be made to die: names for the moments around each call.

Responsible for: the names, and their text form, which a trace file holds one a line.
Must not: import anything of the gateway; the tests' own process uses it too.
Called by: `dying`, `doomed`, the tests.
"""

from dataclasses import dataclass
from typing import Self

BEFORE = "before"
AFTER = "after"
STEP = "step"


@dataclass(frozen=True, order=True)
class Point:
    """The moment on one side of one call.

    `phase` is what the gateway is at: `place-order 1` is the first time the machine commanded it,
    `after place-order 1` all that follows until the next command (storing what came of it, resting,
    leasing again). `call` is `step` for the command as a whole, or one call to the outside within
    it (`ca.post`, `dns.ask`, `redis.commit`), the `number`th of its kind in its phase.
    """

    phase: str
    call: str
    number: int
    side: str

    def __str__(self) -> str:
        return f"{self.side} {self.call} {self.number} of {self.phase}"

    @property
    def command(self) -> str:
        """The phase without its count: `place-order` for `after place-order 2`."""
        return self.phase.removeprefix("after ").rpartition(" ")[0]

    @property
    def is_past_a_rest(self) -> bool:
        """Whether it comes only where the issuance had to wait for another server."""
        is_stored = (self.call, self.number) == ("redis.commit", 1)
        return self.phase.startswith("after ") and not is_stored

    @property
    def line(self) -> str:
        return "\t".join((self.phase, self.call, str(self.number), self.side))

    @classmethod
    def from_line(cls, line: str) -> Self:
        phase, call, number, side = line.rstrip("\n").split("\t")
        return cls(phase, call, int(number), side)


def stored(state: str, number: int = 1) -> Point:
    """The moment after an issuance was stored in `state`, for the `number`th time."""
    return Point("all phases", f"storing {state}", number, AFTER)
