"""Names of versions, and which may go."""

import pytest
from hypothesis import given, strategies as st

from gateway.agent.versions import (
    is_version,
    never_live,
    next_version,
    outlived,
    previous_version,
)

_A, _B, _C = (letter * 64 for letter in "abc")
_NOON = 1_700_000_000_000
_FIRST_A = "0001-20231114T221320Z-aaaaaaaaaaaa"
_SECOND_B = "0002-20231114T221320Z-bbbbbbbbbbbb"
_THIRD_B = "0003-20231114T221320Z-bbbbbbbbbbbb"
_FOURTH_C = "0004-20231114T221320Z-cccccccccccc"
_ALL = (_FOURTH_C, _FIRST_A, _THIRD_B, _SECOND_B)


def test_name_says_number_time_and_certificate() -> None:
    assert next_version([], _A, _NOON) == _FIRST_A


def test_number_follows_the_highest() -> None:
    assert next_version([_THIRD_B, _FIRST_A], _C, _NOON) == _FOURTH_C


def test_number_rises_though_the_clock_was_set_back() -> None:
    assert next_version([_FIRST_A], _B, 0) == "0002-19700101T000000Z-bbbbbbbbbbbb"


def test_number_outgrows_its_four_digits() -> None:
    tenth = next_version(["9999-20231114T221320Z-aaaaaaaaaaaa"], _B, _NOON)
    assert tenth.startswith("10000-")
    assert is_version(tenth)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "1-20231114T221320Z-aaaaaaaaaaaa",
        "0001-20231114T221320Z-aaaaaaaaaaaa ",
        "0001-20231114T221320Z-aaaaaaaaaaaa\n",
        "1" * 19 + "-20231114T221320Z-aaaaaaaaaaaa",
        "9" * 5000 + "-20231114T221320Z-aaaaaaaaaaaa",
        "0001-20231114T221320Z-AAAAAAAAAAAA",
        "0001-20231114T221320Z-aaaaaaaaaaa",
        ".new-0001-20231114T221320Z-aaaaaaaaaaaa",
        "\u0660\u0660\u0660\u0661-20231114T221320Z-aaaaaaaaaaaa",
        "backup",
    ],
)
def test_other_names_are_no_versions(name: str) -> None:
    assert not is_version(name)


def test_previous_is_the_last_before_the_live_one() -> None:
    assert previous_version(_ALL, _FOURTH_C) == _THIRD_B


def test_previous_is_another_certificate_where_only_access_had_changed() -> None:
    assert previous_version(_ALL, _THIRD_B) == _FIRST_A


def test_previous_is_none_for_the_first_one() -> None:
    assert previous_version(_ALL, _FIRST_A) is None


def test_never_live_are_those_after_the_live_one() -> None:
    assert never_live(_ALL, _SECOND_B) == {_THIRD_B, _FOURTH_C}


def test_never_live_are_none_without_a_live_one() -> None:
    assert never_live(_ALL, None) == set()


def test_outlived_are_those_before_the_previous_one() -> None:
    assert outlived(_ALL, _FOURTH_C) == {_FIRST_A, _SECOND_B}


def test_outlived_spares_what_came_after_the_live_one() -> None:
    assert outlived(_ALL, _THIRD_B) == {_SECOND_B}


def test_outlived_are_none_without_a_live_one() -> None:
    assert outlived(_ALL, None) == set()


@given(st.lists(st.sampled_from([_A, _B, _C]), min_size=1, max_size=8), st.data())
def test_live_and_previous_are_never_outlived(prints: list[str], data: st.DataObject) -> None:
    present: list[str] = []
    for fingerprint in prints:
        present.append(next_version(present, fingerprint, _NOON))
    live = data.draw(st.sampled_from(present))
    going = outlived(present, live)
    assert live not in going
    assert previous_version(present, live) not in going
    assert not going & never_live(present, live)
    assert len(present) - len(going) - len(never_live(present, live)) <= 2


def test_name_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not the name of a version"):
        next_version(["backup"], _A, _NOON)
