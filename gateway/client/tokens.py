"""Where a token comes from: a file, an environment variable, a systemd credential.

Responsible for: reading the token anew at each use, so that a rotated one is taken without a
restart, and for saying in one sentence why there is none. Must not: keep, show or log a token.
Used by the agent and by the command line; a program may give `TokenSource.read` to its client.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

CREDENTIALS_VARIABLE: Final = "CREDENTIALS_DIRECTORY"

TokenKind = Literal["file", "env", "credential"]

_MAX_TOKEN_BYTES: Final = 4096
_BEGINNINGS: Final = ("gwc_", "gwa_")


class TokenUnreadable(Exception):
    """There is no token to be had; the text is one sentence without it, for the operator."""


def token_of(text: str, source: str) -> str:
    """The one token in a text, without the space around it; `source` is its place in a sentence.

    Raises:
        TokenUnreadable: there is none, more than one word, or a word that no gateway makes.

    """
    if not text.strip():
        raise TokenUnreadable(f"{source} holds no token: it is empty")
    try:
        token = one_word(text)
    except ValueError:
        raise TokenUnreadable(f"{source} must hold one token and nothing else") from None
    if not token.startswith(_BEGINNINGS):
        raise TokenUnreadable(f"{source} holds no token: those begin with gwc_ or gwa_")
    return token


def one_word(text: str) -> str:
    """A text that may be a token, without the space around it.

    Raises:
        ValueError: it is empty, has space inside, or something that is not printable ASCII.

    """
    word = text.strip()
    if not word or not word.isascii() or not word.isprintable() or " " in word:
        raise ValueError("The token must be one word of printable ASCII.")
    return word


@dataclass(frozen=True, slots=True)
class TokenSource:
    """One of the three places. `name` is an absolute path, a variable or a credential's name.

    `may_be_pipe`: also a file that another program writes while it is read, such as a shell's
    `<(pass show …)`. It can be read once, and reading waits for that program.
    """

    kind: TokenKind
    name: str
    environ: Mapping[str, str] = field(repr=False)
    may_be_pipe: bool = False

    def read(self) -> str:
        """The token, read now. Blocks for one small file at most; may be repeated.

        Raises:
            TokenUnreadable: no such place, not readable, empty, or more than one word.

        """
        raw = self._from_variable() if self.kind == "env" else self._from_file()
        return token_of(raw, str(self))

    def warning(self) -> str | None:
        """What an operator should know though the token can be read; None when all is well."""
        file = self.path
        if file is None:
            return None
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            return None  # `read` tells that
        if not mode & (stat.S_IROTH | stat.S_IWOTH):
            return None
        may = "read" if mode & stat.S_IROTH else "changed"
        return f"{self} may be {may} by every user of this machine (mode {mode:04o}): chmod 0600"

    @property
    def path(self) -> Path | None:
        """The file that is read; None for a variable, and for a credential outside of systemd."""
        if self.kind == "file":
            return Path(self.name)
        folder = self.environ.get(CREDENTIALS_VARIABLE)
        return Path(folder, self.name) if self.kind == "credential" and folder else None

    def __str__(self) -> str:
        if self.kind == "env":
            return f"the environment variable {self.name}"
        if self.kind == "credential":
            return f"the systemd credential {self.name}"
        return f"the token file {self.name}"

    def _from_variable(self) -> str:
        token = self.environ.get(self.name)
        if token is None:
            raise TokenUnreadable(f"{self} is not set")
        return token

    def _from_file(self) -> str:
        file = self.path
        if file is None:
            raise TokenUnreadable(
                f"{self} is not there: ${CREDENTIALS_VARIABLE} is not set, as it is in a unit with"
                f" LoadCredential={self.name}:PATH"
            )
        try:
            mode = file.stat().st_mode
            if not stat.S_ISREG(mode) and not (self.may_be_pipe and stat.S_ISFIFO(mode)):
                raise TokenUnreadable(f"{self} is not a file")
            with file.open("rb") as stream:
                content = stream.read(_MAX_TOKEN_BYTES + 1)
        except OSError as fault:
            raise TokenUnreadable(f"{self} cannot be read: {fault.strerror}") from None
        if len(content) > _MAX_TOKEN_BYTES:
            raise TokenUnreadable(f"{self} is too large to be a token")
        # What is no ASCII is no token; `read` says so.
        return content.decode("ascii", "replace")
