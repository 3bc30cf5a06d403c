"""Hostnames of different fates, each set up by calls and by another person's hand.

Used by `test_explain`: what the verdicts must be, and what the calls then answer.
"""

import secrets
from dataclasses import dataclass

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import CONTEXT, PROVISION, Ownership, World

ADDRESS, OTHER, OUTSIDE = "198.51.100.5", "198.51.100.6", "192.0.2.1"


@dataclass
class Asked:
    """Who asks for what: an ownership, the address of its record, and what the verdicts must be.

    `client`: its id, where its token does not tell it any more.
    """

    ownership: Ownership
    sync: str
    certificate: str
    address: str = ADDRESS
    client: str | None = None


def client_id(ownership: Ownership) -> str:
    found: str = ownership.caller.call(CONTEXT)["context"]["clientId"]
    return found


def free(world: World, _: Hand) -> Asked:
    return Asked(world.ownership(), "managed-created", "pending")


def published(world: World, _: Hand) -> Asked:
    mine = world.ownership()
    mine.publish(ADDRESS)
    return Asked(mine, "managed-unchanged", "pending")


def published_elsewhere(world: World, _: Hand) -> Asked:
    mine = world.ownership()
    mine.publish(ADDRESS)
    return Asked(mine, "managed-updated", "pending", OTHER)


def foreign(world: World, hand: Hand) -> Asked:
    mine = world.ownership()
    hand.add(f"{mine.hostname} 300 A 192.0.2.44")
    return Asked(mine, "record-conflict", "hostname-conflict")


def edited(world: World, hand: Hand) -> Asked:
    mine = world.ownership()
    mine.publish(ADDRESS)
    hand.update(f"delete {mine.hostname} A", f"add {mine.hostname} 300 A 192.0.2.44")
    return Asked(mine, "record-conflict", "pending")


def held_by_another(world: World, _: Hand) -> Asked:
    mine = world.ownership()
    mine.publish(ADDRESS)
    return Asked(world.rival(mine), "record-conflict", "hostname-conflict")


def outside_allowance(world: World, _: Hand) -> Asked:
    return Asked(world.ownership(), "target-invalid", "pending", OUTSIDE)


def unmatched(world: World, _: Hand) -> Asked:
    hostname = world.ownership().hostname
    other = Ownership(world.client("*.elsewhere.test"), hostname)
    return Asked(other, "hostname-forbidden", "hostname-forbidden")


def records_only(world: World, _: Hand) -> Asked:
    mine = world.ownership(capabilities=["syncDnsRecords"])
    return Asked(mine, "managed-created", "forbidden")


def without_zone(world: World, _: Hand) -> Asked:
    return Asked(world.ownership("elsewhere.test"), "zone-unavailable", "zone-unavailable")


def delegated(world: World, hand: Hand) -> Asked:
    cut = f"d{secrets.token_hex(4)}.example.test"
    hand.add(f"{cut} 300 NS ns.elsewhere.invalid.")
    return Asked(world.ownership(cut), "zone-unavailable", "zone-unavailable")


def below_dname(world: World, hand: Hand) -> Asked:
    moved = f"d{secrets.token_hex(4)}.example.test"
    hand.add(f"{moved} 300 DNAME elsewhere.invalid.")
    return Asked(world.ownership(moved), "zone-unavailable", "zone-unavailable")


def apex(world: World, _: Hand) -> Asked:
    mine = Ownership(world.client("example.test"), "example.test")
    return Asked(mine, "record-conflict", "hostname-conflict")


def made_up(world: World, hand: Hand) -> Asked:
    parent = f"w{secrets.token_hex(4)}.example.test"
    hand.add(f"*.{parent} 300 A 192.0.2.44")
    return Asked(world.ownership(parent), "managed-created", "zone-unavailable")


def without_token(world: World, _: Hand) -> Asked:
    mine = world.ownership()
    client = client_id(mine)
    world.admin.call(PROVISION, action="revoke", spec={"clientId": client})
    return Asked(mine, "unauthorized", "unauthorized", client=client)


FATES = [
    free,
    published,
    published_elsewhere,
    foreign,
    edited,
    held_by_another,
    outside_allowance,
    unmatched,
    records_only,
    without_zone,
    delegated,
    below_dname,
    apex,
    made_up,
    without_token,
]
