"""Brings a newer Pebble beside the system's: with renewal information (ARI) and profiles.

Responsible for: fetching Debian's package `pebble` of a later release by its name, from the archive
that this machine's own apt is configured with, in an apt root of its own; unpacking it, never
installing it; and saying why when it cannot be had.
Must not: change anything of the system's packages, or know an archive's address.
Called by: tests of renewal and of profiles, which have the scripted proxy in its place
(`AcmeProxy.offer_renewal_info`) where there is none.

What was fetched stays in `build/`, which git ignores.
"""

import functools
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab.pebble import PebbleProcess, start_pebble

_LIMIT_SECONDS = 60.0
# The second as a way out when the first one's needs another libc than this machine's.
_SUITES = ("sid", "forky")
_COMPONENT = "main"
_KEPT = Path(__file__).parents[2] / "build" / "newer-pebble"
_APT = Path("/etc/apt")
_OPTION = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True)
class Archive:
    """An archive of packages as apt is told of it; `signed_by` is its keyring, "" for apt's own."""

    address: str
    signed_by: str


class CannotBeHad(Exception):
    """There is no newer Pebble here; says why."""


def start_newer_pebble(
    folder: Path,
    dns_server: tuple[str, int],
    environ: Mapping[str, str] | None = None,
    *,
    validity_seconds: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> PebbleProcess | None:
    """Start the newer Pebble as `start_pebble` starts the system's; None where it cannot be had.

    Raises: LabFault when it is there and does not start.
    """
    program = newer_pebble()
    if program is None:
        return None
    return start_pebble(
        folder,
        dns_server,
        environ,
        validity_seconds=validity_seconds,
        settings=settings,
        program=program,
    )


def newer_pebble() -> Path | None:
    """The program, fetched unless it was before; None where it cannot be had (see `why_not`)."""
    return _found()[0]


def why_not() -> str:
    """Why `newer_pebble` is None, for a person; "" when it is not."""
    return _found()[1]


def told_missing() -> str:
    """The same without looking: "" too when nobody has asked for it yet."""
    return why_not() if _found.cache_info().currsize else ""


@functools.cache
def _found() -> tuple[Path | None, str]:
    try:
        return fetch(_KEPT, _APT, _LIMIT_SECONDS), ""
    except CannotBeHad as reason:
        return None, f"no newer Pebble here: {reason}"


def fetch(kept: Path, apt_folder: Path, limit_seconds: float) -> Path:
    """Have the newest Pebble of the configured archives unpacked below `kept`.

    Raises: CannotBeHad.
    """
    end = time.monotonic() + limit_seconds
    reasons = []
    for suite in _SUITES:
        program = kept / suite / "usr" / "bin" / "pebble"
        if not program.exists():
            try:
                _fetch_suite(kept / suite, apt_folder, suite, end)
            except CannotBeHad as reason:
                reasons.append(f"{suite}: {reason}")
                continue
        if _runs(program):
            return program
        reasons.append(f"{suite}: it does not run on this machine")
    raise CannotBeHad("; ".join(reasons))


def archives(apt_folder: Path) -> list[Archive]:
    """The archives in apt's sources, each once, in both of the forms that apt reads."""
    lists = [apt_folder / "sources.list", *sorted(apt_folder.glob("sources.list.d/*.list"))]
    found = [one for file in lists if file.exists() for one in _one_line_form(file.read_text())]
    for file in sorted(apt_folder.glob("sources.list.d/*.sources")):
        found += _deb822_form(file.read_text())
    return list(dict.fromkeys(found))


def _one_line_form(text: str) -> Iterator[Archive]:
    """Read lines of the form `deb [option=value …] address suite component…`."""
    for line in text.splitlines():
        words = _OPTION.sub(" ", line.partition("#")[0]).split()
        if len(words) >= 4 and words[0] == "deb" and _COMPONENT in words[3:]:
            options = _OPTION.search(line)
            pairs = (word.partition("=") for word in (options[1].split() if options else ()))
            signed_by = {name: value for name, _, value in pairs}.get("signed-by", "")
            yield Archive(words[1], signed_by)


def _deb822_form(text: str) -> Iterator[Archive]:
    """Read stanzas of `Field: value` lines."""
    without_comments = re.sub(r"(?m)^#.*\n?", "", text)
    for stanza in re.split(r"\n\s*\n", without_comments):
        # A line that begins with a space goes on with the field before.
        fields = dict(re.findall(r"(?m)^([A-Za-z-]+):((?:.*\n?)(?:[ \t].*\n?)*)", stanza))
        values = {name.lower(): value.split() for name, value in fields.items()}
        is_meant = "deb" in values.get("types", ()) and _COMPONENT in values.get("components", ())
        if is_meant and values.get("enabled", ["yes"]) != ["no"]:
            signed_by = values.get("signed-by", [""])
            # An embedded key takes many words; the system's keyrings are what it falls back to.
            key = signed_by[0] if len(signed_by) == 1 else ""
            yield from (Archive(address, key) for address in values.get("uris", ()))


def _fetch_suite(target: Path, apt_folder: Path, suite: str, end: float) -> None:
    """Unpack the package of one suite into the new folder `target`. Raises: CannotBeHad."""
    known = archives(apt_folder)
    if not known:
        raise CannotBeHad("apt has no archive configured")
    target.parent.mkdir(parents=True, exist_ok=True)
    reasons = []
    for archive in known:
        root = Path(tempfile.mkdtemp(prefix=f"{suite}-", dir=target.parent))
        try:
            package = _download(root, archive, suite, end)
            unpacked = root / "unpacked"
            _run(["dpkg-deb", "-x", str(package), str(unpacked)], root, end)
            _keep(unpacked, target)
        except CannotBeHad as reason:
            reasons.append(str(reason))
        else:
            return
        finally:
            shutil.rmtree(root)
    raise CannotBeHad(reasons[0])


def _download(root: Path, archive: Archive, suite: str, end: float) -> Path:
    sources = root / "archive.list"
    option = f" [signed-by={archive.signed_by}]" if archive.signed_by else ""
    sources.write_text(f"deb{option} {archive.address} {suite} {_COMPONENT}\n")
    for name in ("lists/partial", "cache/archives/partial", "got"):
        (root / name).mkdir(parents=True)
    # Everything else, its proxies and what it trusts, is as this machine's apt is configured.
    options = [
        f"Dir::Etc::SourceList={sources}",
        "Dir::Etc::SourceParts=/dev/null",
        "Dir::Etc::Preferences=/dev/null",
        "Dir::Etc::PreferencesParts=/dev/null",
        f"Dir::State::Lists={root / 'lists'}",
        f"Dir::Cache={root / 'cache'}",
        "Acquire::Languages=none",
        "Acquire::Retries=0",
    ]
    command = ["apt-get", "-qq", *(f"--option={option}" for option in options)]
    _run([*command, "update"], root, end)
    _run([*command, "download", "pebble"], root / "got", end)
    packages = list((root / "got").glob("pebble_*.deb"))
    if len(packages) != 1:
        raise CannotBeHad("the archive has no package pebble")
    return packages[0]


def _run(command: list[str], folder: Path, end: float) -> None:
    program = Path(command[0]).name
    try:
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=max(end - time.monotonic(), 0.1),
        )
    except FileNotFoundError:
        raise CannotBeHad(f"{program} is missing") from None
    except subprocess.TimeoutExpired:
        raise CannotBeHad(f"{program} took too long") from None
    except subprocess.CalledProcessError as failed:
        # Not in apt's own words: they hold the archive's address.
        raise CannotBeHad(f"{program} ended with {failed.returncode}") from None


def _keep(unpacked: Path, target: Path) -> None:
    try:
        unpacked.rename(target)
    except OSError:
        # Another process was first; what it has put there is as good.
        if not target.exists():
            raise


def _runs(program: Path) -> bool:
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    # 2.4.0 knows no such option: a release that was not renewed yet is none that is wanted.
    return answer.returncode == 0
