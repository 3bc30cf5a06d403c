"""What the callers of a hostile-writer run asked, what they were told, and between which versions.

Responsible for: the values; callers that ask at random through the real interface, and note the
zone's serial before and after.
Must not: judge an answer; `truth` does.
Called by: `hostilerun` and the tests of the judge.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dns.message
import dns.query
import httpx

from tests.faults.zonehistory import ZONE, Record
from tests.integration.service.calling import SYNC, envelope

ADDRESSES = (
    *(("A", f"198.51.100.{n}") for n in range(1, 5)),
    *(("AAAA", f"2001:db8::{n}") for n in range(1, 3)),
)
TTLS = (60, 300)
_LIMIT_SECONDS = 15.0
_WITHDRAWALS = 0.25
_REPEATS = 0.6
_HEARD = 0.6


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who asks for a hostname."""

    client_id: str
    app_id: str
    hostname: str


@dataclass(frozen=True, slots=True)
class Wish:
    """The record to publish."""

    type: str
    value: str
    ttl: int


@dataclass(frozen=True, slots=True)
class Call:
    """One call and its answer. `wish` None: a withdrawal.

    `first`, `last`: the zone's serials before and after; `began`, `ended`: the same as times.
    `status` is the answer's, or the code of the refusal. `found`: the evidence of a conflict.
    """

    owner: Ownership
    wish: Wish | None
    first: int
    last: int
    began: float
    ended: float
    status: str
    record: Wish | None = None
    found: frozenset[Record] = frozenset()


@dataclass
class Desk:
    """What all callers share: where to call, the clients' tokens, and when Redis was emptied.

    `flushes`: begin and end, the end being when the tokens of the clients made again were there.
    `wishes`: what was last asked for, to be asked for again.
    """

    urls: Sequence[str]
    primary: tuple[str, int]
    tokens: dict[str, str]
    flushes: list[tuple[float, float]] = field(default_factory=list)
    wishes: dict[Ownership, Wish] = field(default_factory=dict)

    def serial(self) -> int:
        """The zone's serial, as its primary answers now."""
        host, port = self.primary
        query = dns.message.make_query(ZONE, "SOA", flags=0)
        reply = dns.query.udp(query, host, port=port, timeout=_LIMIT_SECONDS)
        return int(reply.answer[0][0].serial)


class RandomCaller:
    """Asks for one ownership after the other, until told to stop.

    `owners` has how often each of them asks, compared to others. `tell` hears most hostnames, when
    they are about to be asked for.
    """

    def __init__(
        self,
        desk: Desk,
        owners: Mapping[Ownership, int],
        chance: random.Random,
        tell: Callable[[str], None],
    ) -> None:
        self.calls: list[Call] = []
        self._desk = desk
        self._owners = list(owners)
        self._weights = list(owners.values())
        self._chance = chance
        self._tell = tell

    def run(self, is_over: threading.Event) -> None:
        with httpx.Client(trust_env=False, timeout=_LIMIT_SECONDS) as http:
            while not is_over.is_set():
                owner = self._chance.choices(self._owners, self._weights)[0]
                self.calls.append(self._ask(http, owner, self._wish(owner)))

    def _wish(self, owner: Ownership) -> Wish | None:
        if self._chance.random() < _WITHDRAWALS:
            return None
        last = self._desk.wishes.get(owner)
        if last is not None and self._chance.random() < _REPEATS:
            return last
        type_, value = self._chance.choice(ADDRESSES)
        wish = Wish(type_, value, self._chance.choice(TTLS))
        self._desk.wishes[owner] = wish
        return wish

    def _ask(self, http: httpx.Client, owner: Ownership, wish: Wish | None) -> Call:
        first, began = self._desk.serial(), time.monotonic()
        request: dict[str, object] = {
            "apiToken": self._desk.tokens[owner.client_id],
            "ownership": {"appId": owner.app_id, "hostname": owner.hostname},
        }
        if wish is None:
            request["delete"] = True
        else:
            request["record"] = {"type": wish.type, "value": wish.value, "ttl": wish.ttl}
        if self._chance.random() < _HEARD:
            self._tell(owner.hostname)
        url = self._chance.choice(self._desk.urls)
        body = http.post(url, json=envelope(SYNC, request)).json()
        ended, last = time.monotonic(), self._desk.serial()
        status, record, found = _read(body)
        return Call(owner, wish, first, last, began, ended, status, record, found)


def _read(body: dict[str, Any]) -> tuple[str, Wish | None, frozenset[Record]]:
    """An answer's status, record and evidence; of a refusal its code."""
    if body.get("error") is not None:
        return str(body["error"]["data"]["code"]), None, frozenset()
    response = body["response"]
    record = response["record"] and Wish(**response["record"])
    found = frozenset(Record(**each) for each in response["conflictingRecords"])
    return response["status"], record, found
