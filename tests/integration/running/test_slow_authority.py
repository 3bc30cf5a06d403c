"""An order that the CA has yet to answer is not lost by a stop or a reload: it is placed once."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event

import pytest

from tests.integration.running.site import LIMIT_SECONDS
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import Exchange
from tests.lab.bind import BindPair
from tests.lab.ports import refuses_connections
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab, mood_lab


@dataclass(frozen=True)
class Late:
    """Lets the CA act, and answers when it may."""

    name: str = "late"
    has_acted: Event = field(default_factory=Event)
    may_answer: Event = field(default_factory=Event)

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        self.has_acted.set()
        self.may_answer.wait(LIMIT_SECONDS)
        return answer


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[MoodLab]:
    with mood_lab(tmp_path_factory.mktemp("slow"), bind) as lab:
        yield lab


def test_order_under_way_at_a_reload_is_placed_once(slow: MoodLab) -> None:
    mine, late = slow.world.ownership(), Late()
    slow.on(mine, Operation.NEW_ORDER, late)
    mine.get()
    assert late.has_acted.wait(LIMIT_SECONDS)
    os.kill(slow.gateway.pid, signal.SIGHUP)
    wait_until(lambda: "configuration taken" in slow.log(), "the new parts work")
    late.may_answer.set()
    slow.issued(mine)
    assert len(slow.orders(mine)) == 1


def test_order_under_way_at_a_stop_is_placed_once(slow: MoodLab) -> None:
    mine, late = slow.world.ownership(), Late()
    slow.on(mine, Operation.NEW_ORDER, late)
    mine.get()
    assert late.has_acted.wait(LIMIT_SECONDS)
    os.kill(slow.gateway.pid, signal.SIGTERM)
    wait_until(lambda: refuses_connections(slow.gateway.port), "it listens no more")
    late.may_answer.set()
    slow.gateway.stop()
    assert slow.gateway.process.exit_code == 0
    slow.gateway.start()
    slow.issued(mine)
    assert len(slow.orders(mine)) == 1


def test_issuances_under_way_at_stops_and_reloads_are_ordered_once_each(slow: MoodLab) -> None:
    batches = [[slow.world.ownership() for _ in range(4)] for _ in range(4)]
    for number, batch in enumerate(batches):
        for mine in batch:
            mine.get()
        wait_until(lambda batch=batch: slow.orders(batch[0]) != [], "it is ordered")  # type: ignore[misc]
        if number % 2:
            os.kill(slow.gateway.pid, signal.SIGHUP)
        else:
            slow.gateway.stop()
            slow.gateway.start()
    every = [mine for batch in batches for mine in batch]
    slow.issued(*every)
    assert [len(slow.orders(mine)) for mine in every] == [1] * len(every)
