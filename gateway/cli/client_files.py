"""Writes a certificate into a folder, for `gateway client certificate --out`.

Responsible for: four files with certbot's names, each replaced as a whole, the key readable by its
user alone. Must not: judge what it writes. A reader may see new files beside old ones for a moment:
what serves all the time is the agent's business, which swaps a pair as one. Several may write at
once, which the agent's ways of writing (`agent.durable`) rule out. Called by
`cli.client_certificate`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.client import Bundle

_KEY_MODE: Final = 0o600
_CERTIFICATE_MODE: Final = 0o644
_KEY_FILE: Final = "privkey.pem"


class FileNotWritten(Exception):
    """The system did not let a file be written; the text is one sentence with its path."""


def write_bundle(folder: Path, bundle: Bundle) -> dict[str, Path]:
    """Write the files into the folder, which is made if it is missing; answers them by their names.

    All content is on disk before the first file is replaced: where there is no room, nothing
    changes. A file that is a link is replaced and not followed. May be repeated.

    Raises:
        FileNotWritten: nothing was replaced, or not all.

    """
    contents = {
        "cert.pem": bundle.leaf_pem,
        "chain.pem": bundle.chain_pem,
        "fullchain.pem": bundle.chain_pem,
        _KEY_FILE: bundle.private_key_pem,
    }
    files = {name: folder / name for name in contents}
    drafts: dict[str, Path] = {}
    at_hand = folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            at_hand = files[name]
            drafts[name] = folder / f".{name}.{secrets.token_hex(8)}"
            _write(drafts[name], content, _KEY_MODE if name == _KEY_FILE else _CERTIFICATE_MODE)
        for name, file in files.items():
            at_hand = file
            drafts[name].replace(file)
        at_hand = folder
        _flush_folder(folder)
    except OSError as fault:
        raise FileNotWritten(f"{at_hand} cannot be written: {fault.strerror}.") from None
    finally:
        for draft in drafts.values():
            with contextlib.suppress(OSError):
                draft.unlink()
    return files


def _write(draft: Path, content: str, mode: int) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
