"""A zone's history: every version that its primary ever served, who made it, and what a name was.

Responsible for: reading BIND's journal, which has one version for each update that changed
anything; telling whose a version is; and what each watched name held, and would have been answered
with, in every one of them.
Must not: judge what it finds; `truth` does.
Called by: `hostilerun` and the tests of the judge.

Whose a version is tells the journal itself: each update of the other writer's also sets a counter
of its own, at a name that nobody else has a reason to touch. BIND's log, which has the key of every
update, is held against that.
"""

import re
import subprocess
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import dns.rdata
import dns.rdataclass
import dns.rdatatype

from tests.lab.process import find_program

ZONE = "example.test"
COUNTER_NAME = f"hand.{ZONE}"

_LIMIT_SECONDS = 60.0
_LOGGED = re.compile(r"/key (\S+): updating zone '[^']+': (.*)$", re.MULTILINE)
_COUNTED = re.compile(rf"""adding an RR at '{re.escape(COUNTER_NAME)}' TXT "(\d+)"$""")
_CHANGED_NAME = re.compile(r"(?:at|from name) '([^']+)'")


@dataclass(frozen=True, slots=True, order=True)
class Record:
    """One record; `name` without trailing dot, `value` as dnspython writes it."""

    name: str
    type: str
    value: str
    ttl: int

    @property
    def data(self) -> tuple[str, str, str]:
        """What it is, whatever its TTL."""
        return self.name, self.type, self.value


@dataclass(frozen=True, slots=True)
class Version:
    """What one update changed. `count`: the other writer's number of it, None for the gateway's."""

    serial: int
    count: int | None
    removed: frozenset[Record]
    added: frozenset[Record]

    @property
    def is_the_hands(self) -> bool:
        return self.count is not None

    @property
    def names(self) -> set[str]:
        return {record.name for record in self.removed | self.added}

    def at(self, name: str) -> "Version":
        """What of it is at one name."""
        removed, added = (
            frozenset(record for record in records if record.name == name)
            for records in (self.removed, self.added)
        )
        return replace(self, removed=removed, added=added)


@dataclass(frozen=True, slots=True)
class View:
    """What a name was in one version, or in several that did not differ there.

    `answered` is what a query would see: the same, or what a wildcard above makes up. `is_cut`: it
    lies at or below a delegation, or below a DNAME.
    """

    records: frozenset[Record] = frozenset()
    answered: frozenset[Record] = frozenset()
    is_cut: bool = False


def read_versions(journal_file: Path) -> list[Version]:
    """Every version of the journal, oldest first; asserts that none is missing."""
    program = find_program("named-journalprint", "bind9")
    printed = subprocess.run(
        [program, str(journal_file)],
        capture_output=True,
        text=True,
        check=True,
        timeout=_LIMIT_SECONDS,
    ).stdout
    versions = list(_parsed(printed.splitlines()))
    assert [version.serial for version in versions] == list(range(2, len(versions) + 2))
    return versions


def logged_faults(log: str, versions: Iterable[Version], key: str, hostnames: set[str]) -> set[str]:
    """How BIND's log, which knows the keys, contradicts the counters; `key` is the gateway's.

    Also what the gateway as much as asked BIND to change elsewhere than at these names.
    """
    counted: set[int] = set()
    faults: set[str] = set()
    for signer, what in _LOGGED.findall(log):
        if signer != key:
            counted.update(int(number) for number in _COUNTED.findall(what))
        elif (named := _CHANGED_NAME.search(what)) and named[1] not in hostnames:
            faults.add(f"the gateway's key asked for this: {what}")
    in_journal = {version.count for version in versions if version.count is not None}
    faults.update(f"nobody but the hand counts, yet {n} is there" for n in in_journal - counted)
    return faults


