"""The program behind `scripts/bench`: what ends it, from its first moment on.

Responsible for an end by a signal: one sentence on standard error, and the exit status that a shell
gives such a program. Must not: import anything at its head that takes time; `program` is the rest.
Called by: `scripts/bench`.
"""

import sys
from typing import TYPE_CHECKING

from tests.lab.ending import AskedToEnd, end_on_signals

if TYPE_CHECKING:
    from pathlib import Path


def main() -> int:
    """Run one bench; return the exit status."""
    kept: list[Path] = []
    try:
        end_on_signals()
        # A second goes by until all of it is read, in which a signal is to be heeded as well.
        from tests.bench import program

        return program.run(sys.argv[1:], kept)
    except AskedToEnd as asked:
        what = f"kept: {', '.join(map(str, kept))}" if kept else "nothing was kept"
        sys.stderr.write(f"bench: stopped; {what}\n")
        return asked.exit_status


if __name__ == "__main__":
    sys.exit(main())
