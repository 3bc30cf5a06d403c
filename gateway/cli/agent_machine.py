"""What `gateway agent check` sees of this machine, with the rights of who runs it.

Responsible for: whether the agent can write where it must, give files to whom it must, and start
its hooks; and whether one runs. Must not: write to find that out, or run a hook. What a unit's
sandbox forbids is not seen from outside of it. Called by `cli.agent_check`.
"""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.agent.durable import DiskFault
from gateway.agent.lineage import Lineage, Unusable
from gateway.agent.lock import NAME
from gateway.agent.running import holder_of
from gateway.agent.version_files import is_key_withheld
from gateway.cli.finding import Finding, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.agent.config import AgentSettings, CertificateSettings, OwnershipSettings
    from gateway.agent.hook import Hook

_LEAST_FREE_BYTES: Final = 1 << 20
_CAP_CHOWN: Final = 1 << 0
_WRITING: Final = os.R_OK | os.W_OK | os.X_OK


def check_machine(settings: AgentSettings) -> list[Finding]:
    """All that can be seen without writing. Blocks for a few system calls for each hostname."""
    return [
        *_user(settings.state_dir),
        *_folders(settings),
        *_textfile(settings.textfile),
        *(
            finding
            for each in settings.ownerships
            if each.certificate is not None
            for finding in _certificate(settings, each, each.certificate)
        ),
        _agent(settings.state_dir),
    ]


def _user(state_dir: Path) -> Iterator[Finding]:
    """Whose rights were looked at: root's say nothing of another user's."""
    try:
        owner = state_dir.stat().st_uid
    except OSError:
        return  # it is to be made, or `_folders` says why not
    if owner != os.geteuid():
        name = _name_of(owner)
        said = f"This check runs as {_name_of(os.geteuid())}, and {state_dir} is of {name}."
        yield Finding("user", State.WARNING, said, f"run it as the agent's user: sudo -u {name}")


def _folders(settings: AgentSettings) -> Iterator[Finding]:
    for folder, what in (
        (settings.state_dir, "state_dir"),
        (settings.certificates_dir, "certificates_dir"),
    ):
        below = _below(settings, folder)
        faults = [fault for each in (folder, *below) if (fault := _unwritable(each)) is not None]
        remedy = f"chown -R {_name_of(os.geteuid())} {folder}, or run this as the agent's user"
        if not faults:
            said = f"{folder} can be written." if folder.is_dir() else f"{folder} can be made."
            yield Finding(what, State.OK, said)
        # One that is the reason for several is told once.
        for fault in dict.fromkeys(faults):
            yield Finding(what, State.FAILED, fault, remedy)
        yield from _space(folder, what)


def _below(settings: AgentSettings, folder: Path) -> list[Path]:
    """What the agent writes in a folder, as far as it is there."""
    if folder == settings.state_dir:
        paths = [folder / NAME, folder / "state"]
    else:
        archive = folder / "archive"
        names = [each.hostname for each in settings.ownerships if each.certificate is not None]
        paths = [folder / "live", archive, *(archive / name for name in names)]
    return [path for path in paths if os.path.lexists(path)]


def _unwritable(path: Path) -> str | None:
    """Why a folder cannot be written, or made; or a file of the agent's not be changed."""
    nearest = next(each for each in (path, *path.parents) if os.path.lexists(each))
    is_lock = path.name == NAME
    if not is_lock and not nearest.is_dir():
        return f"{nearest} is in the way: it is no folder."
    needed = os.R_OK | os.W_OK if is_lock else _WRITING
    if os.access(nearest, needed, effective_ids=True):
        return None
    if os.statvfs(nearest).f_flag & os.ST_RDONLY:
        return f"{nearest} is on a disk that is mounted read-only."
    return f"{nearest} cannot be written by {_name_of(os.geteuid())}."


def _space(folder: Path, what: str) -> Iterator[Finding]:
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    disk = os.statvfs(nearest)
    if disk.f_bavail * disk.f_frsize < _LEAST_FREE_BYTES:
        yield Finding(what, State.FAILED, f"The disk of {nearest} is full.", "make room on it")


def _textfile(textfile: Path | None) -> Iterator[Finding]:
    if textfile is None:
        return
    folder = textfile.parent
    if not folder.is_dir():
        said, remedy = f"There is no folder {folder}.", "make it, or correct `textfile`"
    elif (fault := _unwritable(folder)) is not None:
        said, remedy = fault, "let the agent's user write there, and name it in ReadWritePaths="
    else:
        yield Finding("textfile", State.OK, f"{folder} can be written.")
        return
    yield Finding("textfile", State.FAILED, said, remedy)


def _certificate(
    settings: AgentSettings, each: OwnershipSettings, certificate: CertificateSettings
) -> Iterator[Finding]:
    hostname, access = each.hostname, certificate.access
    lineage = Lineage(settings.certificates_dir, hostname, access)
    found = lineage.read()
    if isinstance(found, Unusable) and os.path.lexists(lineage.live):
        if lineage.version is None:
            yield Finding(hostname, State.FAILED, f"{found.reason}.", "then start the agent")
        elif not is_key_withheld(lineage.live):
            said = f"What is on disk cannot be used: {found.reason}."
            yield Finding(hostname, State.WARNING, said, "the agent fetches it anew")
    if _may_not_give(access.owner, access.group):
        said = f"{_name_of(os.geteuid())} may not give files to the `owner` or `group` asked for."
        remedy = "grant it in the unit, as gateway-agent.service shows; this check cannot see it"
        yield Finding(hostname, State.WARNING, said, remedy)
    if certificate.hook is not None:
        yield _hook(hostname, certificate.hook)


def _hook(hostname: str, hook: Hook) -> Finding:
    program = hook.command[0]
    if (path := shutil.which(program)) is not None:
        said = f"The deploy hook's program is there: {path}."
        if hook.is_text:
            said = f"The deploy hook {hook.name} is run by {path}; what that runs is not seen here."
        return Finding(hostname, State.OK, said)
    if "/" in program and Path(program).exists():
        said = f"The deploy hook's program {program} cannot be run by {_name_of(os.geteuid())}."
        return Finding(hostname, State.FAILED, said, f"chmod +x {program}")
    where = "" if "/" in program else f" in the PATH {os.environ.get('PATH', '')}"
    said = f"The deploy hook's program {program} is not there{where}."
    return Finding(hostname, State.FAILED, said, "install it, or correct `deploy_hook`")


def _may_not_give(owner: int | None, group: int | None) -> bool:
    """Whether files would have to go to a user or group that this process may not give them to."""
    if _capabilities() & _CAP_CHOWN:
        return False
    groups = {os.getegid(), *os.getgroups()}
    return owner not in (None, os.geteuid()) or (group is not None and group not in groups)


def _capabilities() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _agent(state_dir: Path) -> Finding:
    try:
        holder = holder_of(state_dir)
    except DiskFault as fault:
        return Finding("agent", State.WARNING, f"Whether one runs is not known: {fault}.")
    return Finding("agent", State.OK, "None runs." if holder is None else f"It runs: {holder}.")


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"#{user}"
