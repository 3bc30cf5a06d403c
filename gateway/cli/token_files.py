"""New tokens, each in a file of its own that only its owner reads; never over another one.

Called by `gateway clients apply`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

from gateway.cli.new_files import write_new

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class TokenFiles:
    """The files of a folder, which is made when it is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def place_of(self, client_id: str) -> Path:
        """The file for a client's token: its id, with what can't stand in a name as %XX."""
        return self._folder / f"{quote(client_id, safe='')}.token"

    def taken(self, client_ids: Iterable[str]) -> list[Path]:
        """The files among those for these clients that are there already."""
        return [place for place in map(self.place_of, client_ids) if os.path.lexists(place)]

    def make_folder(self) -> None:
        """Make the folder unless it is there. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, client_id: str, token: str) -> Path:
        """Write a token to the disk; raises OSError, FileExistsError where there is a file."""
        place = self.place_of(client_id)
        write_new(place, f"{token}\n")
        return place
