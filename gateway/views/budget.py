"""What of an authority's budget is free, and what holds orders back, in words: pure.

For the operator alone: it names the hostnames and the clients that the figures are used by. Called
by `cli.budget` and the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.certificates.ledger import HeldBy
from gateway.views.times import time_words

if TYPE_CHECKING:
    from gateway.certificates.ledger import Hold, LedgerState, LimitUse

# In the order in which they are shown: the account, its domains, its hostnames.
_WORDS: Final = {
    "orders": "new orders in 3 hours",
    "orders-of": "new orders in 3 hours, this client's share",
    "domain": "certificates in 7 days",
    "domain-of": "certificates in 7 days, this client's share",
    "host": "certificates in 7 days",
    "failed": "failed validations in an hour",
}
_ORDER: Final = list(_WORDS)
_OF_HOSTNAMES: Final = {"host", "failed"}


class UsesTold(NamedTuple):
    """The uses of a ledger that are told, in their order, and how many hostnames were left out."""

    uses: tuple[LimitUse, ...]
    hostnames_left_out: int


def told_uses(state: LedgerState, *, clients: int, with_rest: bool) -> UsesTold:
    """What is told of a ledger, of `clients` clients; `with_rest`: hostnames with room left too.

    The share of a client holds nothing while there is no other, and is left out then.
    """
    uses = [use for use in state.uses if clients > 1 or not use.client_id]
    told = [use for use in uses if with_rest or not _is_roomy_hostname(use)]
    left_out = {use.subject for use in uses} - {use.subject for use in told}
    return UsesTold(tuple(sorted(told, key=_place)), len(left_out))


def whose_words(use: LimitUse) -> str:
    """What the limit counts for: a domain, a hostname, a client; empty of the account's own."""
    return " ".join(part for part in (use.subject, use.client_id) if part)


def use_words(use: LimitUse) -> str:
    """How much of a limit is free, and when the next one is where nothing is.

    Not how much was used: what is used comes back steadily, so that is no count of anything.
    """
    free = max(0, use.of - use.used)
    words = f"of {use.of:,} {_WORDS[use.limit.value]},"
    if not free:
        return f"{words} none is free now; the next one is at {time_words(use.next_free_ms)}"
    return f"{words} {free:,} {'is' if free == 1 else 'are'} free now"


def hold_words(hold: Hold) -> str:
    """What holds orders back, until when, and why."""
    end = f"until {time_words(hold.until_ms)}: {hold.detail}"
    if hold.by is HeldBy.SUSPENDED:
        return f"left alone {end}"
    return f"{hold.subject or 'every order'}: held by the authority {end}"


def _is_roomy_hostname(use: LimitUse) -> bool:
    return use.limit.value in _OF_HOSTNAMES and use.used < use.of


def _place(use: LimitUse) -> tuple[int, str, str]:
    return _ORDER.index(use.limit.value), use.subject, use.client_id
