"""What `gateway agent check` sees of this machine, with the rights of who runs it.

Responsible for: whether the agent can write where it must, give files to whom it must, and start
its hooks; and whether one runs. Must not: write to find that out, or run a hook. What a unit's
sandbox forbids is not seen from outside of it. Called by `cli.agent_check`.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.agent.durable import DiskFault, new_name
from gateway.agent.lineage import Lineage, Unusable
from gateway.agent.lock import NAME
from gateway.agent.memory import Memories
from gateway.agent.metrics import unfinished_textfile
from gateway.agent.running import holder_of
from gateway.agent.version_files import is_key_withheld
from gateway.cli.agent_programs import check_hook, closed_folder
from gateway.cli.finding import Finding, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.agent.config import AgentSettings, CertificateSettings, OwnershipSettings

_KIB: Final = 1024
_LEAST_FREE_KIB: Final = 1024
_LEAST_FREE_FILES: Final = 16
_CAP_CHOWN: Final = 1 << 0
_ENTERING: Final = os.X_OK
_WRITING: Final = os.R_OK | os.W_OK | os.X_OK


@dataclass(frozen=True, slots=True)
class _Fault:
    """What keeps the agent from writing, in one sentence, and what to do about it."""

    said: str
    remedy: str


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
        said = f"This check runs as {_user_name()}, and {state_dir} is of {name}."
        yield Finding("user", State.WARNING, said, f"run it as the agent's user: sudo -u {name}")


def _folders(settings: AgentSettings) -> Iterator[Finding]:
    for folder, what, faults in (
        (settings.state_dir, "state_dir", _state_faults(settings)),
        (settings.certificates_dir, "certificates_dir", _certificate_faults(settings)),
    ):
        told: dict[str, _Fault] = {}
        for fault in faults:
            if fault is not None:
                # One that is the reason for several is told once.
                told.setdefault(fault.said, fault)
        if not told:
            said = f"{folder} can be {'written' if os.path.isdir(folder) else 'made'}."
            yield Finding(what, State.OK, said)
        for fault in told.values():
            yield Finding(what, State.FAILED, fault.said, fault.remedy)
        yield from _space(folder, what)


def _state_faults(settings: AgentSettings) -> Iterator[_Fault | None]:
    folder, memories = settings.state_dir, Memories(settings.state_dir)
    yield _unwritable(folder)
    yield _lock_fault(folder / NAME)
    yield _unwritable(folder / "state")
    for each in settings.ownerships:
        file = memories.path(each.hostname)
        yield _folder_in_the_way(file)
        yield _folder_in_the_way(file.with_name(new_name(file.name)))


def _certificate_faults(settings: AgentSettings) -> Iterator[_Fault | None]:
    folder, live = settings.certificates_dir, settings.certificates_dir / "live"
    yield _unwritable(folder)
    yield _lock_fault(folder / NAME)
    hostnames = [each.hostname for each in settings.ownerships if each.certificate is not None]
    if hostnames:
        yield _unwritable(live)
    for hostname in hostnames:
        yield _unwritable(folder / "archive" / hostname)
        yield _no_link(live / new_name(hostname))


def _unwritable(path: Path) -> _Fault | None:
    """Why a folder cannot be written, or made."""
    nearest = next(each for each in (path, *path.parents) if os.path.lexists(each))
    if os.path.islink(nearest) and not os.path.exists(nearest):
        said = f"{nearest} leads to {os.readlink(nearest)}, which {_user_name()} does not see."
        return _Fault(said, "make that folder, or let the agent's user see it")
    if not os.path.isdir(nearest):
        return _Fault(f"{nearest} is in the way: it is no folder.", "remove it")
    if nearest != path:
        begun = nearest / new_name(path.relative_to(nearest).parts[0])
        if (fault := _begun_by_another(begun)) is not None:
            return fault
    if not os.access(nearest, _WRITING, effective_ids=True):
        return _denied(nearest, path)
    return None


def _denied(nearest: Path, wanted: Path) -> _Fault:
    """Why this user may not do something that is there, which keeps it from what is wanted."""
    user, as_agent = _user_name(), "or run this as the agent's user"
    if os.statvfs(nearest).f_flag & os.ST_RDONLY:
        said = f"{nearest} is on a disk that is mounted read-only."
        return _Fault(said, "mount that for writing, or name a folder elsewhere")
    if os.path.isdir(nearest) and not os.access(nearest, _ENTERING, effective_ids=True):
        return _Fault(f"{nearest} is closed to {user}.", f"let {user} enter it, {as_agent}")
    remedy = f"chown -R {user} {nearest}" if nearest == wanted else f"install -d -o {user} {wanted}"
    return _Fault(f"{nearest} cannot be written by {user}.", f"{remedy}, {as_agent}")


def _lock_fault(path: Path) -> _Fault | None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None  # it is to be made, or what is told of its folder is the reason
    if not stat.S_ISREG(mode):
        return _Fault(f"{path} is in the way: it is no file.", "remove it")
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
        return _denied(path, path)
    return None


def _begun_by_another(path: Path) -> _Fault | None:
    """What has the name that a folder has while it is made, and cannot be gone on with."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return _Fault(f"{path} is in the way: it is no folder.", "remove it")
    if status.st_uid != os.geteuid():
        return _Fault(f"{path} is in the way: it is of {_name_of(status.st_uid)}.", "remove it")
    return None


