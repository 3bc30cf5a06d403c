"""New files that hold a secret: readable for their owner only, and never over what is there.

Called by `gateway init`, and by `cli.token_files`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_new(path: Path, text: str) -> None:
    """Write a file to the disk; raises OSError, FileExistsError where something is there."""
    # O_EXCL follows no link and takes nothing that came between a look and now.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
