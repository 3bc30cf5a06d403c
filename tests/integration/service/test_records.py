"""Records: every status, what holds a hostname, and that nothing foreign is ever touched."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import SYNC, Caller, Ownership, World
from tests.integration.service.test_commands import gateway
from tests.lab.lab import Lab

ADDRESS, OTHER, IPV6 = "198.51.100.5", "198.51.100.6", "2001:db8::5"


def addresses(hand: Hand, hostname: str) -> set[str]:
    """The A and AAAA records at a name."""
    return {record for record in hand.records(hostname) if record.split()[1] in {"A", "AAAA"}}


@pytest.mark.parametrize("zone", ["example.test", "example.net.test"])
def test_record_is_published_replaced_and_withdrawn(world: World, hand: Hand, zone: str) -> None:
    mine = world.ownership(zone)
    created = mine.publish(ADDRESS)
    assert created["status"] == "managed-created"
    assert created["record"] == {"type": "A", "value": ADDRESS, "ttl": 300}
    assert created["hostname"] == mine.hostname
    assert created["conflictingRecords"] == []
    assert created["retryAfterMs"] is None
    assert addresses(hand, mine.hostname) == {f"300 A {ADDRESS}"}

    serial = hand.serial(zone)
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"
    assert hand.serial(zone) == serial

    assert mine.publish(OTHER)["status"] == "managed-updated"
    assert mine.publish(IPV6)["status"] == "managed-updated"
    assert addresses(hand, mine.hostname) == {f"300 AAAA {IPV6}"}
    assert mine.publish(ADDRESS, ttl=60)["status"] == "managed-updated"
    assert addresses(hand, mine.hostname) == {f"60 A {ADDRESS}"}

    withdrawn = mine.withdraw()
    assert (withdrawn["status"], withdrawn["record"]) == ("managed-deleted", None)
    assert hand.records(mine.hostname) == set()
    assert mine.withdraw()["status"] == "managed-deleted"


def test_other_ttl_alone_is_an_update(hand: Hand, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    assert mine.publish(ADDRESS, ttl=600)["status"] == "managed-updated"
    assert addresses(hand, mine.hostname) == {f"600 A {ADDRESS}"}


def test_ttl_changed_by_hand_is_told_and_mended(hand: Hand, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    name = mine.hostname
    hand.update(f"delete {name} 300 A {ADDRESS}", f"add {name} 999 A {ADDRESS}")
    assert mine.publish(ADDRESS)["status"] == "managed-updated"
    assert addresses(hand, name) == {f"300 A {ADDRESS}"}


def test_ttl_given_as_a_float_is_the_whole_number(mine: Ownership) -> None:
    record = {"type": "A", "value": ADDRESS, "ttl": 300.0}
    answer = mine.caller.call(SYNC, ownership=mine.wire, record=record)
    assert answer["record"]["ttl"] == 300


def test_address_outside_the_allowance_touches_nothing(hand: Hand, mine: Ownership) -> None:
    serial = hand.serial("example.test")
    answer = mine.publish("192.0.2.1")
    assert answer["status"] == "target-invalid"
    assert "192.0.2.1" in answer["message"]
    assert hand.serial("example.test") == serial


@pytest.mark.parametrize(
    ("rdtype", "value"),
    [
        ("A", "192.0.2.44"),
        ("AAAA", "2001:db8::44"),
        ("TXT", '"v=spf1 -all"'),
        ("MX", "10 mail.elsewhere.invalid."),
        ("CAA", '0 issue "ca.example"'),
        ("CNAME", "elsewhere.example.test."),
    ],
)
def test_foreign_record_is_a_conflict_shown_and_untouched(
    hand: Hand, mine: Ownership, rdtype: str, value: str
) -> None:
    hand.add(f"{mine.hostname} 600 {rdtype} {value}")
    before, serial = hand.records(mine.hostname), hand.serial("example.test")
    answer = mine.publish(ADDRESS)
    assert (answer["status"], answer["record"]) == ("record-conflict", None)
    evidence = {"name": mine.hostname, "type": rdtype, "value": value, "ttl": 600}
    assert answer["conflictingRecords"] == [evidence]
    assert hand.records(mine.hostname) == before
    assert hand.serial("example.test") == serial
    assert mine.withdraw()["status"] == "managed-deleted"
    assert hand.records(mine.hostname) == before


def test_conflict_leaves_the_hostname_free_once_it_is_gone(
    world: World, hand: Hand, mine: Ownership
) -> None:
    hand.add(f"{mine.hostname} 600 A 192.0.2.44")
    assert mine.publish(ADDRESS)["status"] == "record-conflict"
    hand.update(f"delete {mine.hostname}")
    assert world.rival(mine).publish(ADDRESS)["status"] == "managed-created"


def test_another_ownership_is_a_conflict_that_names_nobody(world: World, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    same_client = Ownership(mine.caller, mine.hostname, "other-app")
    for other in (world.rival(mine), same_client):
        answer = other.publish(OTHER)
        assert answer["status"] == "record-conflict"
        assert {each["type"] for each in answer["conflictingRecords"]} == {"A", "TXT"}
        assert "client-" not in str(answer)
        assert '"relay"' not in str(answer)
        assert other.withdraw()["status"] == "managed-deleted"
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"


def test_withdrawn_hostname_is_free_for_others(world: World, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    mine.withdraw()
    assert world.rival(mine).publish(OTHER)["status"] == "managed-created"


def test_certificate_alone_holds_the_hostname(world: World, mine: Ownership) -> None:
    mine.certificate()
    answer = world.rival(mine).publish(OTHER)
    assert (answer["status"], answer["conflictingRecords"]) == ("record-conflict", [])
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_records_added_beside_disturb_nothing(hand: Hand, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    name = mine.hostname
    hand.add(f'{name} 900 CAA 0 issue "ca.example"', f'{name} 300 TXT "site-verification"')
    assert mine.publish(OTHER)["status"] == "managed-updated"
    assert mine.withdraw()["status"] == "managed-deleted"
    left = {'900 CAA 0 issue "ca.example"', '300 TXT "site-verification"'}
    assert hand.records(name) == left


def test_address_edited_by_hand_is_no_longer_ours(hand: Hand, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    name = mine.hostname
    hand.update(f"delete {name} A", f"add {name} 300 A 192.0.2.77")
    for value in (ADDRESS, OTHER):
        assert mine.publish(value)["status"] == "record-conflict"
    assert mine.withdraw()["status"] == "managed-deleted"
    assert hand.records(name) == {"300 A 192.0.2.77"}


def test_second_address_added_by_hand_is_a_conflict(hand: Hand, mine: Ownership) -> None:
    mine.publish(ADDRESS)
    hand.add(f"{mine.hostname} 300 A 192.0.2.77")
    assert mine.publish(OTHER)["status"] == "record-conflict"


def test_claim_holds_a_hostname_against_every_client(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    assert gateway(service_lab, "claims", "add", mine.hostname).returncode == 0
    answer = mine.publish(ADDRESS)
    assert (answer["status"], answer["conflictingRecords"]) == ("record-conflict", [])
    assert mine.get()["reason"] == "hostname-conflict"
    assert mine.withdraw()["status"] == "managed-deleted"
    assert gateway(service_lab, "claims", "remove", mine.hostname).returncode == 0
    assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_wildcard_in_the_zone_is_no_conflict(hand: Hand, world: World) -> None:
    parent = f"w{secrets.token_hex(4)}.example.test"
    hand.add(f"*.{parent} 300 A 192.0.2.9")
    mine = Ownership(world.client(f"*.{parent}"), f"a.{parent}")
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    assert addresses(hand, mine.hostname) == {f"300 A {ADDRESS}"}


def test_name_below_a_delegation_is_unavailable(hand: Hand, world: World) -> None:
    cut = f"d{secrets.token_hex(4)}.example.test"
    hand.add(f"{cut} 300 NS ns.elsewhere.invalid.")
    mine = Ownership(world.client(f"**.{cut}"), f"a.{cut}")
    answer = mine.publish(ADDRESS)
    assert (answer["status"], answer["retryAfterMs"]) == ("zone-unavailable", None)
    assert mine.get()["reason"] == "zone-unavailable"


def test_name_in_no_configured_zone_is_unavailable(world: World) -> None:
    mine = world.ownership("elsewhere.test")
    answer = mine.publish(ADDRESS)
    assert (answer["status"], answer["retryAfterMs"]) == ("zone-unavailable", None)


def test_apex_of_a_zone_is_a_conflict(world: World, hand: Hand) -> None:
    serial = hand.serial("example.test")
    apex = Ownership(world.client("example.test"), "example.test")
    assert apex.publish(ADDRESS)["status"] == "record-conflict"
    certificate = apex.get()
    assert (certificate["status"], certificate["reason"]) == ("refused", "hostname-conflict")
    assert hand.serial("example.test") == serial


def test_twenty_same_calls_at_once_create_once(mine: Ownership, second_url: str) -> None:
    both = [mine, mine.at(second_url)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: both[n % 2].publish(ADDRESS)["status"], range(20)))
    assert answers.count("managed-created") >= 1
    assert set(answers) <= {"managed-created", "managed-unchanged"}
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"


def test_two_ownerships_at_once_never_both_publish(
    world: World, hand: Hand, second_url: str
) -> None:
    for _ in range(10):
        one = world.ownership()
        two = world.rival(one).at(second_url)
        with ThreadPoolExecutor(2) as pool:
            answers = list(
                pool.map(lambda each: each[0].publish(each[1]), [(one, ADDRESS), (two, OTHER)])
            )
        statuses = sorted(answer["status"] for answer in answers)
        assert statuses == ["managed-created", "record-conflict"]
        assert len(addresses(hand, one.hostname)) == 1


def test_records_keep_their_owner_when_redis_is_lost(
    world: World, service_lab: Lab, hand: Hand
) -> None:
    mine, edited = world.ownership(), world.ownership()
    mine.publish(ADDRESS)
    edited.publish(ADDRESS)
    hand.update(f"delete {edited.hostname} A", f"add {edited.hostname} 300 A 192.0.2.77")
    client_ids = [each.caller.call("getGatewayClientContext") for each in (mine, edited)]
    with redis.Redis.from_url(service_lab.redis.url) as connection:
        connection.flushall()
    again = [_provisioned_again(world, context["context"]) for context in client_ids]
    rightful = Ownership(again[0], mine.hostname)
    rival = world.rival(mine)
    assert rival.get()["reason"] == "hostname-conflict"
    assert rival.publish(OTHER)["status"] == "record-conflict"
    assert Ownership(again[1], edited.hostname).publish(ADDRESS)["status"] == "record-conflict"
    assert rightful.publish(ADDRESS)["status"] == "managed-unchanged"
    assert rightful.publish(IPV6)["status"] == "managed-updated"
    assert rightful.withdraw()["status"] == "managed-deleted"
    assert hand.records(mine.hostname) == set()


def _provisioned_again(world: World, context: dict[str, object]) -> Caller:
    kept = {"clientId", "clientType", "hostnamePatterns", "allowedDnsRecordAddresses"}
    policy = {name: context[name] for name in (*kept, "capabilities")}
    made = world.admin.call("provisionGatewayClientCredential", action="ensure", spec=policy)
    return Caller(world.url, made["apiToken"])
