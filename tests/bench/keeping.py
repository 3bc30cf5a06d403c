"""Where the reports of `rows` are kept, if anywhere: in a folder, or for `docs/performance.md`.

Responsible for seeing beforehand that they can be: an hour of measuring is not to be lost by a
folder that cannot be written. A report that cannot be kept for all that is a fault of the run.
Called by `program`.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.bench import document, plots
from tests.bench.paces import tell
from tests.bench.rows import ROWS

CALLED_FROM = "BENCH_CALLED_FROM"
"""In the environment: the folder that a relative one is meant from; `scripts/bench` has left it."""

_DOCS = Path(__file__).parents[2] / "docs"


class Unkeepable(Exception):
    """Nothing can be kept where it is to be; the text is for the person at the terminal."""


class Keeping:
    """Keeps reports and their curves in a folder, or in the documentation, or not at all.

    `kept` gets every file that was written.
    """

    def __init__(self, folder: Path | None, kept: list[Path], *, is_written: bool) -> None:
        self._kept = kept
        self._said = f"--plots {folder}"
        self._folder = folder and Path(os.environ.get(CALLED_FROM, os.curdir)) / folder
        self._page: Path | None = None
        if is_written:
            self._said = "--write"
            self._folder, self._page = _DOCS / "measured", _DOCS / "performance.md"

    def prepare(self) -> None:
        """Make the folder, and see that it can be written. Raises: Unkeepable."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder):
                pass
            if self._page is not None:
                document.require_place(self._page)
                with self._page.open("r+"):
                    pass
        except OSError as fault:
            raise Unkeepable(f"{self._said}: {fault.filename}: {fault.strerror}") from fault
        except ValueError as fault:
            raise Unkeepable(f"{self._said}: {fault}") from fault

    def keep(self, report: dict[str, Any]) -> list[str]:
        """Write a report down, and draw its curves; what could not be kept, in a sentence."""
        if self._folder is None:
            return []
        name = report["bench"]
        try:
            self._write(self._folder / f"{name}.json", f"{json.dumps(report)}\n")
            for curve in report.get("curves", ()):
                self._write(self._folder / f"{name}-{curve['name']}.svg", plots.draw(curve))
            if self._page is not None:
                document.rewrite(self._page, self._folder, tuple(ROWS))
                self._note(self._page)
        except OSError as fault:
            unkept = f"not all of its report was kept: {fault.filename}: {fault.strerror}"
        except ValueError as fault:
            unkept = f"not all of its report was kept: {fault}"
        else:
            return []
        tell(f"{name}: {unkept}")
        return [unkept]

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text)
        self._note(file)

    def _note(self, file: Path) -> None:
        tell(f"written: {file}")
        if file not in self._kept:
            self._kept.append(file)
