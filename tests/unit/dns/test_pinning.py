"""Which additions are pinned to the version that was read: those that join records which stay."""

import pytest

from gateway.dns.pinning import needs_pin
from gateway.dns.plan import Plan, Wanted, decide_publish, decide_withdraw
from gateway.dns.proof import find_ours
from gateway.dns.records import RRset
from tests.unit.dns.building import (
    A_OURS,
    MARKERS,
    OWNER,
    SPF,
    V4,
    V6,
    marker_of,
    observed,
    txt,
)

MINE = marker_of(V4)


def replacing(*rrsets: RRset) -> Plan:
    seen = observed(*rrsets)
    ours = find_ours(seen, OWNER, MARKERS, (V4, V6))
    return decide_publish(seen, Wanted(V6, marker_of(V6)), ours, held=False, in_use=False)


@pytest.mark.parametrize(
    ("rrsets", "expected"),
    [((), False), ((A_OURS, txt(MINE)), False), ((A_OURS, txt(MINE, SPF)), True)],
    ids=["at a free name", "alone", "beside a foreign text"],
)
def test_publishing_is_pinned_beside_foreign_texts_only(
    rrsets: tuple[RRset, ...], expected: bool
) -> None:
    assert needs_pin(replacing(*rrsets), observed(*rrsets)) is expected


def test_withdrawing_is_never_pinned() -> None:
    seen = observed(A_OURS, txt(MINE, SPF))
    assert not needs_pin(decide_withdraw(seen, find_ours(seen, OWNER, MARKERS)), seen)
