"""How a challenge value gets beside whatever is at its name."""

import pytest
from dns.rcode import Rcode

from gateway.dns.challenges import CHALLENGE_TTL_SECONDS, decide_challenge
from gateway.dns.errors import ChallengeUnavailable
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan
from gateway.dns.records import CNAME, TXT, RRset
from gateway.dns.update import Add, RRsetAbsent, RRsetPresent
from tests.unit.dns.building import NAME, observed, rdata, rrset

VALUE = rdata("TXT", '"challenge"')
FRESH = Plan(
    OutcomeKind.CREATED,
    (RRsetAbsent(NAME, TXT), RRsetAbsent(NAME, CNAME)),
    (Add(NAME, CHALLENGE_TTL_SECONDS, VALUE),),
)
BESIDE = Plan(OutcomeKind.CREATED, (RRsetPresent(NAME, TXT),), (Add(NAME, 3600, VALUE),))
FOREIGN = rrset("TXT", '"theirs"', ttl=3600)
ALIAS = rrset("CNAME", "elsewhere.test.")


@pytest.mark.parametrize(
    ("rrsets", "refusal", "expected"),
    [
        ((), None, FRESH),
        ((rrset("A", "192.0.2.1"),), None, FRESH),
        ((FOREIGN,), None, BESIDE),
        ((FOREIGN,), Rcode.YXRRSET, BESIDE),
        ((FOREIGN,), Rcode.NXRRSET, FRESH),
        ((ALIAS,), None, FRESH),
        ((rrset("TXT", '"challenge"', '"theirs"'),), None, Plan(OutcomeKind.UNCHANGED)),
    ],
    ids=[
        "nothing",
        "address",
        "foreign value",
        "foreign value came meanwhile",
        "value made up by a wildcard",
        "alias that a wildcard may have made up",
        "there already",
    ],
)
def test_challenge_plan(rrsets: tuple[RRset, ...], refusal: Rcode | None, expected: Plan) -> None:
    assert decide_challenge(observed(*rrsets), VALUE, refusal) == expected


def test_challenge_at_a_real_alias_is_unavailable() -> None:
    with pytest.raises(ChallengeUnavailable, match="become an alias") as caught:
        decide_challenge(observed(ALIAS), VALUE, Rcode.YXRRSET)
    assert caught.value.retry_after_seconds is not None
