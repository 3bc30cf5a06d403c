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


def test_new_issuance_is_at_its_first_stage() -> None:
    assert told(NEW) == [("current", 1), *[("to-come", None)] * 7]


def test_stages_before_the_present_one_are_passed_at_their_times() -> None:
    validating = replace(NEW, state=State.VALIDATING, passed_ms=VALIDATED)
    assert told(validating) == [
        *[("passed", at_ms) for at_ms in (1, 2, 3, 4)],
        ("current", 5),
        *[("to-come", None)] * 3,
    ]


def test_stage_that_was_not_needed_is_skipped() -> None:
    at_once = replace(NEW, state=State.READY, passed_ms={"requested": 1, "ordered": 2, "ready": 3})
    assert told(at_once)[2:6] == [*[("skipped", None)] * 3, ("current", 3)]


def test_issuance_that_waits_is_at_the_stage_in_which_it_goes_on() -> None:
    waiting = replace(NEW, state=State.WAITING, resume=State.ORDERED, passed_ms=VALIDATED)
    assert told(waiting) == [("passed", 1), ("waiting", 2), *[("to-come", None)] * 6]


def test_failure_is_at_the_last_stage_that_was_reached() -> None:
    failed = replace(NEW, state=State.FAILED, passed_ms=VALIDATED)
    assert told(failed)[3:] == [("passed", 4), ("failed", 5), *[("to-come", None)] * 3]


@pytest.mark.parametrize("state", [State.FAILED, State.WAITING])
def test_failure_of_which_nothing_is_known_is_at_the_first_stage(state: State) -> None:
    stopped = replace(NEW, state=state, passed_ms={})
    assert told(stopped)[0] == (state.value, None)


def test_stages_of_an_older_release_are_passed_at_unknown_times() -> None:
    older = replace(NEW, state=State.READY, passed_ms={"ready": 9})
    assert told(older)[:6] == [*[("passed", None)] * 5, ("current", 9)]


def test_stages_of_a_certificate_are_all_passed_or_skipped() -> None:
    passed = stages_passed({"requested": 1, "ordered": 2, "ready": 3, "issued": 4})
    assert {stage.status for stage in passed} == {Status.PASSED, Status.SKIPPED}
    assert (passed[-1].state, passed[-1].at_ms) == (State.ISSUED, 4)
    assert stages_passed({}) == ()


def test_name_that_is_no_stage_is_left_out() -> None:
    assert len(stages_passed({"requested": 1, "unheard-of": 2})) == len(STAGES)
