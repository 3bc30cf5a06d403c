"""What an answer to an ANY query says about a name, on replies made by hand."""

from dataclasses import replace

import pytest
from dns.rcode import Rcode

from gateway.contract.names import ZoneName
from gateway.dns.errors import ServerFailed, ServerRefused
from gateway.dns.names import to_name, to_text
from gateway.dns.observe import Observation, Place, judge
from tests.unit.dns.building import NAME, ZONE, reply, rrset

SOA = "example.test 60 SOA ns1.example.test. host.example.test. 1 3600 600 86400 60"
NS = "example.test 300 NS ns1.example.test."
CHILD_SOA = "sub.example.test 60 SOA ns1.sub.example.test. host.sub.example.test. 1 1 1 1 1"


def judged(**parts: object) -> Observation:
    name = str(parts.get("name", "relay.example.test"))
    return judge(reply(**parts), to_name(name), ZONE)  # type: ignore[arg-type]


def test_all_rrsets_at_the_name_are_seen_with_their_ttl() -> None:
    seen = judged(
        answer=[
            'relay.example.test 60 TXT "b"',
            "relay.example.test 300 A 192.0.2.1",
            "elsewhere.example.test 300 A 192.0.2.9",
        ],
        authority=[NS],
    )
    assert seen == Observation(
        NAME,
        ZONE.apex,
        Place.WITHIN,
        None,
        (rrset("A", "192.0.2.1"), rrset("TXT", '"b"', ttl=60)),
    )


def test_dnssec_records_are_left_out() -> None:
    seen = judged(
        answer=[
            "relay.example.test 300 NSEC a.example.test. A",
            "relay.example.test 300 A 192.0.2.1",
            "relay.example.test 300 RRSIG A 8 3 300 20300101000000 20200101000000 1 example.test."
            " AAAA",
        ],
        authority=[NS],
    )
    assert seen.rrsets == (rrset("A", "192.0.2.1"),)


def test_order_of_records_makes_no_difference() -> None:
    assert rrset("A", "192.0.2.1", "192.0.2.2") == rrset("A", "192.0.2.2", "192.0.2.1")


@pytest.mark.parametrize("authority", [[], [CHILD_SOA]], ids=["none", "of its target"])
def test_zone_of_an_alias_is_not_told_by_the_authority_of_its_target(authority: list[str]) -> None:
    alias = "relay.example.test 300 CNAME x.sub.example.test."
    seen = judged(answer=[alias], authority=authority)
    assert seen.place is Place.UNTOLD
    assert seen.rrsets == (rrset("CNAME", "x.sub.example.test."),)


def test_zone_of_an_alias_is_told_by_our_own_authority() -> None:
    alias = "relay.example.test 300 CNAME x.sub.example.test."
    assert judged(answer=[alias], authority=[NS]).place is Place.WITHIN


@pytest.mark.parametrize("rcode", [Rcode.NXDOMAIN, Rcode.NOERROR])
def test_nothing_at_the_name_when_our_soa_says_so(rcode: Rcode) -> None:
    seen = judged(rcode=rcode, authority=[SOA])
    assert (seen.place, seen.rrsets) == (Place.WITHIN, ())


def test_cname_at_the_name_is_an_rrset_like_others() -> None:
    seen = judged(
        answer=[
            "relay.example.test 300 CNAME other.example.test.",
            "other.example.test 300 A 192.0.2.9",
        ],
        authority=[NS],
    )
    assert seen.rrsets == (rrset("CNAME", "other.example.test."),)


@pytest.mark.parametrize("cut", ["relay.example.test", "example.test"])
def test_referral_at_or_above_the_name_is_a_delegation(cut: str) -> None:
    seen = judged(
        name=f"a.{cut}" if cut == "example.test" else cut,
        authoritative=False,
        authority=[f"{'a.example.test' if cut == 'example.test' else cut} 300 NS ns.other.test."],
    )
    assert seen.place is Place.DELEGATED
    assert seen.edge is not None
    assert to_text(seen.edge).endswith(cut)


def test_dname_above_the_name_is_not_our_zone_even_with_nxdomain() -> None:
    seen = judged(
        name="relay.moved.example.test",
        rcode=Rcode.NXDOMAIN,
        answer=[
            "moved.example.test 300 DNAME target.test.",
            "relay.moved.example.test 300 CNAME relay.target.test.",
        ],
        authority=[NS],
    )
    assert (seen.place, seen.edge) == (Place.BELOW_DNAME, to_name("moved.example.test"))


def test_dname_at_the_name_itself_is_only_a_record() -> None:
    seen = judged(answer=["relay.example.test 300 DNAME target.test."], authority=[NS])
    assert (seen.place, len(seen.rrsets)) == (Place.WITHIN, 1)


@pytest.mark.parametrize(
    ("answer", "authority"),
    [
        ([], [CHILD_SOA]),
        (["relay.sub.example.test 300 A 192.0.2.1"], ["sub.example.test 300 NS ns1.test."]),
        ([], [SOA.replace("example.test 60", "test 60", 1)]),
    ],
)
def test_other_zone_in_the_authority_section_holds_the_name(
    answer: list[str], authority: list[str]
) -> None:
    seen = judged(name="relay.sub.example.test", answer=answer, authority=authority)
    assert (seen.place, seen.rrsets) == (Place.OTHER_ZONE, ())


def test_soa_at_the_name_makes_it_another_zones_apex() -> None:
    seen = judged(name="sub.example.test", answer=[CHILD_SOA])
    assert (seen.place, seen.edge) == (Place.OTHER_ZONE, to_name("sub.example.test"))


def test_answer_without_authority_section_leaves_the_zone_untold() -> None:
    seen = judged(answer=["relay.example.test 300 A 192.0.2.1"])
    assert (seen.place, len(seen.rrsets)) == (Place.UNTOLD, 1)


def test_apex_is_within_its_zone() -> None:
    seen = judged(name="example.test", answer=[SOA, NS])
    assert seen.is_apex
    assert seen.place is Place.WITHIN


@pytest.mark.parametrize(
    "authority", [[], [". 300 NS a.root-servers.test."], ["example.test 300 NS ns1.example.test."]]
)
def test_answer_without_authority_bit_is_not_served(authority: list[str]) -> None:
    assert judged(authoritative=False, authority=authority).place is Place.NOT_SERVED


def test_servfail_is_the_servers_trouble() -> None:
    with pytest.raises(ServerFailed, match=r"192\.0\.2\.53:53 .*example\.test.*gateway.* SERVFAIL"):
        judged(rcode=Rcode.SERVFAIL)


@pytest.mark.parametrize("rcode", [Rcode.REFUSED, Rcode.NOTAUTH, Rcode.FORMERR, Rcode.NOTIMP])
def test_refusal_names_server_zone_key_and_rcode(rcode: Rcode) -> None:
    with pytest.raises(ServerRefused) as caught:
        judged(rcode=rcode)
    assert caught.value.rcode == rcode
    for word in ("192.0.2.53:53", "example.test", "gateway", rcode.name):
        assert word in caught.value.detail


def test_one_reply_is_judged_anew_for_another_name_and_another_zone() -> None:
    told = reply(answer=["relay.example.test 300 A 192.0.2.1"], authority=[NS])
    below = replace(ZONE, name=ZoneName("relay.example.test"))
    first = judge(told, NAME, ZONE)
    assert (first.place, len(first.rrsets)) == (Place.WITHIN, 1)
    assert judge(told, to_name("other.example.test"), ZONE).rrsets == ()
    assert judge(told, NAME, below).place is Place.OTHER_ZONE
    assert judge(told, NAME, ZONE) == first
