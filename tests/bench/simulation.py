"""A year of many certificates at one CA, on a simulated clock.

Responsible for the world: certificates of 45 days whose CA tells windows for their renewal, new
names, an import into one domain, an outage of the CA, a recall, and hostnames that cannot be
validated for days. All decisions are the product's own: when a certificate is renewed
(`certificates.renewal`), what an issuance does next (`certificates.machine`), whether an order may
be placed (`certificates.ledger`). Called by `year`.
"""

import heapq
import random
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, cast

from gateway.certificates import events, grants, machine, renewal
from gateway.certificates.budget import HOUR_MS, Budget, Renewal
from gateway.certificates.events import Command
from gateway.certificates.ledger import Granted, Ledger
from gateway.certificates.moves import Moment
from gateway.certificates.orders import AuthorizationView, FaultKind, RenewalInfo
from gateway.certificates.states import Issuance, Reason, State, StoredCertificate
from gateway.contract.names import ClientId, Hostname
from tests.bench.clocked_store import ClockedStore
from tests.bench.paces import tell
from tests.bench.referee import Referee

DAY_MS = 24 * HOUR_MS
LIFETIME_MS = 45 * DAY_MS
BEGIN_MS = 1_800_000_000_000
_DIRECTORY = "https://acme.example/directory"
_SHARE = 0.66
"""Of the lifetime: the product's default."""

_BACKDATED_MS = HOUR_MS
_IN_DOMAIN = 50
_CLIENTS = 1_000
_ISSUED_A_SECOND = 20
"""What the gateways get done, at the most: what comes due at once is done one after the other."""

_TAKES_MS = 5_000
_TELL_DAYS = 30
_OUTAGE = events.AuthorityFailed(FaultKind.UNREACHABLE, "it does not answer")
_INVALID = events.AuthorizationSeen(
    AuthorizationView("authorization", "", "invalid", problem="the record is not there")
)


@dataclass(frozen=True)
class Scenario:
    """What the year has in store. Times are in days from its beginning."""

    certificates: int
    days: int
    new_a_day: int
    imported: int
    import_day: int = 30
    outage_day: int = 180
    outage_ms: int = 12 * HOUR_MS
    recall_day: int = 240
    recalled_share: float = 0.05
    broken_share: float = 0.01
    broken_ms: int = 5 * DAY_MS


@dataclass
class Outcome:
    """What came of it; `waits_ms` are those of new names, from the question to the certificate.

    `held` is how often an order was asked for and held back.
    """

    issued_in_hour: Counter[int] = field(default_factory=Counter)
    expired: int = 0
    least_left_ms: int = LIFETIME_MS
    new_waits_ms: list[int] = field(default_factory=list)
    import_waits_ms: list[int] = field(default_factory=list)
    still_waiting: int = 0
    held: int = 0
    referee: Referee = field(default_factory=Referee)


class _Kind(IntEnum):
    RENEW = 0
    STEP = 1
    ISSUED = 2
    ASKED_NEWS = 3
    REQUEST = 4


