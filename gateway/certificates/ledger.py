"""The ledger of one account at a CA: what was asked of it, and until when it must not be asked.

Every order is charged here before it is placed, by whichever process places it. The rules are
`certificates.budget`'s; this module reads all that one decision depends on at once, lets the rules
decide, and commits by compare-and-set, so processes at the same time never grant more than there
is. A lost answer of Redis may charge an order twice, a failover may forget the last few, an emptied
Redis is an empty ledger: the CA's own limits still hold, and what it says about them is held here
for every process.

Everything expires by itself: a figure when it is unused again, a hold at its end. Called by
`certificates.steps` and the command line.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from gateway.certificates.budget import (
    Bucket,
    Budget,
    Limit,
    Renewal,
    Short,
    bucket_of,
    claims,
    decide,
    failed_validations,
    returns,
)
from gateway.certificates.ca_limits import Reach, ancestry, scope_of
from gateway.certificates.domains import registered_domain
from gateway.certificates.ledger_values import StoredHold, Values, written_figure, written_hold
from gateway.moments import rfc3339_moment
from gateway.store import keys
from gateway.store.connection import StoreRefused, StoreUnavailable, Swap
from gateway.store.documents import Contended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from gateway.contract.names import ClientId, Hostname
    from gateway.store.connection import Store

    Read = Mapping[str, str | None]
    Changes = list[tuple[str, str, int]]
    """Keys with their new values ("" removes one) and until when these hold, epoch ms."""

Answer = TypeVar("Answer")

ATTEMPTS: Final = 100
"""How often a decision is made anew when other processes decide at the same moment."""

LONGEST_HOLD_MS: Final = 31 * 24 * 3_600_000
LONGEST_SUSPENSION_MS: Final = 3_600_000
"""Whatever Retry-After a fault names: it parks everybody, and one order is enough to look again."""

CLIENTS_COUNTED_EVERY_MS: Final = 10_000
SUSPENDED: Final = "suspended"

_log = structlog.get_logger(__name__)


class HeldBy(StrEnum):
    """What holds an order back."""

    BUDGET = "budget"
    """Our own figures."""

    AUTHORITY = "authority"
    """The CA said when to come back."""

    SUSPENDED = "suspended"
    """The CA could not be reached lately."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The order may be placed, and is charged."""


@dataclass(frozen=True, slots=True)
class Held:
    """No order before `until_ms`; `detail` is a sentence that may be shown to the client."""

    until_ms: int
    detail: str
    by: HeldBy


@dataclass(frozen=True, slots=True)
class LimitUse:
    """How far one figure is used. Times are epoch ms; `next_free_ms` is now when one is free."""

    limit: Limit
    subject: str
    client_id: str
    used: int
    of: int
    next_free_ms: int
    unused_ms: int


@dataclass(frozen=True, slots=True)
class Hold:
    """What holds orders back beside the figures. `subject` is a hostname, a domain or nothing.

    `hostname` is the one whose order the CA refused. `detail` may be in the CA's words: for
    operators, and of a refusal for that hostname's client.
    """

    by: HeldBy
    until_ms: int
    detail: str
    subject: str = ""
    hostname: str = ""


@dataclass(frozen=True, slots=True)
class LedgerState:
    """All that the ledger of one account holds now."""

    uses: tuple[LimitUse, ...]
    holds: tuple[Hold, ...]


