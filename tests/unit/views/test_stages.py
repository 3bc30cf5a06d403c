"""The stages of an issuance, as a timeline has them."""

from dataclasses import replace

import pytest

from gateway.certificates import machine
from gateway.certificates.moves import Moment
from gateway.certificates.states import Issuance, State
from gateway.views.stages import STAGES, Status, stages_of, stages_passed

NEW = machine.request("i", Moment(1, 0))
VALIDATED = {"requested": 1, "ordered": 2, "published": 3, "propagated": 4, "validating": 5}


def told(issuance: Issuance) -> list[tuple[str, int | None]]:
    return [(stage.status.value, stage.at_ms) for stage in stages_of(issuance)]


def test_stages_are_the_states_of_the_smooth_way_in_their_order() -> None:
    assert list(STAGES) == [state for state in State if state not in {State.WAITING, State.FAILED}]


def test_new_issuance_is_requested_and_its_order_is_worked_for() -> None:
    assert told(NEW) == [("passed", 1), ("current", None), *[("to-come", None)] * 6]


def test_stages_that_were_entered_are_passed_and_the_next_is_worked_for() -> None:
    validating = replace(NEW, state=State.VALIDATING, passed_ms=VALIDATED)
    assert told(validating) == [
        *[("passed", at_ms) for at_ms in (1, 2, 3, 4, 5)],
        ("current", None),
        *[("to-come", None)] * 2,
    ]


def test_published_challenge_is_passed_and_all_name_servers_are_worked_for() -> None:
    published = replace(NEW, state=State.PUBLISHED, passed_ms={"requested": 1, "published": 3})
    (current,) = (each for each in stages_of(published) if each.status is Status.CURRENT)
    assert current.words == "challenge on all name servers"


def test_last_stage_is_worked_for_until_there_is_a_certificate() -> None:
    finalizing = replace(NEW, state=State.FINALIZING, passed_ms={"requested": 1, "finalizing": 7})
    assert told(finalizing)[-2:] == [("passed", 7), ("current", None)]


def test_stage_that_was_not_needed_is_skipped() -> None:
    at_once = replace(NEW, state=State.READY, passed_ms={"requested": 1, "ordered": 2, "ready": 3})
    assert told(at_once)[2:7] == [*[("skipped", None)] * 3, ("passed", 3), ("current", None)]


def test_issuance_that_waits_is_at_the_stage_after_the_one_in_which_it_goes_on() -> None:
    waiting = replace(NEW, state=State.WAITING, resume=State.ORDERED, passed_ms=VALIDATED)
    passed = [("passed", 1), ("passed", 2)]
    assert told(waiting) == [*passed, ("waiting", None), *[("to-come", None)] * 5]


def test_issuance_that_waits_for_an_order_waits_to_be_ordered() -> None:
    waiting = replace(NEW, state=State.WAITING, passed_ms=VALIDATED)
    assert told(waiting)[:3] == [("passed", 1), ("waiting", None), ("to-come", None)]


def test_failure_is_at_the_stage_after_the_last_that_was_reached() -> None:
    failed = replace(NEW, state=State.FAILED, passed_ms=VALIDATED)
    assert told(failed)[4:] == [("passed", 5), ("failed", None), *[("to-come", None)] * 2]


@pytest.mark.parametrize("state", [State.FAILED, State.WAITING])
def test_failure_of_which_nothing_is_known_is_at_the_first_stage(state: State) -> None:
    stopped = replace(NEW, state=state, passed_ms={})
    assert told(stopped)[:2] == [(state.value, None), ("to-come", None)]


def test_stages_of_an_older_release_are_passed_at_unknown_times() -> None:
    older = replace(NEW, state=State.READY, passed_ms={"ready": 9})
    assert told(older)[:7] == [*[("passed", None)] * 5, ("passed", 9), ("current", None)]


def test_stages_of_a_certificate_are_all_passed_or_skipped() -> None:
    passed = stages_passed({"requested": 1, "ordered": 2, "ready": 3, "issued": 4})
    assert {stage.status for stage in passed} == {Status.PASSED, Status.SKIPPED}
    assert (passed[-1].state, passed[-1].at_ms) == (State.ISSUED, 4)
    assert stages_passed({}) == ()


def test_name_that_is_no_stage_is_left_out() -> None:
    assert len(stages_passed({"requested": 1, "unheard-of": 2})) == len(STAGES)
