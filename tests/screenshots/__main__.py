"""The program behind `scripts/screenshots`: the scene, and a picture of each page.

Responsible for: the options, a line for each file on standard output, and the exit status.
Must not: know the story or the pages; `scene` and `taking` do.
Called by: `scripts/screenshots`.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.lab.browser import running_chromium
from tests.lab.ending import AskedToEnd, end_on_signals
from tests.lab.process import LabFault
from tests.screenshots.scene import playing
from tests.screenshots.taking import PICTURES, take

_FOLDER = Path("docs/images")


def main() -> int:
    """Take the pictures; return the exit status."""
    options = _read_options()
    pictures = [each for each in PICTURES if each.name in (options.page or [each.name])]
    end_on_signals()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="gateway-scene-") as folder,
            playing(Path(folder)) as played,
            running_chromium() as browser,
        ):
            for file in take(browser, played, options.folder, pictures):
                sys.stdout.write(f"{file}\n")
    except AskedToEnd:
        return 1
    except LabFault as fault:
        sys.stderr.write(f"screenshots: {fault}\n")
        return 1
    return 0


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/screenshots",
        description="Take pictures of the operator's page: a lab of its own (real Redis, BIND, "
        "Pebble) plays a story in example names, and headless Chromium looks at it.",
    )
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="where the files go")
    parser.add_argument(
        "--page",
        choices=[each.name for each in PICTURES],
        action="append",
        help="this one only (repeatable)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
