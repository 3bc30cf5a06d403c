"""The whole decision table of publish, withdraw and inspect, case by case."""

from dataclasses import dataclass

import pytest

from gateway.contract import DnsRecord
from gateway.dns.observe import Observation
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan, Wanted, decide_inspect, decide_publish, decide_withdraw
from gateway.dns.proof import find_ours
from gateway.dns.records import RRset
from gateway.dns.update import NameFree
from tests.unit.dns.building import (
    A_EDITED,
    A_OURS,
    AAAA_OURS,
    MARKERS,
    OLD_MARKERS,
    OTHER,
    OWNER,
    SPF,
    V4,
    V4_OTHER,
    V6,
    ZONE,
    marker_of,
    observed,
    rrset,
    txt,
)
from tests.unit.dns.model import applied, contents

AAAA_FOREIGN = rrset("AAAA", "2001:db8:bad::1")
AAAA_TWO = rrset("AAAA", V6.value, "2001:db8:bad::1")
A_TWO = rrset("A", V4.value, "203.0.113.7")
CAA = rrset("CAA", '0 issue "ca.test"')
CNAME = rrset("CNAME", "elsewhere.test.")
MARK_V4, MARK_V6 = marker_of(V4), marker_of(V6)

CREATED, UPDATED, UNCHANGED = OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED
DELETED, CONFLICT = OutcomeKind.DELETED, OutcomeKind.CONFLICT


def publish(
    *rrsets: RRset,
    record: DnsRecord = V4,
    remembered: DnsRecord | None = None,
    held: bool = False,
    in_use: bool = False,
) -> tuple[Observation, Plan]:
    seen = observed(*rrsets)
    wanted = Wanted(record, marker_of(record))
    ours = find_ours(seen, OWNER, MARKERS, (record, remembered))
    return seen, decide_publish(seen, wanted, ours, held=held, in_use=in_use)


@dataclass(frozen=True)
class Published:
    """A state, what is known, what is decided and what is at the name afterwards."""

    at: tuple[RRset, ...]
    kind: OutcomeKind
    then: tuple[RRset, ...] | None
    record: DnsRecord = V4
    remembered: DnsRecord | None = None
    held: bool = False
    in_use: bool = True


