"""The judge of the hostile-writer runs objects to what it must object to: forged histories."""

from collections.abc import Iterable

import pytest

from tests.faults.hostilecalls import Call, Ownership, Wish
from tests.faults.truth import Flushes, Judge
from tests.faults.zonehistory import COUNTER_NAME, Record, Timeline, Version, logged_faults

NAME = "r0.m0.example.test"
MINE, OTHER = Ownership("a", "relay", NAME), Ownership("b", "relay", NAME)
ONE, TWO = Wish("A", "198.51.100.1", 300), Wish("A", "198.51.100.2", 300)
SIX = Wish("AAAA", "2001:db8::1", 300)
PROOFS = {
    (NAME, '"mine 1"'): (MINE, "A", "198.51.100.1"),
    (NAME, '"mine 2"'): (MINE, "A", "198.51.100.2"),
    (NAME, '"mine 6"'): (MINE, "AAAA", "2001:db8::1"),
    (NAME, '"other 1"'): (OTHER, "A", "198.51.100.1"),
}


def a(value: str = ONE.value, ttl: int = 300, name: str = NAME) -> Record:
    return Record(name, "A", value, ttl)


def txt(text: str = "mine 1", ttl: int = 300, name: str = NAME) -> Record:
    return Record(name, "TXT", f'"{text}"', ttl)


SPF = txt("v=spf1 -all")
AAAA = Record(NAME, SIX.type, SIX.value, 300)

Change = tuple[Iterable[Record], Iterable[Record]]

PUBLISHED: Change = ([], [a(), txt()])
"""What publishes ONE for MINE."""
OTHERS: Change = ([], [a(), txt("other 1")])