class Ledger:
    """The ledger of the account at `directory_url`; `name` is what people call the authority.

    `count_clients` tells how many clients there are, which decides whether one may use all of a
    figure. Every method may be called on any process, raises `StoreUnavailable` without Redis and
    `Contended` after `ATTEMPTS` lost races; none but `give_back` and `record_failed_validation`
    does harm when repeated.
    """

    def __init__(
        self,
        store: Store,
        directory_url: str,
        budget: Budget,
        *,
        name: str,
        count_clients: Callable[[], Awaitable[int]],
        now_ms: Callable[[], int],
    ) -> None:
        self.name = name
        self._store = store
        self._directory_url = directory_url
        self._budget = budget
        self._count_clients = count_clients
        self._clients: tuple[int, int] | None = None
        self._now_ms = now_ms
        self._values = Values(name)
        # Tasks of one process wait for each other instead of racing; races are between processes.
        self._turn = asyncio.Lock()
        self._outages = 0

    async def spend(
        self, hostname: Hostname, client_id: ClientId, *, renewal: Renewal
    ) -> Granted | Held:
        """Charge one order for `hostname` to every figure that counts it, or to none."""
        shared = renewal is Renewal.NEW and await self._has_several_clients()
        domain = registered_domain(hostname)
        wanted = claims(self._budget, hostname, domain, client_id, renewal, shared=shared)
        buckets = {self._key_of(claim.bucket): claim.bucket for claim in wanted}
        hold_keys = self._hold_keys(hostname)

        def rule(read: Read, now_ms: int) -> tuple[Changes, Granted | Held]:
            held = self._all_told(read, hold_keys, hostname, now_ms)
            decision = decide(wanted, self._times(read, buckets, now_ms), now_ms)
            if isinstance(decision, Short):
                detail = f"at {self.name}, {decision.sentence}"
                held.append(Held(decision.until_ms, detail, HeldBy.BUDGET))
            elif not held:
                return self._charged(decision, now_ms), Granted()
            return [], _last(held)

        return await self._change([*buckets, *hold_keys], rule)

    async def holds_on(self, hostname: Hostname) -> Held | None:
        """What holds an order for `hostname` beside the figures, if anything; charges nothing.

        For an order that was granted a while ago: the CA may have told every process to wait since.
        """
        hold_keys = self._hold_keys(hostname)
        read = dict(zip(hold_keys, await self._store.values(hold_keys), strict=True))
        held = self._all_told(read, hold_keys, hostname, self._now_ms())
        return _last(held) if held else None

    async def give_back(
        self, hostname: Hostname, client_id: ClientId, *, renewal: Renewal, was_placed: bool = True
    ) -> None:
        """Take back what was charged for a certificate that did not come, or an unplaced order."""
        spent = hostname, registered_domain(hostname), client_id, renewal
        given = returns(self._budget, *spent, was_placed=was_placed)
        buckets = {self._key_of(bucket): bucket for bucket in given}

        def rule(read: Read, now_ms: int) -> tuple[Changes, None]:
            times = {
                bucket: bucket.after_return(stored_ms, now_ms)
                for bucket, stored_ms in self._times(read, buckets, now_ms).items()
            }
            return self._charged(times, now_ms), None

        await self._change(list(buckets), rule)

    async def record_failed_validation(self, hostname: Hostname) -> None:
        """Count one failed validation of a hostname; when too many failed, `spend` holds it."""
        bucket = failed_validations(self._budget, hostname)
        if not bucket.count:
            return
        buckets = {self._key_of(bucket): bucket}

        def rule(read: Read, now_ms: int) -> tuple[Changes, None]:
            after_ms = bucket.after_one(self._times(read, buckets, now_ms).get(bucket), now_ms)
            return self._charged({bucket: after_ms}, now_ms), None

        await self._change(list(buckets), rule)

    async def hold(
        self, hostname: Hostname, until_ms: int, detail: str, *, ca_words: str | None
    ) -> None:
        """Hold back, on every process, all that the CA's refusal of `hostname` concerns.

        `ca_words` say whom (None: this hostname); `detail` is for this hostname's client only.
        """
        scope = scope_of(ca_words, hostname)
        told = StoredHold(until_ms, detail, hostname)
        await self._keep_until(self._key(scope.reach, scope.subject), told, LONGEST_HOLD_MS)

    async def suspend(self, until_ms: int, detail: str) -> None:
        """Leave the authority alone until then, on every process: it could not be reached.

        For `LONGEST_SUSPENSION_MS` at most. `detail` is for operators only: no client is told what
        came of another's order.
        """
        told = StoredHold(until_ms, detail, "")
        await self._keep_until(self._key(SUSPENDED), told, LONGEST_SUSPENSION_MS)

    async def state(self, *, of_account: bool = False) -> LedgerState:
        """How far every figure in use is used, and every hold; the account's orders in any case.

        `of_account`: only what concerns all of its orders, however much else there is.
        """
        own = [self._key(kind) for kind in (Limit.ORDERS, Reach.ACCOUNT, SUSPENDED)]
        found = sorted({*own, *([] if of_account else await self._listed())})
        read = dict(zip(found, await self._store.values(found), strict=True))
        now_ms = self._now_ms()
        hold_keys = [key for key in found if keys.in_ledger_key(key)[0] in _HOLD_KINDS]
        uses = self._uses([(key, read[key]) for key in found if key not in hold_keys], now_ms)
        return LedgerState(tuple(uses), tuple(self._holds(read, hold_keys, now_ms)))

    async def _listed(self) -> list[str]:
        """The keys that the index lists; what else stands in it is passed over."""
        index = keys.ledger_index_key(self._directory_url)
        try:
            members = await self._store.members(index)
        except StoreRefused as refused:
            _log.warning("the ledger's index is unreadable", key=index, error=str(refused))
            return []
        own = self._key("")
        return [
            key
            for key, _ in members
            if key.startswith(own) and key.isprintable() and keys.in_ledger_key(key)[0] in _KINDS
        ]

    async def _has_several_clients(self) -> bool:
        now_ms = self._now_ms()
        if self._clients is None or now_ms >= self._clients[0] + CLIENTS_COUNTED_EVERY_MS:
            self._clients = (now_ms, await self._count_clients())
        return self._clients[1] > 1

    async def _keep_until(self, key: str, told: StoredHold, longest_ms: int) -> None:
        def rule(read: Read, now_ms: int) -> tuple[Changes, None]:
            until_ms = min(told.until_ms, now_ms + longest_ms)
            there = self._values.hold(key, read[key], now_ms)
            if until_ms <= (there.until_ms if there else now_ms):
                return [], None
            return [(key, written_hold(told._replace(until_ms=until_ms)), until_ms)], None

        await self._change([key], rule)

    async def _change(
        self, keys_read: Sequence[str], rule: Callable[[Read, int], tuple[Changes, Answer]]
    ) -> Answer:
        """Let `rule` decide over what the keys hold, and commit its changes atomically."""
        outages = self._outages
        async with self._turn:
            if self._outages != outages:
                # Else all who queue here would find Redis gone one after the other.
                raise StoreUnavailable("Redis cannot be reached")
            try:
                return await self._changed(keys_read, rule)
            except StoreUnavailable:
                self._outages += 1
                raise

    async def _changed(
        self, keys_read: Sequence[str], rule: Callable[[Read, int], tuple[Changes, Answer]]
    ) -> Answer:
        index = keys.ledger_index_key(self._directory_url)
        for _ in range(ATTEMPTS):
            found = await self._store.values(keys_read) if keys_read else []
            read = dict(zip(keys_read, found, strict=True))
            now_ms = self._now_ms()
            changes, answer = rule(read, now_ms)
            swaps = [
                Swap(key, read[key] or "", value, max(1, until_ms - now_ms))
                for key, value, until_ms in changes
            ]
            if not swaps or await self._store.compare_and_set(index, swaps, now_ms):
                return answer
        raise Contended(f"the ledger of {self.name} is being changed by too many at once")

    def _charged(self, times: Mapping[Bucket, int], now_ms: int) -> Changes:
        return [
            (
                self._key_of(bucket),
                written_figure(full_ms, bucket.interval_ms) if full_ms > now_ms else "",
                full_ms,
            )
            for bucket, full_ms in times.items()
        ]

    def _all_told(
        self, read: Read, hold_keys: Iterable[str], hostname: str, now_ms: int
    ) -> list[Held]:
        return [self._told(hold, hostname) for hold in self._holds(read, hold_keys, now_ms)]

    def _told(self, hold: Hold, hostname: str) -> Held:
        """A hold in words for the client of `hostname`, who must not learn of another's names."""
        until = rfc3339_moment(hold.until_ms)
        if hold.by is HeldBy.SUSPENDED:
            # By whosever order it was found out: the CA's words may be about that one.
            return Held(hold.until_ms, f"{self.name} is left alone until {until}", hold.by)
        whom = f"for {hold.subject}" if hold.subject else "from this account"
        said = f": {hold.detail}" if hold.hostname == hostname else ""
        return Held(
            hold.until_ms, f"{self.name} takes no orders {whom} before {until}{said}", hold.by
        )

    def _uses(self, entries: Iterable[tuple[str, str | None]], now_ms: int) -> Iterator[LimitUse]:
        for key, stored in entries:
            kind, rest = keys.in_ledger_key(key)
            subject, _, client_id = rest.partition("/")
            bucket = bucket_of(self._budget, Limit(kind), subject, client_id)
            if not bucket.count:
                continue
            stored_ms = self._values.figure(key, stored, bucket.interval_ms, now_ms)
            if stored_ms is None and bucket.limit is not Limit.ORDERS:
                continue
            yield LimitUse(
                limit=bucket.limit,
                subject=subject,
                client_id=client_id,
                used=bucket.used(stored_ms, now_ms),
                of=bucket.count,
                next_free_ms=bucket.next_free_at(stored_ms, now_ms),
                unused_ms=bucket.full_at(stored_ms, now_ms),
            )

    def _times(self, read: Read, buckets: Mapping[str, Bucket], now_ms: int) -> dict[Bucket, int]:
        """When each bucket that anything was taken from is full again."""
        read_ms = {
            bucket: self._values.figure(key, read[key], bucket.interval_ms, now_ms)
            for key, bucket in buckets.items()
        }
        return {bucket: full_ms for bucket, full_ms in read_ms.items() if full_ms is not None}

    def _holds(self, read: Read, hold_keys: Iterable[str], now_ms: int) -> Iterator[Hold]:
        for key in hold_keys:
            stored = self._values.hold(key, read[key], now_ms)
            if stored is not None:
                kind, subject = keys.in_ledger_key(key)
                by = HeldBy.SUSPENDED if kind == SUSPENDED else HeldBy.AUTHORITY
                yield Hold(by, stored.until_ms, stored.detail, subject, stored.hostname)

    def _hold_keys(self, hostname: str) -> list[str]:
        under = [self._key(Reach.UNDER, domain) for domain in ancestry(hostname)]
        own = self._key(Reach.HOSTNAME, hostname)
        return [self._key(SUSPENDED), self._key(Reach.ACCOUNT), own, *under]

    def _key_of(self, bucket: Bucket) -> str:
        subject = f"{bucket.subject}/{bucket.client_id}" if bucket.client_id else bucket.subject
        return self._key(bucket.limit, subject)

    def _key(self, kind: str, subject: str = "") -> str:
        return keys.ledger_key(self._directory_url, kind, subject)


_HOLD_KINDS: Final = {SUSPENDED, *(str(reach) for reach in Reach)}
_KINDS: Final = {*_HOLD_KINDS, *(str(limit) for limit in Limit)}


def _last(held: Sequence[Held]) -> Held:
    return max(held, key=lambda each: each.until_ms)