PUBLISHED = {
    "nothing": Published((), CREATED, (A_OURS, txt(MARK_V4))),
    "nothing, held": Published((), CREATED, (A_OURS, txt(MARK_V4)), held=True),
    "as wanted": Published((A_OURS, txt(MARK_V4)), UNCHANGED, None),
    "as wanted, old key": Published(
        (A_OURS, txt(marker_of(V4, markers=OLD_MARKERS))), UNCHANGED, None
    ),
    "as wanted, others beside": Published(
        (A_OURS, CAA, AAAA_FOREIGN, txt(SPF, MARK_V4)), UNCHANGED, None
    ),
    "as wanted, a stale marker": Published(
        (A_OURS, txt(MARK_V4, MARK_V6)), UPDATED, (A_OURS, txt(MARK_V4)), remembered=V6
    ),
    "as wanted, a stale marker that nobody knows": Published(
        (A_OURS, txt(MARK_V4, MARK_V6)), UNCHANGED, None
    ),
    "as wanted, a marker for one address of two": Published(
        (A_OURS, AAAA_TWO, txt(MARK_V4, MARK_V6)), UPDATED, (A_OURS, AAAA_TWO, txt(MARK_V4))
    ),
    "other value": Published(
        (A_OURS, txt(MARK_V4)),
        UPDATED,
        (rrset("A", V4_OTHER.value), txt(marker_of(V4_OTHER))),
        record=V4_OTHER,
    ),
    "other value, old key": Published(
        (A_OURS, txt(marker_of(V4, markers=OLD_MARKERS))),
        UPDATED,
        (rrset("A", V4_OTHER.value), txt(marker_of(V4_OTHER))),
        record=V4_OTHER,
    ),
    "other TTL": Published(
        (rrset("A", V4.value, ttl=60), txt(MARK_V4, ttl=60)), UPDATED, (A_OURS, txt(MARK_V4))
    ),
    "other TTL beside a foreign text": Published(
        (rrset("A", V4.value, ttl=60), txt(SPF, MARK_V4, ttl=60)),
        UPDATED,
        (A_OURS, txt(SPF, MARK_V4, ttl=60)),
    ),
    "A becomes AAAA": Published(
        (A_OURS, txt(MARK_V4)), UPDATED, (AAAA_OURS, txt(MARK_V6)), record=V6
    ),
    "AAAA becomes A": Published((AAAA_OURS, txt(MARK_V6)), UPDATED, (A_OURS, txt(MARK_V4))),
    "A becomes AAAA, others beside": Published(
        (A_OURS, CAA, txt(SPF, MARK_V4, ttl=3600)),
        UPDATED,
        (AAAA_OURS, CAA, txt(SPF, MARK_V6, ttl=3600)),
        record=V6,
    ),
    "other value, foreign family beside": Published(
        (A_OURS, AAAA_FOREIGN, txt(MARK_V4)),
        UPDATED,
        (rrset("A", V4_OTHER.value), AAAA_FOREIGN, txt(marker_of(V4_OTHER))),
        record=V4_OTHER,
    ),
    "A becomes AAAA, foreign AAAA there": Published(
        (A_OURS, AAAA_FOREIGN, txt(MARK_V4)), CONFLICT, None, record=V6
    ),
    "both families are ours": Published(
        (A_OURS, AAAA_OURS, txt(MARK_V4, MARK_V6)), UPDATED, (A_OURS, txt(MARK_V4))
    ),
    "address gone, remembered": Published(
        (txt(MARK_V4),),
        CREATED,
        (rrset("A", V4_OTHER.value), txt(marker_of(V4_OTHER))),
        record=V4_OTHER,
        remembered=V4,
    ),
    "address gone, wanted again": Published((txt(MARK_V4),), CREATED, (A_OURS, txt(MARK_V4))),
    "address gone, others beside": Published(
        (CAA, txt(SPF, MARK_V4, ttl=60)), CREATED, (A_OURS, CAA, txt(SPF, MARK_V4, ttl=60))
    ),
    "address gone, nobody remembers": Published((txt(MARK_V4),), CONFLICT, None, record=V4_OTHER),
    "address gone, nobody remembers, held": Published(
        (txt(MARK_V4),),
        CREATED,
        (rrset("A", V4_OTHER.value), txt(MARK_V4, marker_of(V4_OTHER))),
        record=V4_OTHER,
        held=True,
    ),
    "address edited": Published((A_EDITED, txt(MARK_V4)), CONFLICT, None, remembered=V4),
    "address edited, held": Published((A_EDITED, txt(MARK_V4)), CONFLICT, None, held=True),
    "address replaced by the other family": Published((AAAA_FOREIGN, txt(MARK_V4)), CONFLICT, None),
    "second value": Published((A_TWO, txt(MARK_V4)), CONFLICT, None),
    "same address without marker": Published((A_OURS,), CONFLICT, None, remembered=V4),
    "same address, held": Published((A_OURS,), CONFLICT, None, held=True),
    "same address of another owner": Published(
        (A_OURS, txt(marker_of(V4, owner=OTHER))), CONFLICT, None
    ),
    "foreign address": Published((A_EDITED,), CONFLICT, None),
    "foreign family": Published((AAAA_FOREIGN,), CONFLICT, None),
    "foreign family, held": Published((AAAA_FOREIGN,), CONFLICT, None, held=True),
    "alias": Published((CNAME,), CONFLICT, None),
    "alias, held": Published((CNAME,), CONFLICT, None, held=True),
    "foreign text": Published((txt(SPF),), CONFLICT, None),
    "foreign text, held": Published(
        (txt(SPF, ttl=3600),), CREATED, (A_OURS, txt(SPF, MARK_V4, ttl=3600)), held=True
    ),
    "foreign CAA": Published((CAA,), CONFLICT, None),
    "foreign CAA, held": Published((CAA,), CREATED, (A_OURS, CAA, txt(MARK_V4)), held=True),
    "foreign marker": Published((txt(marker_of(V4, owner=OTHER)),), CONFLICT, None),
    "foreign marker, held": Published(
        (txt(marker_of(V4, owner=OTHER)),),
        CREATED,
        (A_OURS, txt(marker_of(V4, owner=OTHER), MARK_V4)),
        held=True,
    ),
}


