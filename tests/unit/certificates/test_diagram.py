"""The drawing of the issuance machine: current, and made from all of it."""

import itertools

import pytest

from gateway.certificates import events, machine
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import State
from tests.drawing.exploring import Map, Unexplored, explore
from tests.drawing.mermaid import BEGIN, DOCUMENT, END, Markless, draw, placed
from tests.drawing.samples import all_samples


@pytest.fixture(scope="module")
def found() -> Map:
    return explore()


def test_page_shows_the_machine_as_it_is(found: Map) -> None:
    page = DOCUMENT.read_text()
    assert placed(page, draw(found)) == page, "run scripts/state-diagram"


def test_walk_comes_to_every_pair_that_the_machine_lists(found: Map) -> None:
    assert found.pairs == set(machine._TRANSITIONS)


@pytest.mark.parametrize("left_out", [events.AuthorizationSeen, events.ChallengePublished])
def test_walk_names_what_it_has_no_sample_for(left_out: type) -> None:
    fewer = [each for each in all_samples() if type(each.event) is not left_out]
    with pytest.raises(Unexplored, match=f"{left_out.__name__} in ordered"):
        explore(fewer)


def test_walk_names_a_state_that_nothing_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its way to `published`, the machine lists what can never happen."""
    monkeypatch.delitem(machine._TRANSITIONS, (State.ORDERED, events.ChallengePublished))
    with pytest.raises(Unexplored, match="PropagationSeen in published"):
        explore()


def test_every_kind_of_fault_is_among_the_samples() -> None:
    kinds = {
        each.event.kind for each in all_samples() if isinstance(each.event, events.AuthorityFailed)
    }
    assert kinds == set(FaultKind)


def test_every_way_between_states_is_drawn(found: Map) -> None:
    """On an arrow of its own, or on the arrow of all states at work."""
    arrows = {line.strip().partition(":")[0] for line in draw(found).splitlines() if "-->" in line}
    for start, end in found.edges:
        if start is not end:
            ways = {f"{start} --> {end}", f"any --> {end}", f"{start} --> any"}
            assert ways & arrows, f"{start} --> {end}"


def test_smooth_way_is_drawn_step_by_step(found: Map) -> None:
    smooth = list(State)[: list(State).index(State.ISSUED) + 1]
    diagram = draw(found)
    for start, end in itertools.pairwise(smooth):
        assert f"    {start} --> {end}: " in diagram


def test_mermaid_takes_what_is_drawn_for_one_statement_a_line(found: Map) -> None:
    lines = draw(found).splitlines()
    assert [line for line in lines if ";" in line] == []
    assert all(line.count("-->") < 2 for line in lines)


def test_diagram_replaces_the_former_one_and_nothing_else() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert placed(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_page_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(Markless):
        placed("before\nafter\n", "new")
