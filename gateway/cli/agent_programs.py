"""What `gateway agent check` sees of the programs that the agent starts.

Responsible for whether the kernel would start a deploy hook, as far as that is seen without running
it. Must not: run one. Called by `cli.agent_machine`.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.agent.durable import DiskFault, read_file
from gateway.cli.finding import Finding, State
from gateway.contract.faults import quoted

if TYPE_CHECKING:
    from gateway.agent.hook import Hook

_ELF: Final = b"\x7fELF"
_SCRIPT: Final = re.compile(rb"#![ \t]*([^ \t\n\0]*)")
_BEGINNING_BYTES: Final = 256
"""As much of a file as the kernel looks at."""


def check_hook(hostname: str, hook: Hook, user: str) -> Finding:
    """Whether this user can start a deploy hook. Reads the beginning of its program."""
    program = hook.command[0]
    if (path := shutil.which(program)) is not None:
        return _judge_file(hostname, hook, path, user)
    if "/" in program and os.path.exists(program):
        said = f"The deploy hook's program {program} cannot be run by {user}."
        return Finding(hostname, State.FAILED, said, f"chmod +x {program}")
    if "/" in program and (closed := closed_folder(program)) is not None:
        said = f"The deploy hook's program {program} is not seen: {closed} is closed to {user}."
        return Finding(hostname, State.FAILED, said, f"let the agent's user enter {closed}")
    where = "" if "/" in program else f" in the PATH {os.environ.get('PATH', '')}"
    said = f"The deploy hook's program {program} is not there{where}."
    return Finding(hostname, State.FAILED, said, "install it, or correct `deploy_hook`")


def closed_folder(path: str | Path) -> Path | None:
    """The first folder on the way to a path that this user may not enter, if there is one."""
    folders = reversed(Path(path).parents)
    return next((each for each in folders if os.path.isdir(each) and not _may_enter(each)), None)


def _may_enter(folder: Path) -> bool:
    return os.access(folder, os.X_OK, effective_ids=True)


def _judge_file(hostname: str, hook: Hook, path: str, user: str) -> Finding:
    if hook.is_text:
        said = f"The deploy hook {hook.name} is run by {path}; what that runs is not seen here."
        return Finding(hostname, State.OK, said)
    fault = _fault_of_form(path, user)
    if fault is not None:
        said = f"The deploy hook's program {path} cannot be run: {fault}."
        return Finding(hostname, State.FAILED, said, "begin it with a line such as #!/bin/sh")
    return Finding(hostname, State.OK, f"The deploy hook's program is there: {path}.")


def _fault_of_form(path: str, user: str) -> str | None:
    """Why the kernel refuses to run a file; None also where this user may run and not read it."""
    try:
        beginning = read_file(Path(path), _BEGINNING_BYTES)
    except DiskFault:
        return None
    if beginning.startswith(_ELF):
        return None
    script = _SCRIPT.match(beginning)
    if script is None:
        return "it begins with neither #! nor an ELF header"
    interpreter = os.fsdecode(script[1])
    if os.path.isfile(interpreter) and os.access(interpreter, os.X_OK, effective_ids=True):
        return None
    return f"{user} cannot run {quoted(interpreter)}, which its first line names"