def _folder_in_the_way(path: Path) -> _Fault | None:
    """A folder where a file is to be, which takes the place of anything else."""
    if os.path.islink(path) or not os.path.isdir(path):
        return None
    return _Fault(f"{path} is in the way: it is a folder.", "remove it")


def _no_link(path: Path) -> _Fault | None:
    """What is no link where the new link is made."""
    if os.path.islink(path) or not os.path.lexists(path):
        return None
    return _Fault(f"{path} is in the way: it is no link.", "remove it")


def _space(folder: Path, what: str) -> Iterator[Finding]:
    nearest = next(each for each in (folder, *folder.parents) if os.path.exists(each))
    disk = os.statvfs(nearest)
    free_kib = disk.f_bavail * disk.f_frsize // _KIB
    if free_kib < _LEAST_FREE_KIB:
        said = f"{free_kib} KiB are free on the disk of {nearest}; {_LEAST_FREE_KIB} are needed."
        yield Finding(what, State.FAILED, said, "make room on it")
    # Some file systems have no bound, and count none.
    if disk.f_files and disk.f_favail < _LEAST_FREE_FILES:
        said = f"The disk of {nearest} takes {disk.f_favail} more files; {_LEAST_FREE_FILES} are "
        yield Finding(what, State.FAILED, f"{said}needed.", "remove files from it")


def _textfile(textfile: Path | None) -> Iterator[Finding]:
    if textfile is None:
        return
    folder = textfile.parent
    fault = _unwritable(folder)
    if (closed := closed_folder(textfile)) is not None:
        fault = _denied(closed, folder)
    elif not os.path.isdir(folder):
        fault = _Fault(f"There is no folder {folder}.", "make it, or correct `textfile`")
    elif fault is not None:
        remedy = f"{fault.remedy}; in a unit it must be named in ReadWritePaths="
        fault = _Fault(fault.said, remedy)
    else:
        fault = _folder_in_the_way(textfile) or _folder_in_the_way(unfinished_textfile(textfile))
    if fault is None:
        yield Finding("textfile", State.OK, f"{folder} can be written.")
    else:
        yield Finding("textfile", State.FAILED, fault.said, fault.remedy)


def _certificate(
    settings: AgentSettings, each: OwnershipSettings, certificate: CertificateSettings
) -> Iterator[Finding]:
    hostname, access = each.hostname, certificate.access
    lineage = Lineage(settings.certificates_dir, hostname, access)
    found, obstacle = lineage.read(), lineage.obstacle
    if obstacle is not None:
        remedy = "the agent puts its own link there when that place is free"
        yield Finding(hostname, State.FAILED, f"{obstacle}.", remedy)
    elif (
        isinstance(found, Unusable)
        and os.path.lexists(lineage.live)
        and not is_key_withheld(lineage.live)
    ):
        said = f"What is on disk cannot be used: {found.reason}."
        yield Finding(hostname, State.WARNING, said, "the agent fetches it anew")
    if _may_not_give(access.owner, access.group):
        said = f"{_user_name()} may not give files to the `owner` or `group` asked for."
        remedy = "grant it in the unit, as gateway-agent.service shows; this check cannot see it"
        yield Finding(hostname, State.WARNING, said, remedy)
    if certificate.hook is not None:
        yield check_hook(hostname, certificate.hook, _user_name())


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


def _user_name() -> str:
    return _name_of(os.geteuid())


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"#{user}"
