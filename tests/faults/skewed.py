"""A gateway whose machine's clock is wrong: `skewed.py MILLISECONDS ARGUMENTS…`.

Responsible for: moving the one clock that the composition root hands out, before the product's own
command line runs. (The clock of the machine itself cannot be moved for one process.)
Must not: change anything else.
Called by: `test_clocks`, as a program.
"""

import sys

from gateway import clocks


def run(ahead_ms: int, arguments: list[str]) -> None:
    right_ms = clocks.now_ms
    setattr(clocks, "now_ms", lambda: right_ms() + ahead_ms)  # noqa: B010
    # Only now, so that whatever takes the clock takes this one.
    from gateway.cli import main

    main(arguments)


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2:])
