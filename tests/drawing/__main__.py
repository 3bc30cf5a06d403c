"""`scripts/state-diagram`: writes the machine's diagram into `docs/architecture.md`."""

import sys

from tests.drawing.exploring import explore
from tests.drawing.mermaid import DOCUMENT, draw, placed


def main() -> None:
    """Write the page anew where the machine has changed."""
    page = DOCUMENT.read_text()
    drawn = placed(page, draw(explore()))
    if drawn != page:
        DOCUMENT.write_text(drawn)
    said = "is current" if drawn == page else "was written anew"
    sys.stdout.write(f"{DOCUMENT.name} {said}.\n")


if __name__ == "__main__":
    main()
