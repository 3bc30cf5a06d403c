"""What may be asked of one account at a CA, and when: pure figures over a clock value.

Each figure ("50 certificates for a registered domain in 7 days") is a bucket that refills steadily,
kept as one number: the *theoretical arrival time* of the generic cell rate algorithm, the moment at
which the bucket is full again. A full bucket holds `count`, and one comes back each `period/count`.
Let's Encrypt counts the same way, so our figures and its own move alike. Lists of the last orders
(a sliding window) were the alternative: they grow with the figures and refill in lumps.

No bucket is emptier than empty: what is spent past the figure, by renewals that are due, is
forgotten, as it is by the CA, which either granted it or did not.

Called by `certificates.ledger`, which keeps the buckets in Redis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, floor
from typing import TYPE_CHECKING, Final

from gateway.moments import rfc3339_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOUR_MS: Final = 3_600_000
WEEK_MS: Final = 7 * 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Budget:
    """One CA's figures for one account; 0 means no limit. The defaults are Let's Encrypt's.

    `reserved_for_renewals` is the share of the first two figures that new names leave alone where
    renewals count in them, `client_share` the most that one client's new names may use of each
    while there is more than one client.
    """

    orders_per_3_hours: int = 300
    certificates_per_domain_per_week: int = 50
    certificates_per_hostname_per_week: int = 5
    failed_validations_per_hour: int = 5
    renewals_are_counted: bool = False
    reserved_for_renewals: float = 0.2
    client_share: float = 0.5


class Renewal(StrEnum):
    """What an order is for: it decides which figures count it and which hold it."""

    NEW = "new"
    """A hostname without a certificate that could be renewed: every figure holds it."""

    BY_HAND = "by-hand"
    """A renewal before its time, since an operator alone asked for it: every figure holds it but a
    client's share. What a CA leaves out of its own figures is what it has asked for."""

    EARLY = "early"
    """A renewal before its time, since the CA asked for it: the hostname's figure holds it."""

    DUE = "due"
    """A renewal whose time has come: no figure of ours holds it."""


class Limit(StrEnum):
    """The figures, by what they count. Part of the stored form."""

    ORDERS = "orders"
    DOMAIN = "domain"
    HOSTNAME = "host"
    FAILED_VALIDATIONS = "failed"
    CLIENT_ORDERS = "orders-of"
    CLIENT_DOMAIN = "domain-of"


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket: a figure of the budget for one subject.

    `subject` is a registered domain, a hostname, or nothing for the orders of the account;
    `client_id` is set for a client's own share.
    """

    limit: Limit
    count: int
    period_ms: int
    subject: str = ""
    client_id: str = ""

    @property
    def interval_ms(self) -> int:
        """After how long one more is free, rounded up: never more than `count` in a period."""
        return -(-self.period_ms // self.count)

    @property
    def empty_ms(self) -> int:
        """How long an empty bucket takes to be full again."""
        return self.interval_ms * self.count

    def full_at(self, stored_ms: int | None, now_ms: int) -> int:
        """When the bucket is full again, by what was stored: from now to `empty_ms` from now.

        A stored time may lie further off when a clock was wrong or the figure was changed.
        """
        return min(max(stored_ms or now_ms, now_ms), now_ms + self.empty_ms)

    def used(self, stored_ms: int | None, now_ms: int) -> int:
        """How many of `count` are in use, begun ones included."""
        return -(-(self.full_at(stored_ms, now_ms) - now_ms) // self.interval_ms)

    def next_free_at(self, stored_ms: int | None, now_ms: int, usable: int | None = None) -> int:
        """From when on one more is free for who may use `usable` of them (all); now or later."""
        full_ms = self.full_at(stored_ms, now_ms)
        return max(now_ms, full_ms + self.interval_ms * (1 - (usable or self.count)))

    def after_one(self, stored_ms: int | None, now_ms: int) -> int:
        """When it is full again after one more is taken."""
        return self.full_at(self.full_at(stored_ms, now_ms) + self.interval_ms, now_ms)

    def after_return(self, stored_ms: int | None, now_ms: int) -> int:
        """When it is full again after one is put back."""
        return self.full_at(self.full_at(stored_ms, now_ms) - self.interval_ms, now_ms)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one order wants of one bucket.

    `usable` is how many of the bucket's are for such an order. A claim that does not `bind` is
    counted whether or not there is room; one that does not `spend` only asks whether there is.
    """

    bucket: Bucket
    usable: int
    binds: bool = True
    spends: bool = True

    def free_at(self, stored_ms: Mapping[Bucket, int], now_ms: int) -> int:
        """From when on there is room for it: now or later."""
        return self.bucket.next_free_at(stored_ms.get(self.bucket), now_ms, self.usable)


@dataclass(frozen=True, slots=True)
class Short:
    """Not now: from `until_ms` on there is room in every bucket, `claim` being the last."""

    until_ms: int
    claim: Claim

    @property
    def sentence(self) -> str:
        """Which figure holds the order and until when, in words for whoever asked for it."""
        bucket = self.claim.bucket
        # Of all who are held until then, the first to come gets what is free.
        end = f"the order is placed at the earliest at {rfc3339_moment(self.until_ms)}"
        what = _described(bucket)
        if bucket.limit is Limit.FAILED_VALIDATIONS:
            return f"{what}; {end}"
        if bucket.client_id:
            return f"this client's share of the {what} is used up ({bucket.count}); {end}"
        if self.claim.usable < bucket.count:
            return f"{what} are allowed and new names may use {self.claim.usable} of them; {end}"
        return f"{what} are used up; {end}"


