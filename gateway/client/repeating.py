"""Whether a call that failed is made again, and after which pause. Pure.

Responsible for the one rule: a call is repeated only where that cannot do harm. All calls of the
contract can be repeated at any time but two: `ensure` and `rotate` make a token that is answered
once. If such an answer was lost, the token is lost, and a repetition would hide that or make
another one. They are repeated only if no connection was made at all.
Used by `asynchronous`.
"""

from typing import Final

from gateway.client.errors import Unreachable
from gateway.contract import GatewayError, Overloaded, Unavailable

FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 5.0


def pause_before_repeating(
    failure: GatewayError, *, repetition: int, may_repeat: bool, chance: float
) -> float | None:
    """Seconds to wait before the call is made again; None if it must not be or it is no use.

    `repetition` counts from 0. `chance` is a random number from 0 to 1, so that clients that
    failed together do not come back together. A wait that was answered is never undercut.
    """
    pause = _backoff(repetition) * (0.5 + chance / 2)
    if isinstance(failure, Unreachable):
        is_safe = may_repeat or not failure.may_have_arrived
        wait_ms = failure.retry_after_ms or 0
        return wait_ms / 1000 + pause if is_safe and not failure.is_lasting else None
    if isinstance(failure, Unavailable | Overloaded) and may_repeat:
        return failure.retry_after_ms / 1000 + pause
    return None


def _backoff(repetition: int) -> float:
    # Bounded before it is raised to a power, which a long deadline could make too large a number.
    return float(min(FIRST_PAUSE_SECONDS * 2 ** min(repetition, 16), LONGEST_PAUSE_SECONDS))
