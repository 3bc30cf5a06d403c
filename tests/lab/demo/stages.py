"""Reads from the gateway's own log how an issuance went.

Responsible for: when the issuance of one hostname came to each of its states.
Must not: guess; a state that the log does not name is not shown.
Called by: `story`. The gateway must log at debug level, as JSON.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

# In the order in which a smooth issuance passes through them.
MEANINGS = {
    "requested": "a key pair and a signing request were made and stored, the key sealed",
    "ordered": "the CA took the order, its URL is stored",
    "published": "the challenge's TXT record was added to the zone",
    "propagated": "every authoritative server of the zone answers it",
    "validating": "the CA was told to look",
    "ready": "the CA saw it",
    "finalizing": "the signing request is with the CA",
    "issued": "the certificate was fetched, checked against its key and name, and stored",
}


@dataclass(frozen=True)
class Stage:
    """A state, and how long after the first of them the issuance got there."""

    state: str
    after_ms: float

    @property
    def line(self) -> str:
        """For a person."""
        return f"{self.after_ms:>5.0f} ms  {self.state:<10}  {MEANINGS.get(self.state, '')}"


def stages_of(hostname: str, log_file: Path) -> list[Stage]:
    """The states that the issuance of `hostname` went through, each once, in order."""
    seen: dict[str, datetime] = {}
    for line in log_file.read_text().splitlines():
        if not line.startswith("{"):  # what a library or Python itself wrote
            continue
        entry = json.loads(line)
        if (entry.get("event"), entry.get("hostname")) == ("issuance advanced", hostname):
            seen.setdefault(entry["state"], datetime.fromisoformat(entry["timestamp"]))
    first = min(seen.values(), default=None)
    return [
        Stage(state, (moment - first).total_seconds() * 1000)
        for state, moment in seen.items()
        if first is not None
    ]
