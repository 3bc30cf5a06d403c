"""Let's Encrypt's limits as it publishes them, counted as on its side: what it would refuse.

Responsible for one bucket for each limit and subject, which holds its number and refills steadily:
300 new orders of an account in 3 hours, 50 certificates of a registered domain and 5 of the same
hostname in 7 days, 5 failed validations of a hostname in an hour. A renewal that names what it
replaces (ARI) is exempt from all but the last. Written without the product's own figures, to judge
them. Called by `simulation`.
"""

from dataclasses import dataclass, field

_HOUR_MS = 3_600_000
_WEEK_MS = 7 * 24 * _HOUR_MS


@dataclass(frozen=True, slots=True)
class Limit:
    """So many in that time."""

    count: int
    period_ms: int


ORDERS = Limit(300, 3 * _HOUR_MS)
DOMAIN = Limit(50, _WEEK_MS)
HOSTNAME = Limit(5, _WEEK_MS)
FAILURES = Limit(5, _HOUR_MS)


@dataclass
class _Bucket:
    left: float
    at_ms: int


@dataclass
class Referee:
    """Counts one account's orders; `refused` are those that came beyond a limit, by its name."""

    refused: dict[str, int] = field(default_factory=dict)
    _buckets: dict[tuple[str, str], _Bucket] = field(default_factory=dict)

    def order(self, hostname: str, domain: str, now_ms: int, *, is_exempt: bool) -> None:
        """An order is placed, and comes to a certificate."""
        if self._left("failures", hostname, FAILURES, now_ms).left < 1:
            self._refuse("failures")
        if is_exempt:
            return
        limits = (("orders", "", ORDERS), ("domain", domain, DOMAIN), ("host", hostname, HOSTNAME))
        for name, subject, limit in limits:
            self._take(name, subject, limit, now_ms)

    def failed(self, hostname: str, now_ms: int) -> None:
        """A validation of the hostname has failed."""
        self._take("failures", hostname, FAILURES, now_ms)

    def forget(self, now_ms: int) -> None:
        """Drop the buckets that are full again: a year has millions of them."""
        self._buckets = {
            (name, subject): bucket
            for (name, subject), bucket in self._buckets.items()
            if now_ms - bucket.at_ms < _WEEK_MS
        }

    def _take(self, name: str, subject: str, limit: Limit, now_ms: int) -> None:
        bucket = self._left(name, subject, limit, now_ms)
        if bucket.left < 1:
            self._refuse(name)
        else:
            bucket.left -= 1

    def _left(self, name: str, subject: str, limit: Limit, now_ms: int) -> _Bucket:
        bucket = self._buckets.setdefault((name, subject), _Bucket(limit.count, now_ms))
        back = (now_ms - bucket.at_ms) * limit.count / limit.period_ms
        # A billionth of one is what adding fractions has lost.
        bucket.left = min(limit.count, bucket.left + back + 1e-9)
        bucket.at_ms = now_ms
        return bucket

    def _refuse(self, name: str) -> None:
        self.refused[name] = self.refused.get(name, 0) + 1
