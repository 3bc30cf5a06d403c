"""Floods of calls that nobody vouches for: how many are looked at, of each address and of all.

Responsible for counting what was refused for its token or is no call at all, and for shutting an
address out while it has had too many: then the endpoint answers `overloaded` without reading Redis
or the call. A good caller behind the same address is let pass all the same, by its token, which was
right a short time ago; the gate judges it as ever, so one that was revoked is refused. A token
vouches for its holder, not for a flood: what it let in and is refused is charged to it, and once
it has had as many refusals as an address may have it lets nothing in.

Of all refusals in a second, half are kept for addresses that have had none lately. So a flood from
many addresses leaves room for a caller that is new here; one that takes a fresh address for each
call can use up that too, and then only known tokens pass.

In memory, for this process alone, and bounded: of addresses and of tokens the ones seen last. Must
not: parse a call or keep a token. No I/O. Called by the endpoint.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.access.gcra import MINUTE_US, SECOND_US, Rate, in_ms
from gateway.access.tokens import digests_in

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ADDRESSES: Final = 65_536
PER_MINUTE_OF_TOKEN: Final = 60
"""So many refusals a token may have where an address may have any number."""

MOST_TOKENS: Final = 16_384
KNOWN_SECONDS: Final = 3_600
"""How long a token is remembered as good. Long, since every relay that calls once in a while should
be: it opens nothing by itself, and is forgotten when it is refused."""


@dataclass(frozen=True, slots=True)
class FloodLimits:
    """How many refusals an address may have in a minute, and all of them in a second; 0: any."""

    per_minute: int
    per_second: int


class FloodGate:
    """Counts refusals. `now_us` counts microseconds and never goes back."""

    def __init__(self, limits: FloodLimits, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._whole_at_us: OrderedDict[str, int] = OrderedDict()
        self._all_whole_at_us = 0
        self._known_until_us: OrderedDict[str, int] = OrderedDict()
        self._token_whole_at_us: OrderedDict[str, int] = OrderedDict()
        self.use(limits)

    def use(self, limits: FloodLimits) -> None:
        """Go by other limits from now on, with what was counted."""
        self._each = Rate(limits.per_minute, MINUTE_US) if limits.per_minute else None
        self._all = Rate(limits.per_second, SECOND_US) if limits.per_second else None
        self._of_token = Rate(limits.per_minute or PER_MINUTE_OF_TOKEN, MINUTE_US)

    def wait_ms(self, address: str) -> int:
        """For how long nothing of an address is looked at; 0: it is not shut out."""
        now_us = self._now_us()
        stored_us = self._whole_at_us.get(address, 0)
        if stored_us <= now_us and self._all_whole_at_us <= now_us:  # mostly: nothing is used
            return 0
        own = self._each.wait_us(stored_us, now_us) if self._each else 0
        if self._all is None:
            return in_ms(own)
        spare = self._all.count // 2 if stored_us > now_us else 0
        return in_ms(max(own, self._all.wait_us(self._all_whole_at_us, now_us, spare)))

    def refused(self, address: str) -> None:
        """Count a call that was refused for its token, or is none."""
        now_us = self._now_us()
        is_shut_out = self.wait_ms(address) > 0
        if self._each is not None:
            stored_us = self._whole_at_us.get(address, 0)
            self._whole_at_us[address] = self._each.after_one(stored_us, now_us)
            _bound(self._whole_at_us, address, MOST_ADDRESSES)
        # One that is shut out already uses up nothing of what is kept for others.
        if self._all is not None and not is_shut_out:
            self._all_whole_at_us = self._all.after_one(self._all_whole_at_us, now_us)

    def voucher_in(self, body: bytes) -> str | None:
        """The digest of a token that was right lately and is written in the body of a call.

        Found without reading the call, so it may stand anywhere in it: whether it is the caller's
        own shows once the call was read.
        """
        return next((each for each in digests_in(body) if self.is_known(each)), None)

    def is_known(self, digest: str | None) -> bool:
        """Whether a token was right lately, by its digest; None stands for what can be none.

        One that was right, but has had too many refusals of what it let in, is not.
        """
        now_us = self._now_us()
        if digest is None or self._known_until_us.get(digest, 0) <= now_us:
            return False
        stored_us = self._token_whole_at_us.get(digest, 0)
        return stored_us <= now_us or self._of_token.wait_us(stored_us, now_us) == 0

    def charge(self, voucher: str) -> None:
        """Count a refusal of what was let in for a token, which is forgotten for too many."""
        now_us = self._now_us()
        stored_us = self._token_whole_at_us.get(voucher, 0)
        self._token_whole_at_us[voucher] = self._of_token.after_one(stored_us, now_us)
        _bound(self._token_whole_at_us, voucher, MOST_TOKENS)
        if not self.is_known(voucher):
            self._known_until_us.pop(voucher, None)

    def remember(self, digest: str | None) -> None:
        """Take note of a token that was right, once a minute at most."""
        if digest is None:
            return
        until_us = self._now_us() + KNOWN_SECONDS * SECOND_US
        if until_us - self._known_until_us.get(digest, 0) >= MINUTE_US:
            self._known_until_us[digest] = until_us
            _bound(self._known_until_us, digest, MOST_TOKENS)

    def forget(self, digest: str | None) -> None:
        """Take note of a token that was refused."""
        if digest is not None:
            self._known_until_us.pop(digest, None)


def _bound(table: OrderedDict[str, int], last: str, most: int) -> None:
    table.move_to_end(last)
    while len(table) > most:
        table.popitem(last=False)
