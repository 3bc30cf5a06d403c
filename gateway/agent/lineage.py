"""The certificate files of one hostname on disk, as certbot's users know them.

    <certificates_dir>/live/<hostname>              one link, to ../archive/<hostname>/<version>
    <certificates_dir>/archive/<hostname>/<version>/cert.pem chain.pem fullchain.pem privkey.pem

Responsible for: a version that is whole, read back and on the disk before the link leads to it; the
swap of that one link, so that a reader who resolves it once never sees two versions; the key's
access; removing what is its own and no longer needed. Must not: judge dates (the keeper does), or
replace or remove anything that it did not write.
Called by the keepers, from threads: everything here waits for the disk.

Access is changed by a new version as well, not in place: owner, group and mode cannot change in one
step there, and `combined.pem` could not come with its siblings.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.agent.clocks import machine_now_ms
from gateway.agent.durable import (
    DiskFault,
    finished_name,
    make_folder,
    new_name,
    replace_link,
    sync_folder,
    told,
)
from gateway.agent.version_files import (
    FileAccess,
    Found,
    has_other_access,
    read_version,
    remove_version,
    restrict,
    write_version,
)
from gateway.agent.versions import (
    is_version,
    never_live,
    next_version,
    outlived,
    previous_version,
)
from gateway.contract import is_gateway_client_hostname

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gateway.client import Bundle

__all__ = ["FileAccess", "InstallFailed", "Lineage", "Unusable"]

_LOOKS: Final = 10
"""How often a version is looked for anew that was swapped away while it was being read."""


class InstallFailed(DiskFault):
    """A certificate could not be put on disk, and what was there still is. One sentence."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Nothing usable is live; why, in one sentence."""

    reason: str


