"""The ownerships that a marker may be proven for: a marker names nobody, so they must be supposed.

Pure. Knows no policy: whether a client may have a hostname is asked of who knows it. Called by
`rebuilding`; made by the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import app_id_fault, client_id_fault
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class Supposed:
    """An ownership that somebody remembers; without a hostname it stands for all of them."""

    client_id: ClientId
    app_id: AppId
    hostname: Hostname | None = None


class Candidates:
    """All that is supposed. `may_hold` says whether a client's policy covers a hostname."""

    def __init__(
        self,
        client_ids: Iterable[ClientId],
        app_ids: Iterable[AppId],
        supposed: Iterable[Supposed],
        may_hold: Callable[[ClientId, Hostname], bool],
    ) -> None:
        self._client_ids = tuple(client_ids)
        self._app_ids = dict.fromkeys(app_ids)
        self._everywhere: list[Supposed] = []
        self._at: dict[Hostname, list[Supposed]] = {}
        self._may_hold = may_hold
        for each in supposed:
            self._app_ids[each.app_id] = None
            if each.hostname is None:
                self._everywhere.append(each)
            else:
                self._at.setdefault(each.hostname, []).append(each)

    def add_app_id(self, app_id: AppId) -> None:
        """Try this `appId` for every client as well."""
        self._app_ids[app_id] = None

    def clients_of(self, hostname: Hostname) -> list[ClientId]:
        """The clients whose policy covers a hostname."""
        return [each for each in self._client_ids if self._may_hold(each, hostname)]

    def of(self, hostname: Hostname) -> list[Owner]:
        """The candidates for a hostname, each once, those named by somebody first."""
        named = (*self._at.get(hostname, ()), *self._everywhere)
        owners = dict.fromkeys(Owner(each.client_id, each.app_id, hostname) for each in named)
        for client_id in self.clients_of(hostname):
            for app_id in self._app_ids:
                owners[Owner(client_id, app_id, hostname)] = None
        return list(owners)


def read_supposed(text: str) -> tuple[list[Supposed], list[str]]:
    """Ownerships and faults of a text with a line `clientId appId [hostname]` for each.

    Empty lines, and those that begin with `#`, say nothing.
    """
    supposed, faults = [], []
    for number, words in _lines(text):
        parts = words.split()
        if len(parts) not in {2, 3}:
            faults.append(f"line {number} must be `clientId appId [hostname]`, not {words!r}")
            continue
        client_id, app_id, hostname = (*parts, None)[:3]
        checks = [("clientId", client_id_fault(client_id)), ("appId", app_id_fault(app_id))]
        if hostname is not None:
            checks.append(("hostname", hostname_fault(hostname)))
        wrong = [f"line {number}: {name} {fault}" for name, fault in checks if fault is not None]
        faults += wrong
        if not wrong:
            name = None if hostname is None else Hostname(hostname)
            supposed.append(Supposed(ClientId(str(client_id)), AppId(str(app_id)), name))
    return supposed, faults


def read_hostnames(text: str) -> tuple[list[Hostname], list[str]]:
    """Hostnames and faults of a text with a hostname on each line."""
    hostnames, faults = [], []
    for number, word in _lines(text):
        fault = hostname_fault(word)
        if fault is None:
            hostnames.append(Hostname(word))
        else:
            faults.append(f"line {number} {fault}")
    return hostnames, faults


def _lines(text: str) -> Iterable[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        if words and not words.startswith("#"):
            yield number, words
