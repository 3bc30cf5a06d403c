"""A document whose times are in no calendar is unreadable, whichever of its parts has one."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from gateway.certificates.agenda import certificate_of, debts_of, issuance_of
from gateway.certificates.leases import has_lapsed
from gateway.certificates.states import Debt, DebtKind, Issuance, State, StoredCertificate
from gateway.contract.names import Hostname
from gateway.holdings.remembered import require_readable
from gateway.moments import LATEST_MS
from gateway.store.documents import Document, Unreadable, as_document
from tests.unit.certificates.test_outlook import CERTIFICATE, issuance

NAME = Hostname("a.example")
RECORD = {"type": "A", "value": "192.0.2.1", "ttl": 60, "published": True, "edition": "e"}
DEBT = Debt(DebtKind.CHALLENGE_RECORD, zone="example", name="n", value="v")
PARTS = {
    "certificate": CERTIFICATE.to_json(),
    "issuance": issuance(State.ORDERED).to_json(),
    "debts": DEBT.to_json(),
}
SHAPES = {"certificate": StoredCertificate, "issuance": Issuance, "debts": Debt}
BY_NAME = {"passed_over", "passed_ms", "stages_ms"}
TOLD_ONLY = {"passed_ms", "stages_ms", "wanted_since_ms"}
"""What only a person reads."""

ALL_TIMES = [
    (part, field.name)
    for part, shape in SHAPES.items()
    for field in fields(shape)
    if field.name.endswith("_ms") or field.name in BY_NAME
]
TIMES = [(part, name) for part, name in ALL_TIMES if name not in TOLD_ONLY]


def document(part: str, changes: dict[str, object]) -> Document:
    stored: Any = {**PARTS[part], **changes}
    whole: dict[str, Any] = {part: (stored,) if part == "debts" else stored}
    return replace(Document(NAME, version="1"), **whole)


def at(name: str, time_ms: int) -> object:
    """A time as the field has it."""
    if name == "window_ms":
        return [0, time_ms]
    return {"ordered": time_ms} if name in BY_NAME else time_ms


@pytest.mark.parametrize("time_ms", [-1, LATEST_MS + 1, 10**17])
@pytest.mark.parametrize(("part", "name"), TIMES)
def test_time_that_no_calendar_has_makes_a_document_unreadable(
    part: str, name: str, time_ms: int
) -> None:
    spoiled = document(part, {name: at(name, time_ms)})
    with pytest.raises(Unreadable):
        require_readable(spoiled)
    with pytest.raises(Unreadable):
        (certificate_of(spoiled), issuance_of(spoiled), debts_of(spoiled))


@pytest.mark.parametrize("time_ms", [0, LATEST_MS])
@pytest.mark.parametrize(("part", "name"), ALL_TIMES)
def test_first_and_last_time_of_the_calendar_are_read(part: str, name: str, time_ms: int) -> None:
    require_readable(document(part, {name: at(name, time_ms)}))


@pytest.mark.parametrize(
    "odd", [[], None, "x", 1.5, -1, True, 10**40, {"a": 1}, {"ordered": None}, {"ordered": "1"}]
)
@pytest.mark.parametrize("name", sorted(TOLD_ONLY))
def test_time_that_only_a_person_reads_takes_nothing_away(name: str, odd: object) -> None:
    part = "certificate" if name == "stages_ms" else "issuance"
    spoiled = document(part, {name: odd})
    require_readable(spoiled)
    read = certificate_of(spoiled) or issuance_of(spoiled)
    assert getattr(read, name) == ({} if name in BY_NAME else None)


def test_of_times_that_only_a_person_reads_those_that_are_some_are_kept() -> None:
    odd = {"requested": 1, "ordered": -1, "ready": 1.5, "issued": LATEST_MS + 1, "later": 2}
    read = issuance_of(document("issuance", {"passed_ms": odd}))
    assert read is not None
    assert read.passed_ms == {"requested": 1}


@pytest.mark.parametrize("since", [-1, LATEST_MS + 1, "1", None, 1.5])
def test_claim_and_intent_since_no_time_are_unreadable(since: object) -> None:
    plain = Document(NAME, version="1")
    for spoiled in (
        replace(plain, claim={"sinceMs": since, "note": ""}),
        replace(plain, record={**RECORD, "sinceMs": since}),
    ):
        with pytest.raises(Unreadable):
            require_readable(spoiled)
    require_readable(replace(plain, claim={"sinceMs": 1, "note": ""}, record=RECORD))


LEASE = {"worker": "w", "fence": 1, "untilMs": 1}


@pytest.mark.parametrize(
    "spoiled",
    [{}, *({**LEASE, field: value} for field in LEASE for value in (None, [], True))],
)
def test_lease_of_another_shape_is_unreadable(spoiled: dict[str, object]) -> None:
    with pytest.raises(Unreadable):
        as_document(NAME, {"lease": json.dumps(spoiled)})


def test_lease_may_end_at_any_time_since_one_that_none_can_has_lapsed() -> None:
    read = as_document(NAME, {"lease": json.dumps({**LEASE, "untilMs": 10**17})}).lease
    assert read is not None
    assert has_lapsed(read, 1)


def test_holder_without_a_name_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        as_document(NAME, {"holder": "{}"})
