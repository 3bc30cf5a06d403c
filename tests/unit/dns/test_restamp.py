"""Markers come to be the first key's, and nothing else at the name changes."""

from dataclasses import dataclass

import pytest

from gateway.contract import DnsRecord
from gateway.dns.marker import Markers
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan, decide_restamp
from gateway.dns.proof import find_marks, find_ours
from gateway.dns.records import RRset
from tests.unit.dns.building import (
    A_EDITED,
    A_OURS,
    AAAA_OURS,
    FOREIGN_MARKERS,
    MARKERS,
    OLD_MARKERS,
    OTHER,
    OWNER,
    SPF,
    V4,
    V4_OTHER,
    V6,
    marker_of,
    observed,
    rrset,
    txt,
)
from tests.unit.dns.model import applied, contents

NEW, OLD = marker_of(V4), marker_of(V4, markers=OLD_MARKERS)


@dataclass(frozen=True)
class Restamped:
    """A state, what is remembered, and what is at the name afterwards (None: nothing is sent)."""

    at: tuple[RRset, ...]
    then: tuple[RRset, ...] | None
    remembered: DnsRecord | None = V4


RESTAMPED = {
    "old": Restamped((A_OURS, txt(OLD)), (A_OURS, txt(NEW))),
    "old, nobody remembers": Restamped((A_OURS, txt(OLD)), (A_OURS, txt(NEW)), None),
    "old, another value is remembered": Restamped((A_OURS, txt(OLD)), (A_OURS, txt(NEW)), V4_OTHER),
    "new": Restamped((A_OURS, txt(NEW)), None),
    "old beside new": Restamped((A_OURS, txt(OLD, NEW)), (A_OURS, txt(NEW))),
    "others beside": Restamped(
        (A_OURS, rrset("CAA", '0 issue "ca.test"'), txt(SPF, OLD, ttl=60)),
        (A_OURS, rrset("CAA", '0 issue "ca.test"'), txt(SPF, NEW, ttl=60)),
    ),
    "both families": Restamped(
        (A_OURS, AAAA_OURS, txt(OLD, marker_of(V6, markers=OLD_MARKERS))),
        (A_OURS, AAAA_OURS, txt(NEW, marker_of(V6))),
    ),
    "address gone": Restamped((txt(OLD),), (txt(NEW),)),
    "address gone, nobody remembers": Restamped((txt(OLD),), None, None),
    "address edited": Restamped((A_EDITED, txt(OLD)), (A_EDITED, txt(NEW))),
    "another owner's": Restamped(
        (A_OURS, txt(marker_of(V4, owner=OTHER, markers=OLD_MARKERS))), None
    ),
    "another keyring's": Restamped((A_OURS, txt(marker_of(V4, markers=FOREIGN_MARKERS))), None),
    "nothing": Restamped((), None),
    "foreign address": Restamped((A_EDITED,), None),
}


def restamp(*at: RRset, remembered: DnsRecord | None = V4) -> Plan:
    seen = observed(*at)
    return decide_restamp(seen, find_marks(seen, OWNER, MARKERS, (remembered,)))


@pytest.mark.parametrize("case", RESTAMPED.values(), ids=RESTAMPED)
def test_restamp_replaces_the_markers_of_other_keys_alone(case: Restamped) -> None:
    plan = restamp(*case.at, remembered=case.remembered)
    if case.then is None:
        assert plan == Plan(OutcomeKind.UNCHANGED)
    else:
        assert plan.kind is OutcomeKind.UPDATED
        assert applied(observed(*case.at), plan) == contents(case.then)


@pytest.mark.parametrize("case", RESTAMPED.values(), ids=RESTAMPED)
def test_restamped_name_proves_the_same_without_the_old_key(case: Restamped) -> None:
    first_key_alone = Markers(MARKERS._keys[:1])
    before = find_ours(observed(*case.at), OWNER, MARKERS, (case.remembered,))
    then = observed(*(case.at if case.then is None else case.then))
    after = find_ours(then, OWNER, first_key_alone, (case.remembered,))
    assert after.addresses == before.addresses
    assert after.is_anything is before.is_anything


@pytest.mark.parametrize(
    "meanwhile",
    [
        (A_EDITED, txt(OLD)),
        (A_OURS, AAAA_OURS, txt(OLD)),
        (A_OURS, txt(NEW)),
        (A_OURS, txt(SPF, OLD)),
        (txt(OLD),),
        (A_OURS,),
        (),
    ],
)
def test_restamp_changes_nothing_that_moved_on(meanwhile: tuple[RRset, ...]) -> None:
    assert applied(observed(*meanwhile), restamp(A_OURS, txt(OLD))) is None


def test_restamp_is_at_its_end_after_one_round() -> None:
    assert restamp(A_OURS, txt(NEW)).is_answer


def test_marker_tells_the_key_that_made_it() -> None:
    assert (MARKERS.key_id_of(NEW), MARKERS.key_id_of(OLD)) == ("new", "old")