@pytest.mark.parametrize("case", PUBLISHED.values(), ids=PUBLISHED)
def test_publish_decides(case: Published) -> None:
    seen, plan = publish(
        *case.at,
        record=case.record,
        remembered=case.remembered,
        held=case.held,
        in_use=case.in_use,
    )
    assert plan.kind is case.kind
    assert plan.is_answer == (case.then is None)
    if case.then is not None:
        assert applied(seen, plan) == contents(case.then)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    "at",
    [(A_EDITED,), (CNAME,), (txt(SPF),), (CAA,), (A_OURS,), (txt(marker_of(V4, owner=OTHER)),)],
)
def test_publish_of_what_a_wildcard_may_have_made_up_is_tried_on_an_unused_name(
    at: tuple[RRset, ...], held: bool
) -> None:
    seen, plan = publish(*at, held=held, in_use=False)
    assert plan.kind is CREATED
    assert applied(seen, plan) is None
    assert applied(observed(), plan) == contents((A_OURS, txt(MARK_V4)))


@pytest.mark.parametrize("held", [False, True])
def test_publish_at_the_apex_is_a_conflict_whatever_is_proven(held: bool) -> None:
    seen = observed(A_OURS, txt(MARK_V4), name=ZONE.name)
    ours = find_ours(seen, OWNER, MARKERS, (V4,))
    plan = decide_publish(seen, Wanted(V4, MARK_V4), ours, held=held, in_use=False)
    assert plan == Plan(CONFLICT)


@dataclass(frozen=True)
class Withdrawn:
    """A state, what is remembered, and what is at the name afterwards (None: nothing is sent)."""

    at: tuple[RRset, ...]
    then: tuple[RRset, ...] | None
    remembered: DnsRecord | None = None


WITHDRAWN = {
    "nothing": Withdrawn((), None, V4),
    "ours": Withdrawn((A_OURS, txt(MARK_V4)), ()),
    "ours, others beside": Withdrawn(
        (A_OURS, AAAA_FOREIGN, CAA, txt(SPF, MARK_V4, ttl=60)),
        (AAAA_FOREIGN, CAA, txt(SPF, ttl=60)),
    ),
    "both families": Withdrawn((A_OURS, AAAA_OURS, txt(MARK_V4, MARK_V6)), ()),
    "edited": Withdrawn((A_EDITED, txt(MARK_V4)), (A_EDITED,), V4),
    "edited, nobody remembers": Withdrawn((A_EDITED, txt(MARK_V4)), None),
    "second value": Withdrawn((A_TWO, txt(MARK_V4)), (A_TWO,)),
    "address gone": Withdrawn((txt(SPF, MARK_V4),), (txt(SPF),), V4),
    "address gone, other family there": Withdrawn(
        (AAAA_FOREIGN, txt(MARK_V4)), (AAAA_FOREIGN,), V4
    ),
    "foreign address": Withdrawn((A_EDITED,), None, V4),
    "same address without marker": Withdrawn((A_OURS,), None, V4),
    "another owner's": Withdrawn((A_OURS, txt(marker_of(V4, owner=OTHER))), None, V4),
    "alias": Withdrawn((CNAME,), None, V4),
}


@pytest.mark.parametrize("case", WITHDRAWN.values(), ids=WITHDRAWN)
def test_withdraw_removes_what_is_proven_and_nothing_else(case: Withdrawn) -> None:
    seen = observed(*case.at)
    plan = decide_withdraw(seen, find_ours(seen, OWNER, MARKERS, (case.remembered,)))
    assert plan.kind is DELETED
    assert plan.is_answer == (case.then is None)
    if case.then is not None:
        assert applied(seen, plan) == contents(case.then)


