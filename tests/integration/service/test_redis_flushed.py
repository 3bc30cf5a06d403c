"""Redis is emptied under a running gateway: what each ownership is answered afterwards.

The record was published before, by `mine`; its client, another `appId` of that client and another
client call after the operator has provisioned both clients again.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import PROVISION, Caller, Ownership, spec
from tests.lab.bind import BindPair
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import RedisProcess, ask_redis, start_redis

ADDRESS, OTHER = "198.51.100.5", "198.51.100.6"
EDITED = "192.0.2.66"


@dataclass(frozen=True)
class Flushable:
    """A gateway whose Redis may be emptied."""

    admin: Caller
    redis: RedisProcess
    hand: Hand

    def flush(self) -> None:
        ask_redis(self.redis.port, "FLUSHALL")

    def ownership(self, client_id: str, hostname: str, app_id: str = "relay") -> Ownership:
        """Of a client that is provisioned, or provisioned again."""
        made = self.admin.call(PROVISION, action="ensure", spec=spec(client_id, hostname))
        token = made["apiToken"]
        if token is None:
            token = self.admin.call(
                PROVISION, action="rotate", spec={"clientId": client_id}, overlapSeconds=3600
            )["apiToken"]
        return Ownership(Caller(self.admin.url, token), hostname, app_id)


@pytest.fixture(scope="module")
def flushable(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, pebble: PebbleProcess
) -> Iterator[Flushable]:
    folder = tmp_path_factory.mktemp("flushable")
    redis = start_redis(tmp_path_factory.mktemp("flushable-redis"))
    try:
        config = write_gateway_config(folder / "gateway", bind, redis.url, pebble)
        gateway = start_gateway(config)
        try:
            yield Flushable(Caller(config.url, config.admin_token), redis, Hand.at(bind))
        finally:
            gateway.stop()
    finally:
        redis.stop()


class Flushed:
    """One hostname, published, after the loss; `in_zone` is what was there before."""

    def __init__(self, flushable: Flushable) -> None:
        self.flushable = flushable
        self.hostname = f"t{secrets.token_hex(6)}.example.test"
        self._client_id = f"mine-{secrets.token_hex(6)}"
        mine = flushable.ownership(self._client_id, self.hostname)
        assert mine.publish(ADDRESS)["status"] == "managed-created"
        self.before = self.in_zone()
        flushable.flush()

    def in_zone(self) -> set[str]:
        return self.flushable.hand.records(self.hostname)

    def mine(self) -> Ownership:
        return self.flushable.ownership(self._client_id, self.hostname)

    def others(self) -> list[Ownership]:
        """Another `appId` of the same client, and another client."""
        another_app = self.flushable.ownership(self._client_id, self.hostname, "another")
        client_id = f"rival-{secrets.token_hex(6)}"
        return [another_app, self.flushable.ownership(client_id, self.hostname)]

    def edit(self, *lines: str) -> None:
        """Another person's update of the name."""
        self.flushable.hand.update(*(line.replace("NAME", self.hostname) for line in lines))


@pytest.fixture
def flushed(flushable: Flushable) -> Flushed:
    return Flushed(flushable)


def test_rightful_ownership_finds_its_record_unchanged(flushed: Flushed) -> None:
    assert flushed.mine().publish(ADDRESS)["status"] == "managed-unchanged"
    assert flushed.in_zone() == flushed.before


def test_rightful_ownership_replaces_its_record(flushed: Flushed) -> None:
    answer = flushed.mine().publish(OTHER, ttl=120)
    assert answer["status"] == "managed-updated"
    found = flushed.in_zone()
    assert f"120 A {OTHER}" in found
    assert len(found) == 2


def test_rightful_ownership_replaces_its_record_by_the_other_family(flushed: Flushed) -> None:
    assert flushed.mine().publish("2001:db8::5")["status"] == "managed-updated"
    assert {each.split()[1] for each in flushed.in_zone()} == {"AAAA", "TXT"}


def test_rightful_ownership_withdraws_its_record(flushed: Flushed) -> None:
    assert flushed.mine().withdraw()["status"] == "managed-deleted"
    assert flushed.in_zone() == set()


def test_every_other_ownership_gets_the_conflict(flushed: Flushed) -> None:
    for other in flushed.others():
        for value in (ADDRESS, OTHER):
            answer = other.publish(value)
            assert answer["status"] == "record-conflict"
            kinds = {each["type"] for each in answer["conflictingRecords"]}
            assert kinds == {"A", "TXT"}
        assert other.withdraw()["status"] == "managed-deleted"
        assert other.get()["reason"] == "hostname-conflict"
    assert flushed.in_zone() == flushed.before
    assert flushed.mine().publish(ADDRESS)["status"] == "managed-unchanged"