def claims(
    budget: Budget,
    hostname: str,
    domain: str,
    client_id: str,
    renewal: Renewal,
    *,
    shared: bool,
) -> tuple[Claim, ...]:
    """Every bucket that an order for `hostname` concerns; `domain` is its registered domain.

    `shared`: there is more than one client, so that none may use up what all have.
    """
    is_held = renewal in {Renewal.NEW, Renewal.BY_HAND}
    wanted: list[Claim] = []
    if is_held or budget.renewals_are_counted:
        for bucket in (_orders(budget), _of_domain(budget, domain)):
            wanted.append(Claim(bucket, _usable(budget, bucket, is_held), binds=is_held))
            if renewal is Renewal.NEW and budget.client_share < 1 and bucket.count:
                own = _share_of(bucket, client_id, budget.client_share)
                wanted.append(Claim(own, own.count, binds=shared))
    of_hostname = _of_hostname(budget, hostname)
    wanted.append(Claim(of_hostname, of_hostname.count, binds=renewal is not Renewal.DUE))
    failures = failed_validations(budget, hostname)
    wanted.append(Claim(failures, failures.count, spends=False))
    return tuple(claim for claim in wanted if claim.bucket.count)


def returns(
    budget: Budget,
    hostname: str,
    domain: str,
    client_id: str,
    renewal: Renewal,
    *,
    was_placed: bool,
) -> tuple[Bucket, ...]:
    """The buckets that get one back when an order came to no certificate.

    An order that was placed stays one, and so does a failed validation.
    """
    spent = claims(budget, hostname, domain, client_id, renewal, shared=True)
    if not was_placed:
        return tuple(claim.bucket for claim in spent if claim.spends)
    certificates = (Limit.DOMAIN, Limit.CLIENT_DOMAIN, Limit.HOSTNAME)
    return tuple(claim.bucket for claim in spent if claim.bucket.limit in certificates)


def failed_validations(budget: Budget, hostname: str) -> Bucket:
    """The bucket of a hostname's failed validations; its count 0 means no limit."""
    count = budget.failed_validations_per_hour
    return Bucket(Limit.FAILED_VALIDATIONS, count, HOUR_MS, hostname)


def bucket_of(budget: Budget, limit: Limit, subject: str, client_id: str) -> Bucket:
    """The bucket of a figure for a subject, by the budget as it is now."""
    if limit is Limit.ORDERS:
        return _orders(budget)
    if limit is Limit.CLIENT_ORDERS:
        return _share_of(_orders(budget), client_id, budget.client_share)
    if limit is Limit.DOMAIN:
        return _of_domain(budget, subject)
    if limit is Limit.CLIENT_DOMAIN:
        return _share_of(_of_domain(budget, subject), client_id, budget.client_share)
    if limit is Limit.HOSTNAME:
        return _of_hostname(budget, subject)
    return failed_validations(budget, subject)


def decide(
    wanted: Iterable[Claim], stored_ms: Mapping[Bucket, int], now_ms: int
) -> dict[Bucket, int] | Short:
    """Take one of every bucket, or nothing of any.

    `stored_ms` says when each bucket is full again; one that is missing is full. Returns the new
    times of the buckets that were taken from, or the time at which all would be granted, provided
    that nobody else takes any until then.
    """
    wanted = tuple(wanted)
    binding = (claim for claim in wanted if claim.binds)
    shorts = [Short(claim.free_at(stored_ms, now_ms), claim) for claim in binding]
    last = max(shorts, key=lambda short: short.until_ms, default=None)
    if last is not None and last.until_ms > now_ms:
        return last
    return {
        claim.bucket: claim.bucket.after_one(stored_ms.get(claim.bucket), now_ms)
        for claim in wanted
        if claim.spends
    }


def _orders(budget: Budget) -> Bucket:
    return Bucket(Limit.ORDERS, budget.orders_per_3_hours, 3 * HOUR_MS)


def _of_domain(budget: Budget, domain: str) -> Bucket:
    return Bucket(Limit.DOMAIN, budget.certificates_per_domain_per_week, WEEK_MS, domain)


def _of_hostname(budget: Budget, hostname: str) -> Bucket:
    return Bucket(Limit.HOSTNAME, budget.certificates_per_hostname_per_week, WEEK_MS, hostname)


def _share_of(bucket: Bucket, client_id: str, share: float) -> Bucket:
    limit = Limit.CLIENT_ORDERS if bucket.limit is Limit.ORDERS else Limit.CLIENT_DOMAIN
    # A share of nothing would be for ever; a figure of 0 stays without a limit.
    count = max(1, floor(_exact(bucket.count * share))) if bucket.count else 0
    return replace(bucket, limit=limit, count=count, client_id=client_id)


def _usable(budget: Budget, bucket: Bucket, is_held: bool) -> int:
    if not (is_held and budget.renewals_are_counted):
        return bucket.count
    reserved = ceil(_exact(bucket.count * budget.reserved_for_renewals))
    return max(1, bucket.count - reserved)


def _exact(product: float) -> float:
    # 100 * 0.07 is a little more than 7 in binary.
    return round(product, 9)


def _described(bucket: Bucket) -> str:
    what = {
        Limit.ORDERS: f"{bucket.count} new orders in 3 hours",
        Limit.DOMAIN: f"{bucket.count} certificates for {bucket.subject} in 7 days",
        Limit.HOSTNAME: f"{bucket.count} certificates for {bucket.subject} in 7 days",
        Limit.FAILED_VALIDATIONS: f"{bucket.subject} failed {bucket.count} validations in an hour",
        Limit.CLIENT_ORDERS: "new orders in 3 hours",
        Limit.CLIENT_DOMAIN: f"certificates for {bucket.subject} in 7 days",
    }
    return what[bucket.limit]