@pytest.mark.parametrize(
    ("meanwhile", "at"),
    [
        ((A_OURS, txt(MARK_V4)), (A_EDITED, txt(MARK_V4))),
        ((A_EDITED, txt(MARK_V4)), (A_OURS, txt(MARK_V4))),
        ((A_TWO, txt(MARK_V4)), (A_OURS, txt(MARK_V4))),
        ((A_OURS, txt(SPF, MARK_V4)), (A_OURS, txt(MARK_V4))),
        ((), (A_OURS, txt(MARK_V4))),
        ((A_OURS, AAAA_OURS, txt(MARK_V4, MARK_V6)), (A_OURS, AAAA_TWO, txt(MARK_V4, MARK_V6))),
    ],
)
def test_withdraw_changes_nothing_that_moved_on(
    at: tuple[RRset, ...], meanwhile: tuple[RRset, ...]
) -> None:
    seen = observed(*at)
    plan = decide_withdraw(seen, find_ours(seen, OWNER, MARKERS, (V4,)))
    assert applied(observed(*meanwhile), plan) is None


def test_marker_is_not_replaced_when_its_address_has_become_the_only_one_again() -> None:
    _, plan = publish(A_OURS, AAAA_TWO, txt(MARK_V4, MARK_V6), record=V4_OTHER)
    assert applied(observed(A_OURS, AAAA_OURS, txt(MARK_V4, MARK_V6)), plan) is None


@pytest.mark.parametrize(
    ("at", "in_use", "kind", "is_answer"),
    [
        ((), False, OutcomeKind.FREE, True),
        ((A_OURS, txt(MARK_V4)), False, OutcomeKind.OURS, True),
        ((A_OURS, CAA, txt(SPF, MARK_V4)), False, OutcomeKind.OURS, True),
        ((A_TWO, txt(MARK_V4)), False, OutcomeKind.OURS, True),
        ((A_EDITED,), False, OutcomeKind.FREE, False),
        ((A_EDITED,), True, CONFLICT, True),
        ((txt(SPF),), True, CONFLICT, True),
        ((A_EDITED, txt(MARK_V4)), True, CONFLICT, True),
        ((A_OURS, txt(marker_of(V4, owner=OTHER))), True, CONFLICT, True),
    ],
)
def test_inspect_decides_and_writes_nothing(
    at: tuple[RRset, ...], in_use: bool, kind: OutcomeKind, is_answer: bool
) -> None:
    seen = observed(*at)
    plan = decide_inspect(seen, find_ours(seen, OWNER, MARKERS), in_use=in_use)
    assert (plan.kind, plan.is_answer, plan.changes) == (kind, is_answer, ())


def test_inspect_at_the_apex_is_a_conflict() -> None:
    seen = observed(name=ZONE.name)
    plan = decide_inspect(seen, find_ours(seen, OWNER, MARKERS), in_use=False)
    assert plan == Plan(CONFLICT)


def test_record_that_only_a_wildcard_makes_up_is_created() -> None:
    seen = observed(A_OURS, txt(MARK_V4))
    ours = find_ours(seen, OWNER, MARKERS)
    wanted = Wanted(V6, MARK_V6)
    plan = decide_publish(seen, wanted, ours, held=True, in_use=False, made_up=True)
    assert plan == decide_publish(
        observed(), wanted, find_ours(observed(), OWNER, MARKERS), held=False, in_use=False
    )


def test_record_that_only_a_wildcard_makes_up_is_withdrawn_if_the_name_is_free() -> None:
    seen = observed(A_OURS, txt(MARK_V4))
    plan = decide_withdraw(seen, find_ours(seen, OWNER, MARKERS), made_up=True)
    assert plan == Plan(DELETED, (NameFree(seen.name),))