class Simulation:
    """One year of a scenario; the same again for the same seed. `budget` is the account's."""

    def __init__(self, scenario: Scenario, seed: int, budget: Budget) -> None:
        self.now_ms = BEGIN_MS
        self.outcome = Outcome()
        self._scenario = scenario
        self._chance = random.Random(seed)  # noqa: S311 (to be repeatable)
        self._end_ms = BEGIN_MS + scenario.days * DAY_MS
        self._store = ClockedStore(lambda: self.now_ms)
        self._ledger = Ledger(
            # Of a store it uses these two methods, and a third to list what it holds.
            cast("Any", self._store),
            _DIRECTORY,
            budget,
            name="simulated",
            count_clients=_count_clients,
            now_ms=lambda: self.now_ms,
        )
        self._hostnames: list[str] = []
        self._domains: list[str] = []
        self._valid_until_ms = array("q")
        self._renew_at_ms = array("q")
        self._under_way: dict[int, Issuance] = {}
        self._kinds: dict[int, Renewal] = {}
        self._broken_until_ms: dict[int, int] = {}
        self._asked_at_ms: dict[int, int] = {}
        self._free_at_ms = BEGIN_MS
        self._agenda: list[tuple[int, int, _Kind]] = []
        self._first_imported = 0
        self._populate()

    async def run(self) -> Outcome:
        """Let the year pass."""
        forget_at_ms = self.now_ms + DAY_MS
        while self._agenda and self._agenda[0][0] < self._end_ms:
            self.now_ms, number, kind = heapq.heappop(self._agenda)
            if self.now_ms >= forget_at_ms:
                self._store.forget()
                self.outcome.referee.forget(self.now_ms)
                self._tell_course()
                forget_at_ms += DAY_MS
            await self._happen(number, kind)
        self.now_ms = self._end_ms
        for number, valid_until_ms in enumerate(self._valid_until_ms):
            if 0 < valid_until_ms <= self.now_ms:
                self.outcome.expired += 1
            self.outcome.still_waiting += number in self._under_way and not valid_until_ms
        return self.outcome

    def _tell_course(self) -> None:
        day = (self.now_ms - BEGIN_MS) // DAY_MS
        if day % _TELL_DAYS == 0:
            tell(f"day {day}: {self.outcome.issued_in_hour.total():,} issued")

    # The world.

    def _populate(self) -> None:
        scenario, chance = self._scenario, self._chance
        oldest_ms = int(LIFETIME_MS * _SHARE)
        for number in range(scenario.certificates):
            self._add("h", f"d{number // _IN_DOMAIN}.example")
            # Of all ages, as where one was issued after the other.
            self._take_up(number, self.now_ms - int(oldest_ms * chance.random()))
        for day in range(scenario.days):
            for _ in range(scenario.new_a_day):
                # In the eight hours of a working day.
                at_ms = BEGIN_MS + day * DAY_MS + int(chance.uniform(8, 16) * HOUR_MS)
                # Two in a domain, for the most part.
                domain = f"n{day}-{len(self._hostnames) % max(1, scenario.new_a_day // 2)}.example"
                self._plan(at_ms, self._add("n", domain), _Kind.REQUEST)
        self._first_imported = len(self._hostnames)
        for _ in range(scenario.imported):
            number = self._add("i", "import.example")
            self._plan(BEGIN_MS + scenario.import_day * DAY_MS, number, _Kind.REQUEST)
        recalled = chance.sample(
            range(scenario.certificates), int(scenario.certificates * scenario.recalled_share)
        )
        recall_ms = BEGIN_MS + scenario.recall_day * DAY_MS
        for number in recalled:
            # The CA is asked about each once in a while.
            at_ms = recall_ms + int(renewal.ASK_EVERY_MS * chance.random())
            self._plan(at_ms, number, _Kind.ASKED_NEWS)

    def _add(self, label: str, domain: str) -> int:
        number = len(self._hostnames)
        self._hostnames.append(f"{label}{number}.{domain}")
        self._domains.append(domain)
        self._valid_until_ms.append(0)
        self._renew_at_ms.append(0)
        return number

    async def _happen(self, number: int, kind: _Kind) -> None:
        if kind is _Kind.RENEW:
            if self.now_ms == self._renew_at_ms[number] and number not in self._under_way:
                await self._renew(number)
        elif kind is _Kind.STEP:
            await self._step(number)
        elif kind is _Kind.ISSUED:
            await self._validated(number)
        elif kind is _Kind.ASKED_NEWS:
            self._hear_of_recall(number)
        else:
            self._asked_at_ms[number] = self.now_ms
            self._under_way[number] = machine.request(str(number), self._moment())
            await self._step(number)

    def _is_away(self) -> bool:
        since_ms = self.now_ms - BEGIN_MS - self._scenario.outage_day * DAY_MS
        return 0 <= since_ms < self._scenario.outage_ms

    # What the product decides.

    async def _renew(self, number: int) -> None:
        if self._chance.random() < self._scenario.broken_share:
            self._broken_until_ms[number] = self.now_ms + self._scenario.broken_ms
        # What the CA has said of it since decided when; the rest goes by its lifetime.
        certificate = _fresh(self._valid_until_ms[number], 0.0)
        issuance = machine.request_renewal(str(number), certificate, "id", self._moment())
        self._under_way[number] = issuance
        await self._step(number)

    async def _step(self, number: int) -> None:
        moment = self._moment()
        step = machine.advance(self._under_way[number], events.Due(), moment)
        if step.command is Command.CHOOSE_AUTHORITY:
            kind = self._kind_of(step.issuance)
            hostname, client = self._names(number)
            verdict = await self._ledger.spend(hostname, client, renewal=kind)
            if not isinstance(verdict, Granted):
                self.outcome.held += 1
                held = events.AuthoritiesHeld(verdict.until_ms, Reason.RATE_LIMITED, verdict.detail)
                self._rest(number, machine.advance(step.issuance, held, moment).issuance)
                return
            self._kinds[number] = kind
            chosen = events.AuthorityChosen(_DIRECTORY, takes_replaces=True)
            step = machine.advance(step.issuance, chosen, moment)
        if self._is_away():
            rests = machine.advance(step.issuance, _OUTAGE, moment).issuance
            await self._stop_short(number, step.issuance, rests, _OUTAGE)
            return
        self._under_way[number] = step.issuance
        exempt = step.issuance.replaces is not None
        self.outcome.referee.order(
            self._hostnames[number], self._domains[number], self.now_ms, is_exempt=exempt
        )
        self._free_at_ms = max(self.now_ms, self._free_at_ms) + 1000 // _ISSUED_A_SECOND
        self._plan(self._free_at_ms + _TAKES_MS, number, _Kind.ISSUED)

    async def _validated(self, number: int) -> None:
        """The CA has looked at the challenge: a certificate, or a failed validation."""
        issuance = self._under_way.pop(number)
        if self._broken_until_ms.get(number, 0) > self.now_ms:
            hostname, _ = self._names(number)
            self.outcome.referee.failed(hostname, self.now_ms)
            await self._ledger.record_failed_validation(hostname)
            ordered = replace(issuance, state=State.VALIDATING, order_url="order")
            failed = machine.advance(ordered, _INVALID, self._moment()).issuance
            await self._stop_short(number, ordered, failed, _INVALID)
            return
        self._kinds.pop(number)
        self._note(number, issuance)
        self._take_up(number, self.now_ms)

    async def _stop_short(
        self, number: int, before: Issuance, after: Issuance, event: events.Event
    ) -> None:
        """Rest, and give back what was granted if that is over, as the worker does."""
        if grants.is_over(before, after):
            kind, names = self._kinds.pop(number), self._names(number)
            was_placed = grants.may_be_placed(before, event)
            await self._ledger.give_back(*names, renewal=kind, was_placed=was_placed)
        self._rest(number, after)

    def _take_up(self, number: int, issued_ms: int) -> None:
        """Plan the renewal of a certificate issued then; its CA is asked at once."""
        self._valid_until_ms[number] = issued_ms - _BACKDATED_MS + LIFETIME_MS
        certificate = _fresh(self._valid_until_ms[number], self._chance.random())
        self._plan_renewal(number, certificate, _window(certificate))

    def _plan_renewal(self, number: int, certificate: StoredCertificate, info: RenewalInfo) -> None:
        planned = renewal.asked(certificate, info, self._moment(), is_offered=True)
        self._renew_at_ms[number] = max(planned.renew_at_ms, self.now_ms)
        self._plan(self._renew_at_ms[number], number, _Kind.RENEW)

    def _hear_of_recall(self, number: int) -> None:
        info = RenewalInfo(self.now_ms - 2 * DAY_MS, self.now_ms - DAY_MS)
        self._plan_renewal(number, self._certificate(number), info)

    def _certificate(self, number: int) -> StoredCertificate:
        certificate = _fresh(self._valid_until_ms[number], 0.0)
        info = _window(certificate)
        return renewal.asked(
            certificate, info, Moment(certificate.valid_from_ms, 0.0), is_offered=True
        )

    # Bookkeeping.

    def _note(self, number: int, issuance: Issuance) -> None:
        outcome = self.outcome
        outcome.issued_in_hour[(self.now_ms - BEGIN_MS) // HOUR_MS] += 1
        if issuance.renewal:
            left_ms = self._valid_until_ms[number] - self.now_ms
            outcome.least_left_ms = min(outcome.least_left_ms, left_ms)
            outcome.expired += left_ms <= 0
            return
        is_imported = number >= self._first_imported
        waits_ms = outcome.import_waits_ms if is_imported else outcome.new_waits_ms
        waits_ms.append(self.now_ms - self._asked_at_ms.pop(number))

    def _rest(self, number: int, issuance: Issuance) -> None:
        self._under_way[number] = issuance
        self._plan(issuance.due_at_ms, number, _Kind.STEP)

    def _plan(self, at_ms: int, number: int, kind: _Kind) -> None:
        heapq.heappush(self._agenda, (at_ms, number, kind))

    def _moment(self) -> Moment:
        return Moment(self.now_ms, self._chance.random())

    def _kind_of(self, issuance: Issuance) -> Renewal:
        if not issuance.renewal:
            return Renewal.NEW
        overdue_at_ms = issuance.overdue_at_ms or 0
        return Renewal.DUE if overdue_at_ms <= self.now_ms else Renewal.EARLY

    def _names(self, number: int) -> tuple[Hostname, ClientId]:
        return Hostname(self._hostnames[number]), ClientId(f"c{number % _CLIENTS}")


def _fresh(valid_until_ms: int, jitter: float) -> StoredCertificate:
    """A certificate as it is stored when it has come."""
    valid_from_ms = valid_until_ms - LIFETIME_MS
    times = renewal.renewal_times(valid_from_ms, valid_until_ms, _SHARE, jitter)
    return StoredCertificate(
        issuance_id="",
        chain_pem="",
        sealed_key="",
        valid_from_ms=valid_from_ms,
        valid_until_ms=valid_until_ms,
        renew_at_ms=times.renew_at_ms,
        renew_after_ms=times.renew_after_ms,
        share_at_ms=times.share_at_ms,
        serial="",
        issuer="",
        directory_url=_DIRECTORY,
        ask_at_ms=valid_from_ms,
    )


def _window(certificate: StoredCertificate) -> RenewalInfo:
    """What the CA suggests: two thirds into the lifetime, give or take a hundredth of it."""
    ideal_ms = certificate.valid_until_ms - LIFETIME_MS // 3
    margin_ms = LIFETIME_MS // 100
    return RenewalInfo(ideal_ms - margin_ms, ideal_ms + margin_ms)


async def _count_clients() -> int:
    return _CLIENTS
