"""The audit trail of a lab, as `gateway audit --json` tells it.

Used by the tests of this folder. Entries are written a moment after a call is answered: what a test
expects, it waits for.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.integration.service.calling import CONTEXT, Caller
from tests.integration.service.test_commands import gateway
from tests.lab.lab import Lab
from tests.lab.process import LabFault, wait_until

Entry = dict[str, Any]


def trail(lab: Lab, *options: str) -> list[Entry]:
    """The entries that are there now, the oldest first."""
    shown = gateway(lab, "audit", "--json", "--limit", "1000", *options)
    assert shown.returncode == 0, shown.stderr
    return [json.loads(line) for line in shown.stdout.splitlines()]


def told_of(lab: Lab, hostname: str, *expected: tuple[str, str]) -> list[Entry]:
    """The entries of a hostname, once they are these deeds and outcomes; in the order given.

    Two processes may write what they did one after the other in either order.
    """
    found: list[Entry] = []

    def are_there() -> bool:
        found[:] = trail(lab, "--hostname", hostname)
        return sorted(deeds(found)) == sorted(expected)

    _wait(are_there, found)
    return [found.pop(deeds(found).index(each)) for each in expected]


def told_of_client(lab: Lab, client_id: str, holds: Callable[[list[Entry]], bool]) -> list[Entry]:
    """The entries of a client, once they are as expected."""
    found: list[Entry] = []

    def are_there() -> bool:
        found[:] = trail(lab, "--client", client_id)
        return holds(found)

    _wait(are_there, found)
    return found


def deeds(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(entry["what"], entry["outcome"]) for entry in entries]


def who(caller: Caller) -> tuple[str, str]:
    """A caller's client id and credential id."""
    context = caller.call(CONTEXT)["context"]
    return context["clientId"], context["credentialId"]


def _wait(condition: Callable[[], bool], found: list[Entry]) -> None:
    try:
        wait_until(condition, "the entries are in the trail", pause_seconds=0.2)
    except LabFault as fault:
        raise AssertionError(f"{fault}; there are {found}") from None
