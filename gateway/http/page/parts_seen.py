"""The parts of the gateway as they were last seen, and what it means when one is down: pure.

Must not: look at a part; the `Monitor` does. Called by `overview`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.views.issuances import counted
from gateway.views.times import past_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.http.health import Monitor
    from gateway.http.page.needs import Waits


@dataclass(frozen=True, slots=True)
class Meaning:
    """What stops while a part of one kind is down, and where docs/operating.md says what to do."""

    stops: str
    see: str


_ISSUES_NOTHING: Final = "This process issues and renews nothing."
MEANINGS: Final = {
    "redis": Meaning(
        "Nothing can be decided: every call is answered unavailable.", "GatewayRedisFailing"
    ),
    "zone": Meaning(
        "Calls for its hostnames are answered zone-unavailable, and its certificates wait. Other"
        " zones go on. `gateway check` says what is wrong.",
        "GatewayZoneUnreachable",
    ),
    "name-servers": Meaning(
        "Records go on. Start it, or take it out of the zone's name servers.",
        "GatewayNameServerSilent",
    ),
    "acme": Meaning(
        "Records and the certificates that there are go on; what is to be issued there waits, or"
        " goes to another authority.",
        "GatewayAuthorityUnreachable",
    ),
    "worker": Meaning(_ISSUES_NOTHING, "GatewayWorkerStuck"),
    "tls": Meaning(
        "The listener's certificate is not as it should be: clients may refuse it.",
        "GatewayListenerCertificate",
    ),
}
"""By the kind of a part."""


@dataclass(frozen=True, slots=True)
class PartSeen:
    """A part of the gateway as it was last looked at: `up`, `down` or `unknown`.

    `waits` says what waits for it, where something does.
    """

    name: str
    state: str
    since_ms: int
    detail: str
    meaning: Meaning | None
    waits: str | None


def parts_seen(monitor: Monitor, waits: Mapping[str, Waits]) -> list[PartSeen]:
    """All parts; `waits` is what waits for each zone."""
    kinds = {part.name: part.kind for part, _ in monitor.states()}
    _, report = monitor.report()
    return [
        PartSeen(
            name,
            part["state"],
            part["sinceMs"],
            part.get("detail", ""),
            MEANINGS.get(kinds[name]),
            _waits_words(kinds[name], name, waits),
        )
        for name, part in report["parts"].items()
    ]


def _waits_words(kind: str, name: str, waits: Mapping[str, Waits]) -> str | None:
    if kind not in {"zone", "name-servers"}:
        return None
    found = waits.get(name.rpartition(" ")[2])
    if found is None:
        return None
    verb = "waits" if found.count == 1 else "wait"
    since = past_words(found.since_ms)
    return f"{counted(found.count, 'certificate')} {verb} for this zone, the first since {since}."
