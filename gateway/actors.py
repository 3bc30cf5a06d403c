"""Who a process acts as where no call's caller does: an operator at the command line, or itself.

Reads the operating system: who runs this, and who had logged in before `sudo` or `runuser`. Called
by the composition root.
"""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path
from typing import Final

from gateway.store.deeds import Actor, Role

_LOGIN_FILE: Final = Path("/proc/self/loginuid")
_NO_LOGIN: Final = 0xFFFF_FFFF


def operator() -> Actor:
    """The person who runs this command, by the system's names for them."""
    user, login = _name_of(os.getuid()), _login()
    name = user if login in {None, user} else f"{user}, logged in as {login}"
    return Actor(Role.OPERATOR, name, remote=socket.gethostname())


def this_process() -> Actor:
    """The gateway process itself, for what nobody asked it to do."""
    host = socket.gethostname()
    return Actor(Role.PROCESS, f"{host}-{os.getpid()}", remote=host)


def _login() -> str | None:
    """Who logged in, whoever they became afterwards; None for a service, and where nobody knows."""
    try:
        login_uid = int(_LOGIN_FILE.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return None if login_uid == _NO_LOGIN else _name_of(login_uid)


def _name_of(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return f"uid {user_id}"