class Lineage:
    """The versions of one hostname and the link to the live one.

    One writer at a time, with however many readers; readers need no lock.
    """

    def __init__(
        self,
        certificates_dir: Path,
        hostname: str,
        access: FileAccess,
        now_ms: Callable[[], int] = machine_now_ms,
    ) -> None:
        # Names of folders are made of it.
        if not is_gateway_client_hostname(hostname):
            raise ValueError(f"not a hostname: {hostname!r}")
        root = certificates_dir.absolute()
        self.hostname = hostname
        self.live = root / "live" / hostname
        self._archive = root / "archive" / hostname
        self._access = access
        self._now_ms = now_ms

    @property
    def version(self) -> str | None:
        """The version that the link leads to, None while there is none."""
        try:
            version = self._linked()
        except DiskFault:
            return None
        # It answers false also where this user may not look.
        return version if version and os.path.isdir(self._archive / version) else None

    @property
    def has_other_access(self) -> bool:
        """Whether what is live has another access than the configured one, as far as is seen."""
        version = self.version
        if version is None:
            return False
        try:
            return has_other_access(self._archive / version, self._access)
        except DiskFault:
            return False

    @property
    def obstacle(self) -> str | None:
        """What stands where the link, or its folder, belongs and is not this agent's, if any."""
        try:
            if os.path.islink(self.live.parent):
                self._demand_beside()
            self._linked()
        except DiskFault as fault:
            return None if isinstance(fault.__cause__, OSError) else str(fault)
        return None

    def look(self) -> Found | Unusable:
        """What is live, whole and matching, whatever its dates and access are; repeatable."""
        try:
            return self._find()
        except DiskFault as fault:
            return Unusable(str(fault))

    def read(self) -> Bundle | Unusable:
        """The same, without whether the access is the configured one; repeatable."""
        found = self.look()
        return found if isinstance(found, Unusable) else found.bundle

    def install(self, bundle: Bundle) -> str:
        """Have these files live, with the configured access; answers the version's name.

        Repeatable: what is live already is left as it is, and its name answered. Installing what
        `read` answers brings the access up to date.

        Raises:
            InstallFailed: the old version is live. Or, if only the last sync failed, the new one,
                which a loss of power may undo: then repeat it.

        """
        if bundle.hostname != self.hostname:
            raise ValueError(f"a certificate for {bundle.hostname} in place of {self.hostname}")
        try:
            self._make_ready()
            version = self._version_with(bundle)
            if version is None:
                version = self._next_version(bundle)
                self._write(version, bundle)
                self.sweep()
        except DiskFault as fault:
            raise InstallFailed(str(fault)) from fault
        return version

    def sweep(self) -> str | None:
        """Remove what killed runs left and versions that nobody needs; repeatable.

        The live version and the one to go back to stay, with the access that is configured now.
        Nothing is touched that has another name or content than this class makes. Answers what
        could not be done, in one sentence, or None: it is no reason not to serve.
        """
        try:
            live = self._linked()
            versions = self._versions()
            # What a link names that is not there says nothing about the rest.
            live = live if live in versions else None
            untidy = self._remove({*self._unfinished(), *outlived(versions, live)})
            previous = None if live is None else previous_version(versions, live)
        except DiskFault as fault:
            return str(fault)
        if previous is None:
            return untidy
        return self._restrict(previous) or untidy

    def _restrict(self, version: str) -> str | None:
        """Give a version the access that is configured now; answers why that was not done.

        Remove it where the agent has not the right to: who may no longer read a key must not go on
        reading the one before, and a file that was given away can often be removed only.
        """
        try:
            restrict(self._archive / version, self._access)
        except DiskFault as fault:
            if not isinstance(fault.__cause__, PermissionError):
                return str(fault)
            kept = self._remove([version])
            return kept or f"{fault}; so {self._archive / version} was removed"
        return None

    def _find(self) -> Found:
        """What the link leads to. Raises `DiskFault` where that is nothing usable."""
        for _ in range(_LOOKS):
            version = self._linked()
            if version is None:
                raise DiskFault(f"{self.live} does not exist")
            try:
                return read_version(self._archive / version, self.hostname, self._access)
            except DiskFault:
                if self._linked() == version:
                    raise
        raise DiskFault(f"{self.live} leads elsewhere each time it is read")

    def _linked(self) -> str | None:
        """The version that the link names, whether that is there or not; None without a link.

        Raises `DiskFault` where the name is another's: that of a folder, or of a link elsewhere.
        """
        with told("read the link", self.live):
            try:
                target = os.readlink(self.live)
            except FileNotFoundError:
                return None
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                raise DiskFault(f"{self.live} is not a link of this agent: move it away") from None
        folder, version = os.path.split(target.rstrip("/"))
        # A person who goes back to the previous version may spell the link in another way.
        if is_version(version) and _is_same(self.live.parent / folder, self._archive):
            return version
        raise DiskFault(f"{self.live} leads to {target}, not to this agent's files: move it away")

    def _make_ready(self) -> None:
        """Have the folders, and nobody else's thing in the link's place."""
        make_folder(self._archive)
        make_folder(self.live.parent)
        self._demand_beside()
        self._linked()

    def _demand_beside(self) -> None:
        """Raises `DiskFault` where the link would lead elsewhere."""
        beside = self.live.parent / ".." / "archive" / self.hostname
        if not _is_same(beside, self._archive):
            raise DiskFault(f"{self.live.parent} must be a folder itself, not a link to one")

    def _version_with(self, bundle: Bundle) -> str | None:
        """The live version, if it is this one with the configured access already."""
        try:
            version, found = self._linked(), self._find()
        except DiskFault:
            return None
        if found != Found(bundle, has_access=True):
            return None
        # A run that was killed may not have come to it.
        sync_folder(self.live.parent)
        return version

    def _next_version(self, bundle: Bundle) -> str:
        """The name for a new version, after removing all that nothing will ever lead to."""
        versions = self._versions()
        # On a full disk they may be what is in the way.
        self._remove({*self._unfinished(), *never_live(versions, self._linked())})
        # Not to have the name of what somebody put in a version's place.
        taken = {*versions, *filter(is_version, self._entries())}
        return next_version(taken, bundle.fingerprint, self._now_ms())

    def _write(self, version: str, bundle: Bundle) -> None:
        """Make a version whole, then live. On a fault nothing of it stays, unless it is live."""
        folder = self._archive / version
        made = self._archive / new_name(version)
        try:
            write_version(made, bundle, self._access)
            with told("rename", made):
                made.rename(folder)
            sync_folder(self._archive)
            replace_link(self.live, os.path.join("..", "archive", self.hostname, version))
        except DiskFault:
            if self.version != version:
                for left in (made, folder):
                    with contextlib.suppress(DiskFault):
                        remove_version(left)
            raise

    def _versions(self) -> list[str]:
        return [name for name in self._folders() if is_version(name)]

    def _folders(self) -> list[str]:
        return [name for name, is_folder in self._entries().items() if is_folder]

    def _entries(self) -> dict[str, bool]:
        """Everything in the archive, and whether it is a folder."""
        with told("read the folder", self._archive):
            try:
                with os.scandir(self._archive) as entries:
                    return {each.name: each.is_dir(follow_symlinks=False) for each in entries}
            except FileNotFoundError:
                return {}

    def _unfinished(self) -> list[str]:
        return [name for name in self._folders() if is_version(finished_name(name))]

    def _remove(self, names: Iterable[str]) -> str | None:
        """Remove folders of versions; answers why the first that stays does, None if none does."""
        untidy = None
        for name in sorted(names):
            try:
                remove_version(self._archive / name)
            except DiskFault as fault:
                untidy = untidy or str(fault)
        return untidy


def _is_same(folder: Path, other: Path) -> bool:
    return os.path.realpath(folder) == os.path.realpath(other)