def test_hand_edited_address_is_a_conflict_for_all(flushed: Flushed) -> None:
    flushed.edit("delete NAME A", f"add NAME 300 A {EDITED}")
    edited = flushed.in_zone()
    for each in (flushed.mine(), *flushed.others()):
        for value in (ADDRESS, OTHER):
            assert each.publish(value)["status"] == "record-conflict"
        assert each.get()["reason"] == "hostname-conflict"
    assert flushed.in_zone() == edited


def test_address_edited_to_the_wanted_one_is_a_conflict_for_all(flushed: Flushed) -> None:
    """It looks like what is asked for, and the gateway has not published it."""
    flushed.edit("delete NAME A", f"add NAME 300 A {OTHER}")
    for each in (flushed.mine(), *flushed.others()):
        assert each.publish(OTHER)["status"] == "record-conflict"


def test_withdrawal_leaves_a_hand_edited_address_alone(flushed: Flushed) -> None:
    flushed.edit("delete NAME A", f"add NAME 300 A {EDITED}")
    assert flushed.mine().withdraw()["status"] == "managed-deleted"
    assert f"300 A {EDITED}" in flushed.in_zone()


def test_second_address_beside_its_own_is_a_conflict_for_all(flushed: Flushed) -> None:
    flushed.edit(f"add NAME 300 A {EDITED}")
    crowded = flushed.in_zone()
    for each in (flushed.mine(), *flushed.others()):
        assert each.publish(ADDRESS)["status"] == "record-conflict"
    assert flushed.in_zone() == crowded


def test_second_marker_changes_nothing_for_anybody(flushed: Flushed) -> None:
    foreign = 'TXT "gateway-owner=v1:lab-1:AAAAAAAAAAAAAAAAAAAAAA"'
    flushed.edit(f"add NAME 300 {foreign}")
    for other in flushed.others():
        assert other.publish(ADDRESS)["status"] == "record-conflict"
    assert flushed.mine().publish(ADDRESS)["status"] == "managed-unchanged"
    assert flushed.mine().publish(OTHER)["status"] == "managed-updated"
    assert f"300 {foreign}" in flushed.in_zone()
    assert flushed.mine().withdraw()["status"] == "managed-deleted"
    assert flushed.in_zone() == {f"300 {foreign}"}


def test_marker_without_an_address_is_created_anew_by_its_own_record_only(flushed: Flushed) -> None:
    flushed.edit("delete NAME A")
    for other in flushed.others():
        assert other.publish(ADDRESS)["status"] == "record-conflict"
    assert flushed.mine().publish(ADDRESS)["status"] == "managed-created"
    assert flushed.in_zone() == flushed.before


def test_address_without_a_marker_is_a_conflict_for_all(flushed: Flushed) -> None:
    flushed.edit("delete NAME TXT")
    for each in (flushed.mine(), *flushed.others()):
        assert each.publish(ADDRESS)["status"] == "record-conflict"
    assert flushed.in_zone() == {f"300 A {ADDRESS}"}


def test_client_that_is_not_provisioned_again_is_unknown(flushable: Flushable) -> None:
    hostname = f"t{secrets.token_hex(6)}.example.test"
    mine = flushable.ownership(f"mine-{secrets.token_hex(6)}", hostname)
    mine.publish(ADDRESS)
    before = flushable.hand.records(hostname)
    flushable.flush()
    refusal = mine.caller.refused("getGatewayClientContext")
    assert refusal["code"] == "unauthorized"
    assert flushable.hand.records(hostname) == before


def test_certificate_is_issued_again_with_another_key(flushable: Flushable) -> None:
    hostname = f"t{secrets.token_hex(6)}.example.test"
    client_id = f"mine-{secrets.token_hex(6)}"
    mine = flushable.ownership(client_id, hostname)
    mine.publish(ADDRESS)
    before = mine.certificate()
    flushable.flush()
    rival = flushable.ownership(f"rival-{secrets.token_hex(6)}", hostname)
    assert rival.get()["reason"] == "hostname-conflict"
    again = flushable.ownership(client_id, hostname)
    after = again.certificate()
    assert after["privateKeyPem"] != before["privateKeyPem"]
    assert after["chainPem"] != before["chainPem"]
    assert again.publish(ADDRESS)["status"] == "managed-unchanged"
    assert again.release() == "released"
    assert again.withdraw()["status"] == "managed-deleted"
    assert flushable.hand.records(hostname) == set()
