"""Publishing records through the API, beside a dnspython loop and nsupdate at the same BIND.

Responsible for three kinds of sync (nothing to change; new hostnames, and other addresses for them,
64 at once, all in one zone as nsupdate's), and for reading the zones afterwards: each name has the
address it should have, and one marker. Called by `rows`.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype

from tests.bench import bodies, wrk
from tests.bench.bursts import Burst, Load, keep_up, send_each
from tests.bench.comparing import alternate, at_least, compared
from tests.bench.gateways import serving
from tests.bench.nsupdate import Change, apply_each
from tests.bench.paces import Pace, tell
from tests.bench.spending import Spending
from tests.bench.stock import Stock, address, other_address, suffix, zone_of
from tests.bench.stocking import Stocked, stock_up
from tests.bench.zones import published
from tests.lab.bind import BindPair
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import LabFault

CONNECTIONS = 8
AT_ONCE = 64
_SECONDS = 8.0
_LIMIT_SECONDS = 10.0
_DNSPYTHON = "dnspython, one signed exchange in a loop"
_NSUPDATE = "nsupdate, one message each"

_Ports = tuple[int, ...]
"""Of the gateways that are called, in turns."""


def measure(pace: Pace) -> dict[str, Any]:
    """All rounds; `pace.size` holdings, and as many new hostnames in each."""
    with running_lab(LabOptions(gateways=0)) as lab, serving(lab.config, 2) as gateways:
        stock = Stock(pace.size)
        stocked = stock_up(lab, stock, gateways[0].url, renewals=0, within_seconds=1)
        bench = _Bench(lab, stocked, pace)
        both = tuple(gateway.port for gateway in gateways)
        tell("nothing to change")
        one = both[:1]
        same = alternate(pace.rounds, lambda: bench.unchanged(one), bench.exchanges)
        rows = [compared("sync unchanged", "calls/s", _DNSPYTHON, same, at_least(1.0))]
        for ports, by in ((one, "one process"), (both, "two processes")):
            many = f"{AT_ONCE} at once, {by}"
            tell(f"new hostnames, then other addresses, {many}")
            create = partial(bench.spent_on, f"sync new, {by}", partial(bench.create, ports))
            replace = partial(bench.spent_on, f"sync replace, {by}", partial(bench.replace, ports))
            new = alternate(pace.rounds, create, bench.nsupdate_create)
            rows.append(compared(f"sync new, {many}", "names/s", _NSUPDATE, new, at_least(1.5)))
            other = alternate(pace.rounds, replace, bench.nsupdate_replace)
            rows.append(
                compared(f"sync replace, {many}", "names/s", _NSUPDATE, other, at_least(1.0))
            )
        tell("reading the zones")
        faults = bench.faults()
    return {"rows": rows, "spent": bench.spending.report(), "notes": wrk.notes(), "faults": faults}


class _Bench:
    """Both sides, and what they have published."""

    def __init__(self, lab: Lab, stocked: Stocked, pace: Pace) -> None:
        self._bind = lab.bind
        self._stocked = stocked
        self._stock = stocked.stock
        self._pace = pace
        self.spending = Spending()
        self._failed = 0
        self._turns = 0
        self._ours = {self._stock.hostname(each): address(each) for each in self._numbers}
        self._new: list[tuple[int, str]] = []
        self._theirs: dict[str, str] = {}

    @property
    def _numbers(self) -> range:
        return range(self._stock.holdings)

    def unchanged(self, ports: _Ports) -> float:
        requests = [
            bodies.sync(self._stock, self._stocked.tokens, number, address(number))
            for number in self._numbers
        ]
        burst = Burst(ports, requests, b'"managed-unchanged"')
        return self._judged(keep_up(burst, self._pace.seconds(_SECONDS), CONNECTIONS))

    def exchanges(self) -> float:
        """How many signed queries a second dnspython asks, one after the other."""
        names = [self._stock.hostname(number) for number in self._numbers]
        return exchanges_per_second(self._bind, names, self._pace.seconds(_SECONDS))

    def spent_on(self, work: str, each: Callable[[], float]) -> float:
        """Have every hostname created or replaced, and count what that costs."""
        with self.spending.on(work) as spent:
            rate = each()
            spent.count += self._stock.holdings
        return rate

    def create(self, ports: _Ports) -> float:
        self._turns += 1
        every = range(self._stock.clients)
        clients = [client for client in every if zone_of(client) == zone_of(0)]
        self._new = []
        for number in self._numbers:
            client = clients[number % len(clients)]
            self._new.append((client, f"new{self._turns}-{number}.{suffix(client)}"))
        return self._publish_new(ports, [*map(address, self._numbers)], b'"managed-created"')

    def replace(self, ports: _Ports) -> float:
        self._turns += 1
        first = self._turns * self._stock.holdings
        addresses = [other_address(first + number) for number in self._numbers]
        return self._publish_new(ports, addresses, b'"managed-updated"')

    def nsupdate_create(self) -> float:
        self._turns += 1
        changes = [
            Change(f"theirs{self._turns}-{number}", address(number)) for number in self._numbers
        ]
        return self._nsupdate(changes)

    def nsupdate_replace(self) -> float:
        self._turns += 1
        before = list(self._theirs.items())[: self._stock.holdings]
        changes = [
            Change(
                name.partition(".")[0],
                other_address(self._turns * self._stock.holdings + number),
                before=value,
            )
            for number, (name, value) in enumerate(before)
        ]
        return self._nsupdate(changes)

    def faults(self) -> list[str]:
        """What the zones have that they should not, or have not."""
        faults = [f"{self._failed} calls were not answered as they should be"] * bool(self._failed)
        seen = published(self._bind)
        for whose, names in (("product", self._ours), ("reference", self._theirs)):
            wrong = [name for name, value in names.items() if seen.get(name) != ((value,), 1)]
            if wrong:
                faults.append(f"{len(wrong)} of the {whose}'s names are not as told: {wrong[0]}")
        return faults

    def _publish_new(self, ports: _Ports, addresses: Sequence[str], proof: bytes) -> float:
        requests = []
        for (client, hostname), value in zip(self._new, addresses, strict=True):
            self._ours[hostname] = value
            requests.append(bodies.sync_hostname(self._stocked.tokens, client, hostname, value))
        return self._judged(send_each(Burst(ports, requests, proof), AT_ONCE))

    def _nsupdate(self, changes: Sequence[Change]) -> float:
        zone = zone_of(0)
        seconds = apply_each(self._bind, zone, changes)
        self._theirs.update({f"{each.label}.{zone}": each.value for each in changes})
        return len(changes) / seconds

    def _judged(self, load: Load) -> float:
        self._failed += load.failed
        return load.per_second


def exchanges_per_second(bind: BindPair, names: Sequence[str], seconds: float) -> float:
    """Ask for all that is at a name, signed, over a connection of its own, again and again.

    Raises: LabFault when the server refuses.
    """
    host, port = bind.primary
    key = bind.tsig.key()
    count, began = 0, time.monotonic()
    while (elapsed := time.monotonic() - began) < seconds:
        question = dns.message.make_query(names[count % len(names)], dns.rdatatype.ANY)
        question.use_tsig(key)
        answer = dns.query.tcp(question, host, _LIMIT_SECONDS, port)
        if answer.rcode() != dns.rcode.NOERROR or not answer.answer:
            raise LabFault(f"the primary does not know {names[count % len(names)]}")
        count += 1
    return count / elapsed
