"""What `gateway reseal` says of a run: which keys may leave, and when none may."""

from collections import Counter

import pytest

from gateway.certificates.resealing import Report, Stage
from gateway.certificates.seals import Thing
from gateway.cli import reseal

COUNTS = Counter({(Thing.PRIVATE_KEY, "old"): 2, (Thing.MARKER, "older"): 1})


def report(**changes: object) -> Report:
    made = Report(is_finished=True, counts=COUNTS.copy())
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("key_ids", "verdict"),
    [
        (("new",), "Everything depends on new, the one key there is."),
        (("new", "old"), "old is no longer needed and may leave the keyring file."),
        (
            ("new", "old", "older"),
            "old, older are no longer needed and may leave the keyring file.",
        ),
    ],
)
def test_complete_run_names_the_keys_that_may_leave(key_ids: tuple[str, ...], verdict: str) -> None:
    assert reseal._verdict(report(), key_ids) == verdict


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"failures": {"a.example": ("a.example: no",)}}, "1 could not be moved"),
        ({"late": Counter({(Thing.PRIVATE_KEY, "old"): 1})}, "sealed 1 private key under old"),
    ],
)
def test_incomplete_run_lets_no_key_leave(changes: dict[str, object], why: str) -> None:
    made = report(**changes)
    verdict = reseal._verdict(made, ("new", "old"))
    assert not made.is_complete
    assert why in verdict
    assert "Keep all keys in the keyring file (new, old)" in verdict
    assert "no longer" not in verdict


def test_unfinished_run_is_not_complete() -> None:
    assert not report(is_finished=False).is_complete


def test_summary_counts_by_the_key_that_things_came_from() -> None:
    assert reseal._moved(report(), "new") == (
        "Moved to new: 2 private keys from old; 1 owner marker from older."
    )
    assert reseal._moved(report(counts=Counter()), "new") == "Nothing had to be moved to new."


def test_inventory_names_every_key_of_the_file() -> None:
    assert list(reseal._inventory(report(), ("new", "old", "older"))) == [
        "new (first): nothing",
        "old: 2 private keys",
        "older: 1 owner marker",
    ]


def test_thousand_failures_are_told_by_the_first_of_them() -> None:
    lines = reseal._limited([f"{number}" for number in range(1000)])
    assert len(lines) == reseal.SHOWN_AT_MOST + 1
    assert lines[-1] == "… and 980 more of the same kind"
    assert reseal._limited(["one"]) == ["one"]


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (Stage.MOVING, "resealed 120 of 4000"),
        (Stage.CHECKING, "checked 120 of 4000"),
        (Stage.LOOKING, "looked at 120 of 4000"),
    ],
)
def test_progress_has_a_word_for_each_stage(stage: Stage, words: str) -> None:
    assert reseal._so_far(report(stage=stage, done=120, total=4000)) == words