class History:
    """Versions in order; those that the gateway made are its answer to the one call under way."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.calls: list[Call] = []

    @property
    def serial(self) -> int:
        return len(self.versions) + 1

    def hand(self, *changes: Change) -> "History":
        for removed, added in changes:
            self._append(len(self.versions) + 1, removed, added)
        return self

    def call(
        self,
        status: str,
        *changes: Change,
        wish: Wish | None = ONE,
        owner: Ownership = MINE,
        found: Iterable[Record] = (),
    ) -> "History":
        first, began = self.serial, float(len(self.calls))
        for removed, added in changes:
            self._append(None, removed, added)
        is_there = status in {"managed-created", "managed-updated", "managed-unchanged"}
        record = wish if is_there else None
        self.calls.append(
            Call(
                owner,
                wish,
                first,
                self.serial,
                began,
                began + 0.5,
                status,
                record,
                frozenset(found),
            )
        )
        return self

    def _append(
        self, count: int | None, removed: Iterable[Record], added: Iterable[Record]
    ) -> None:
        self.versions.append(Version(self.serial + 1, count, frozenset(removed), frozenset(added)))

    def judged(self, flushes: Flushes = ()) -> Judge:
        return Judge(Timeline(self.versions, [NAME]), self.calls, PROOFS, flushes)

    @property
    def changes(self) -> list[str]:
        return list(self.judged().foreign_changes())

    @property
    def untrue(self) -> list[str]:
        return list(self.judged().untrue_answers())


def published() -> History:
    return History().call("managed-created", PUBLISHED)


def test_ordinary_life_of_a_record_is_not_objected_to() -> None:
    history = (
        published()
        .call("managed-unchanged")
        .call("managed-updated", ([a(), txt()], [a(TWO.value), txt("mine 2")]), wish=TWO)
        .hand(([], [Record(NAME, "CAA", '0 issue "ca.example.org"', 300)]))
        .call("managed-deleted", ([a(TWO.value), txt("mine 2")], []), wish=None)
    )
    assert history.changes == []
    assert history.untrue == []


FOREIGN_CHANGES: dict[str, tuple[History, Change, Wish | None]] = {
    "a foreign text goes with the record": (
        published().hand(([], [SPF])),
        ([a(), txt(), SPF], []),
        None,
    ),
    "a foreign text gets another TTL": (
        published().hand(([txt()], [txt(ttl=900), txt("v=spf1 -all", 900)])),
        (
            [a(), txt(ttl=900), txt("v=spf1 -all", 900)],
            [a(TWO.value), txt("mine 2"), SPF],
        ),
        TWO,
    ),
    "an edited address is replaced": (
        published().hand(([a()], [a("203.0.113.7")])),
        ([a("203.0.113.7"), txt()], [a(), txt()]),
        ONE,
    ),
    "a marker is withdrawn without its address": (published(), ([txt()], []), None),
    "one record of two is withdrawn": (
        published().hand(([], [AAAA, txt("mine 6")])),
        ([a(), txt()], []),
        None,
    ),
    "an address is replaced and stays": (published(), ([txt()], [AAAA, txt("mine 6")]), SIX),
    "a record is replaced and stays": (published(), ([], [AAAA, txt("mine 6")]), SIX),
    "an address is added beside an edited one": (
        published().hand(([a()], [a("203.0.113.7")])),
        ([txt()], [AAAA, txt("mine 6")]),
        SIX,
    ),
    "a foreign address gets a marker": (History().hand(([], [a()])), ([], [txt()]), ONE),
    "another's address is withdrawn by an old marker": (
        History().call("managed-created", OTHERS, owner=OTHER).hand(([], [txt()])),
        ([a(), txt()], []),
        None,
    ),
    "an address of two is withdrawn": (
        published().hand(([], [a("203.0.113.7")])),
        ([a(), txt()], []),
        None,
    ),
    "another's record is withdrawn": (
        History().call("managed-created", ([], [a(), txt("other 1")]), owner=OTHER),
        ([a(), txt("other 1")], []),
        None,
    ),
    "a foreign name is taken": (
        History().hand(([], [SPF])),
        ([SPF], [SPF, a(), txt()]),
        ONE,
    ),
    "a foreign name is joined": (History().hand(([], [SPF])), PUBLISHED, ONE),
    "something else is added": (History(), ([], [a(TWO.value), txt("mine 2")]), ONE),
    "it has another TTL": (History(), ([], [a(ttl=60), txt()]), ONE),
    "there is no marker": (History(), ([], [a()]), ONE),
    "it is another name": (
        History(),
        ([], [a(name="r1.m0.example.test"), txt(name="r1.m0.example.test")]),
        ONE,
    ),
}


@pytest.mark.parametrize("what", FOREIGN_CHANGES)
def test_change_that_the_gateway_has_no_right_to_is_objected_to(what: str) -> None:
    history, change, wish = FOREIGN_CHANGES[what]
    assert history.changes == []
    status = "managed-deleted" if wish is None else "managed-updated"
    assert len(history.call(status, change, wish=wish).changes) == 1


def test_change_that_nobody_has_asked_for_is_objected_to() -> None:
    history = published()
    history._append(None, [a(), txt()], [])
    assert len(history.changes) == 1


def test_joining_foreign_records_where_the_own_one_was_before_is_not_objected_to() -> None:
    history = published().hand(([a(), txt()], [SPF])).call("managed-created", PUBLISHED)
    assert history.changes == []


def test_joining_them_after_it_was_withdrawn_is_objected_to() -> None:
    history = published().call("managed-deleted", ([a(), txt()], []), wish=None).hand(([], [SPF]))
    assert len(history.call("managed-created", PUBLISHED).changes) == 1


CUT: Change = ([], [Record("m0.example.test", "NS", "ns.example.test.", 300)])
WILDCARD: Change = ([], [a("203.0.113.7", name="*.m0.example.test")])

UNTRUE = {
    "created, but nothing was written": History().call("managed-created"),
    "created, but it was there before": published().call(
        "managed-created", ([a(), txt()], [a(TWO.value), txt("mine 2")]), wish=TWO
    ),
    "updated, but it was not there before": History().call("managed-updated", PUBLISHED),
    "unchanged, but it is not there": History().call("managed-unchanged"),
    "unchanged, but with another TTL": published()
    .hand(([a()], [a(ttl=60)]))
    .call("managed-unchanged"),
    "unchanged, but without its marker": published().hand(([txt()], [])).call("managed-unchanged"),
    "unchanged, but cut off": published().hand(CUT).call("managed-unchanged"),
    "deleted, but it is there": published().call("managed-deleted", wish=None),
    "deleted, but its marker is there": published()
    .hand(([a()], []))
    .call("managed-deleted", wish=None),
    "deleted, but an address of two has its marker": published()
    .hand(([], [a(TWO.value), txt("mine 2")]))
    .call("managed-deleted", ([txt()], []), wish=None),
    "unchanged, but the marker of the record before is there": published()
    .call("managed-updated", ([a(), txt()], [a(TWO.value), txt("mine 2")]), wish=TWO)
    .hand(([a(TWO.value)], [a(), txt()]))
    .call("managed-unchanged"),
    "conflict, but it is a withdrawal": History()
    .call("managed-created", OTHERS, owner=OTHER)
    .call("record-conflict", wish=None, found=OTHERS[1]),
    "conflict with a text, but the record was its own": published()
    .hand(([a(), txt()], [SPF]))
    .call("record-conflict", found=[SPF]),
    "conflict with a text, but its marker is there": History()
    .hand(([], [txt(), SPF]))
    .call("record-conflict", found=[txt(), SPF]),
    "conflict, but the name is free": History().call("record-conflict"),
    "conflict, but the name is its own": published().call("record-conflict", found=[a(), txt()]),
    "conflict, but with other evidence": History()
    .hand(([], [SPF]))
    .call("record-conflict", found=[a()]),
    "conflict, but without its evidence": History().hand(([], [SPF])).call("record-conflict"),
    "conflict, but with a wildcard's evidence": History()
    .hand(WILDCARD)
    .call("managed-created", ([], [a(), txt("other 1")]), owner=OTHER)
    .hand(([a(), txt("other 1")], []))
    .call("record-conflict", found=[a("203.0.113.7")]),
    "unavailable, but not cut off": History().call("zone-unavailable"),
    "failed, but nothing has changed": History().call("mutation-failed"),
    "unauthorized, but never removed": History().call("unauthorized"),
    **{
        code: History().call(code)
        for code in (
            "internal",
            "request-invalid",
            "target-invalid",
            "forbidden",
            "hostname-forbidden",
            "envelope-invalid",
            "method-unknown",
            "nonsense",
        )
    },
}


@pytest.mark.parametrize("what", UNTRUE)
def test_untrue_answer_is_objected_to(what: str) -> None:
    assert len(UNTRUE[what].untrue) == 1


TRUE = {
    "conflict with foreign records": History()
    .hand(([], [SPF]))
    .call("record-conflict", found=[SPF]),
    "conflict with another's hold": History()
    .call("managed-created", ([], [a(), txt("other 1")]), owner=OTHER)
    .hand(([a(), txt("other 1")], []))
    .call("record-conflict"),
    "deleted where another holds the name": History()
    .call("managed-created", OTHERS, owner=OTHER)
    .hand(([], [txt()]))
    .call("managed-deleted", wish=None),
    "updated, which takes the marker of the record before": published()
    .call("managed-updated", ([a(), txt()], [a(TWO.value), txt("mine 2")]), wish=TWO)
    .hand(([a(TWO.value)], [a(), txt()]))
    .call("managed-updated", ([txt("mine 2")], [])),
    "conflict with an edited address": published()
    .hand(([a()], [a(TWO.value)]))
    .call("record-conflict", found=[a(TWO.value), txt()]),
    "cut off": History().hand(CUT).call("zone-unavailable"),
    "deleted beside an edited address": published()
    .hand(([a()], [a("203.0.113.7")]))
    .call("managed-deleted", ([txt()], []), wish=None),
}


@pytest.mark.parametrize("what", TRUE)
def test_true_answer_is_not_objected_to(what: str) -> None:
    assert TRUE[what].untrue == []
    assert TRUE[what].changes == []


def test_refusal_of_a_client_that_was_made_again_is_true_only_until_then() -> None:
    history = History().call("unauthorized")
    assert list(history.judged([(0.1, 0.2)]).untrue_answers()) == []
    assert len(list(history.judged([(2.0, 3.0)]).untrue_answers())) == 1


def test_log_that_contradicts_the_counters_is_objected_to() -> None:
    hands = "client @0x1 127.0.0.1#1/key hand: updating zone 'example.test/IN': "
    gateways = hands.replace("hand", "gateway")
    counted = f"adding an RR at '{COUNTER_NAME}' TXT \"1\"\n"
    versions = History().hand(([], [SPF])).versions
    names = {NAME}
    assert logged_faults(hands + counted, versions, "gateway", names) == set()
    assert len(logged_faults(gateways + counted, versions, "gateway", names)) == 2
    elsewhere = gateways + "deleting an RR at 'www.example.test' A\n"
    assert len(logged_faults(hands + counted + elsewhere, versions, "gateway", names)) == 1
