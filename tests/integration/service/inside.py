"""A look inside the lab, where the wire does not show what a test needs to know.

Used by the tests of this folder and of the page: what Redis holds of a hostname, a certificate at
rest, and an issuance that rests half way.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Ownership
from tests.lab.lab import Lab
from tests.lab.process import wait_until


def stored(lab: Lab, hostname: str) -> dict[str, str]:
    """The fields of a hostname's document in Redis."""
    with redis.Redis.from_url(lab.redis.url, decode_responses=True) as connection:
        for key in connection.scan_iter(match=f"*:host:{hostname}"):
            fields: dict[str, str] = connection.hgetall(key)
            return fields
    return {}


def orders_placed(lab: Lab) -> int:
    """How many new orders Pebble has taken so far, by its own log."""
    return (lab.pebble.process.log_file.read_text()).count("Added order")


@contextmanager
def resting_while_published(lab: Lab, mine: Ownership) -> Iterator[None]:
    """An issuance whose challenge is published and, within the block, goes no further.

    The secondary stands still meanwhile, and the gateway waits for it.
    """
    secondary = lab.bind.secondary_process
    secondary.pause()
    try:
        assert mine.get()["status"] == "pending"
        wait_until(
            lambda: '"published"' in stored(lab, mine.hostname).get("issuance", ""),
            "the challenge is published",
        )
        yield
    finally:
        secondary.resume()


def at_rest(lab: Lab, mine: Ownership) -> Ownership:
    """An ownership with a certificate that nobody is busy with."""
    mine.certificate()
    wait_until(
        lambda: not stored(lab, mine.hostname).keys() & {"issuance", "debts", "lease"},
        f"{mine.hostname} is at rest",
    )
    return mine


@contextmanager
def delegated_away(hand: Hand, hostname: str) -> Iterator[None]:
    """A name whose challenge has no place in the zone meanwhile."""
    hand.add(f"{hostname} 300 NS ns.elsewhere.invalid.")
    try:
        yield
    finally:
        hand.update(f"delete {hostname} NS")
