"""A gateway on a machine that is called something else: `named.py NAME ARGUMENTS…`.

Responsible for: the machine's name, which workers and the audit trail tell; a picture shall not
show the name of the machine that it was taken on.
Must not: change anything else.
Called by: `scene`, as a program.
"""

import socket
import sys

from gateway.cli import main


def run(name: str, arguments: list[str]) -> None:
    """Become the gateway."""
    setattr(socket, "gethostname", lambda: name)  # noqa: B010
    main(arguments)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2:])