class Timeline:
    """What each of `hostnames` was, version by version. The zone's first content is left out."""

    def __init__(self, versions: Iterable[Version], hostnames: Collection[str]) -> None:
        self.versions = tuple(versions)
        self._serials = {hostname: [0] for hostname in hostnames}
        self._views = {hostname: [View()] for hostname in hostnames}
        zone = _Content()
        for version in self.versions:
            zone.apply(version)
            for hostname in hostnames:
                if any(_concerns(name, hostname) for name in version.names):
                    self._note(hostname, version.serial, zone.view(hostname))

    def at(self, hostname: str, serial: int) -> View:
        """What the name was in this version."""
        return self._views[hostname][bisect_right(self._serials[hostname], serial) - 1]

    def during(self, hostname: str, first: int, last: int) -> Sequence[View]:
        """All that the name was from one version to another, both included."""
        serials = self._serials[hostname]
        start, end = bisect_right(serials, first) - 1, bisect_right(serials, last)
        return self._views[hostname][start:end]

    def _note(self, hostname: str, serial: int, view: View) -> None:
        if view != self._views[hostname][-1]:
            self._serials[hostname].append(serial)
            self._views[hostname].append(view)


class _Content:
    """The zone as it is after some versions."""

    def __init__(self) -> None:
        self._at: dict[str, set[Record]] = {}

    def apply(self, version: Version) -> None:
        for record in version.removed:
            self._at[record.name].discard(record)
            if not self._at[record.name]:
                del self._at[record.name]
        for record in version.added:
            self._at.setdefault(record.name, set()).add(record)

    def view(self, hostname: str) -> View:
        records = frozenset(self._at.get(hostname, ()))
        return View(records, records or self._made_up(hostname), self._is_cut(hostname))

    def _made_up(self, hostname: str) -> frozenset[Record]:
        """What the wildcard at the closest encloser makes up for a name that is not there."""
        encloser = hostname
        while not self._exists(encloser):
            encloser = encloser.partition(".")[2]
        if encloser == hostname:
            return frozenset()
        made_from = self._at.get(f"*.{encloser}", ())
        return frozenset(Record(hostname, each.type, each.value, each.ttl) for each in made_from)

    def _exists(self, name: str) -> bool:
        return name == ZONE or any(_is_below(each, name) for each in self._at)

    def _is_cut(self, hostname: str) -> bool:
        level = hostname
        while level != ZONE:
            types = {record.type for record in self._at.get(level, ())}
            if "NS" in types or ("DNAME" in types and level != hostname):
                return True
            level = level.partition(".")[2]
        return False


def _parsed(lines: Iterable[str]) -> Iterator[Version]:
    """Each version begins with the removal of the SOA before it."""
    serial: int | None = None
    removed: set[Record] = set()
    added: set[Record] = set()
    for line in lines:
        verb, name, ttl, _, rdtype, value = line.split(None, 5)
        if rdtype != "SOA":
            record = Record(name.rstrip("."), rdtype, _normal(rdtype, value), int(ttl))
            (removed if verb == "del" else added).add(record)
        elif verb == "add":
            serial = int(value.split()[2])
        elif serial is not None:
            yield _version(serial, removed, added)
            removed, added = set(), set()
    if serial is not None:
        yield _version(serial, removed, added)


def _version(serial: int, removed: set[Record], added: set[Record]) -> Version:
    counts = [int(record.value.strip('"')) for record in added if record.name == COUNTER_NAME]
    if counts:
        removed = {record for record in removed if record.name != COUNTER_NAME}
        added = {record for record in added if record.name != COUNTER_NAME}
    count = counts[0] if counts else None
    return Version(serial, count, frozenset(removed), frozenset(added))


def _normal(rdtype: str, value: str) -> str:
    rdata = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(rdtype), value)
    return rdata.to_text()


def _concerns(name: str, hostname: str) -> bool:
    """May a change at `name` change what `hostname` is or is answered with?"""
    parent = name.partition(".")[2]
    return _is_below(hostname, parent) or _is_below(name, hostname)


def _is_below(name: str, above: str) -> bool:
    return name == above or name.endswith(f".{above}")
