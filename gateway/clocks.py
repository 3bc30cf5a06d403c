"""The clocks of this machine, which the composition root hands to whatever needs one.

Must not: know Redis's clock, which all processes go by (`store.clock`). Called by `gateway.wiring`
and what is above it.
"""

import time
from typing import Final

# Where there is one, the clock that counts the time asleep too: leases lapse meanwhile.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ms() -> int:
    """This machine's clock: epoch milliseconds. Only for where Redis cannot be asked."""
    return time.time_ns() // 1_000_000


def steady_ms() -> int:
    """Milliseconds since some moment, whatever becomes of the machine's clock."""
    return time.clock_gettime_ns(_STEADY) // 1_000_000


def monotonic_us() -> int:
    """CLOCK_MONOTONIC in microseconds, as systemd compares it."""
    return time.monotonic_ns() // 1_000
