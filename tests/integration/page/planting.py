"""What a test puts into the lab's Redis, where no call makes it quickly or exactly.

Used by the tests of this folder.
"""

import json
import time
from typing import Any

import redis

from gateway.store.keys import CENSUS_KEY, CENSUS_TURN_KEY
from tests.integration.service.inside import stored
from tests.lab.lab import Lab
from tests.lab.process import wait_until

MARKUP = '<script>window.bad=1</script><b title="x">it\'s &amp;</b>'


def now_ms() -> int:
    return int(time.time() * 1000)


def plant(lab: Lab, hostname: str, field: str, value: str) -> None:
    """Write one field of a hostname's document, which must be there."""
    with redis.Redis.from_url(lab.redis.url, decode_responses=True) as connection:
        (key,) = connection.scan_iter(match=f"*:host:{hostname}")
        connection.hset(key, field, value)


def fail(lab: Lab, hostname: str, message: str, **fields: Any) -> None:
    """Have an issuance failed as the CA would have it: its words and times are exact then."""
    began_ms = now_ms() - 7_200_000
    issuance = {
        "issuance_id": "i",
        "state": "failed",
        "begun_at_ms": began_ms,
        "changed_at_ms": began_ms + 9_000,
        "due_at_ms": 4_000_000_000_000,
        "failures": 3,
        "reason": "issuance-failed",
        "message": message,
        "passed_ms": {"requested": began_ms, "ordered": began_ms + 9_000},
    }
    wait_until(
        lambda: not stored(lab, hostname).keys() & {"issuance", "lease"}, "nothing is under way"
    )
    plant(lab, hostname, "issuance", json.dumps({**issuance, **fields}))


def count_anew(lab: Lab) -> None:
    """Have all hostnames counted, and wait for that."""
    began_ms = now_ms()
    with redis.Redis.from_url(lab.redis.url, decode_responses=True) as connection:

        def is_counted() -> bool:
            census = connection.get(CENSUS_KEY)
            if census is not None and json.loads(census)["taken_at_ms"] >= began_ms:
                return True
            # Each time: one that was under way takes the next one's turn as it ends.
            connection.delete(CENSUS_TURN_KEY)
            return False

        wait_until(is_counted, "all hostnames are counted anew", 30.0)
