"""The reference of a sync: BIND's own nsupdate, one process, one signed message for each name.

Each message is as careful as the gateway's: it creates a name only if there is none, and replaces
what is as it was left. Must not: judge; `syncs` reads the zones afterwards. Called by `syncs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.commands import run
from tests.bench.stock import TTL
from tests.lab.bind import BindPair
from tests.lab.process import LabFault, find_program

_LIMIT_SECONDS = 300.0
_MARKER = "gateway-owner=v1:k1:AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class Change:
    """A name below the zone gets an address, in place of the one `before` if there was one."""

    label: str
    value: str
    before: str = ""


def apply_each(bind: BindPair, zone: str, changes: Sequence[Change]) -> float:
    """Send one message after the other; how many seconds it took.

    Raises: LabFault when one of them is refused, or it takes too long.
    """
    key = bind.tsig
    script = [
        "server {} {}".format(*bind.primary),
        f"zone {zone}",
        f"key {key.algorithm}:{key.name} {key.secret_base64}",
        *(line for change in changes for line in _lines(f"{change.label}.{zone}.", change)),
    ]
    command = [find_program("nsupdate", "bind9-dnsutils")]
    ended = run(command, given="\n".join([*script, ""]), limit_seconds=_LIMIT_SECONDS)
    if ended.stderr:
        raise LabFault(f"nsupdate failed: {ended.stderr}")
    return ended.seconds


def _lines(name: str, change: Change) -> list[str]:
    added = [f"update add {name} {TTL} A {change.value}"]
    marker = f'"{_MARKER}{change.value}"'
    added += [f"update add {name} {TTL} TXT {marker}", "send"]
    if not change.before:
        return [f"prereq nxdomain {name}", *added]
    old_marker = f'"{_MARKER}{change.before}"'
    return [
        f"prereq yxrrset {name} A {change.before}",
        f"prereq yxrrset {name} TXT {old_marker}",
        f"update delete {name} A",
        f"update delete {name} TXT {old_marker}",
        *added,
    ]
