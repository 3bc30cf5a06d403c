"""Turns of updates: what waits sets out in time, whatever else is sent meanwhile."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.dns import lanes
from gateway.dns.lanes import Lane, Waiting
from tests.unit.dns.building import NAME


async def test_pause_puts_off_nothing_that_would_set_out_before_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else updates that are kept apart, each ending in the pause of the last, put it off for good.

    Here one ends, and the pause is longer than the test.
    """
    monkeypatch.setattr(lanes, "PAUSE_SECONDS", 60.0)
    lane, sent = Lane(), asyncio.Event()

    async def send_together(_: Sequence[Waiting]) -> None:
        sent.set()

    with lane.taken():
        lane.wait(Waiting(name=NAME, deadline=0.0), send_together)
    async with asyncio.timeout(5):
        await sent.wait()
