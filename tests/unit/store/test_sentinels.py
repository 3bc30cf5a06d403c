"""Whom the Sentinels name, and how long that is certain."""

from dataclasses import replace

import pytest

from gateway.store.sentinels import View, agreement, is_settled, view_of

OLD, NEW = ("192.0.2.1", 6379), ("192.0.2.2", 6379)
SURE = View(1, OLD, is_well=True, steady_seconds=4.0, quorum=2, sentinels=3)
SUSPECTING = replace(SURE, is_well=False)
LEADER = replace(SURE, epoch=2, address=NEW)

STATE = {
    "ip": "192.0.2.1",
    "port": "6379",
    "flags": "master",
    "config-epoch": "1",
    "down-after-milliseconds": "5000",
    "last-ok-ping-reply": "1000",
    "quorum": "2",
    "num-other-sentinels": "2",
}


def test_view_is_read_from_the_answer() -> None:
    assert view_of(STATE) == SURE


@pytest.mark.parametrize("flags", ["s_down,master", "s_down,o_down,master", "master,disconnected"])
def test_primary_that_is_suspected_is_not_well(flags: str) -> None:
    assert view_of({**STATE, "flags": flags}) == SUSPECTING


def test_answer_without_times_makes_nothing_certain() -> None:
    few = {name: STATE[name] for name in ("ip", "port", "config-epoch")}
    assert view_of(few).steady_seconds == 0
    assert view_of({**STATE, "last-ok-ping-reply": "9000"}).steady_seconds == 0


@pytest.mark.parametrize(
    ("views", "settled"),
    [
        ([], False),
        ([SURE], False),
        ([SURE, SURE], True),
        ([SURE, SUSPECTING], False),
        ([SURE, LEADER], False),
        ([SURE, SURE, LEADER], False),
        ([SURE, LEADER, LEADER], True),
        ([SUSPECTING, SUSPECTING, SUSPECTING], False),
    ],
)
def test_settled_is_what_a_majority_names_and_finds_well(
    views: list[View], *, settled: bool
) -> None:
    assert is_settled(views, 3) is settled


@pytest.mark.parametrize(
    ("views", "address", "is_of_majority", "steady_seconds"),
    [
        ([SURE, SURE], OLD, True, 4.0),
        ([SURE, replace(SURE, steady_seconds=0.5)], OLD, True, 0.5),
        ([SURE], OLD, False, 0.0),
        ([SURE, SUSPECTING], OLD, True, 0.0),
        ([SUSPECTING, SUSPECTING], OLD, True, 0.0),
        # After a failover, who led it knows of it first.
        ([SURE, SURE, LEADER], NEW, False, 0.0),
        ([SURE, LEADER, LEADER], NEW, True, 4.0),
        # The third one alone could have it replaced.
        ([replace(SURE, quorum=1)] * 2, OLD, True, 0.0),
        ([replace(SURE, quorum=1)] * 3, OLD, True, 4.0),
        # There are more than were asked.
        ([replace(SURE, sentinels=5)] * 3, OLD, True, 0.0),
    ],
)
def test_newest_is_named_and_certain_while_each_quorum_has_one_that_finds_it_well(
    views: list[View], address: tuple[str, int], *, is_of_majority: bool, steady_seconds: float
) -> None:
    named = agreement(views, 3)
    assert (named.address, named.is_of_majority, named.steady_seconds) == (
        address,
        is_of_majority,
        steady_seconds,
    )
