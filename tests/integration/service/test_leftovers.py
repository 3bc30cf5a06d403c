"""What a release or a crash leaves behind: nothing that keeps anybody from a hostname."""

import json

import redis

from gateway.certificates.orders import AuthorizationView
from gateway.certificates.sealing import load_keyring
from gateway.config import find_file, load_settings
from gateway.configured import build_authority
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.connection import Store
from gateway.store.documents import Change, Documents, Holder
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import CONTEXT, Ownership, World
from tests.integration.service.inside import resting_while_published, stored
from tests.lab.lab import Lab
from tests.lab.process import wait_until

ADDRESS = "198.51.100.5"


async def authorization_at_the_authority(lab: Lab, url: str) -> AuthorizationView:
    """An authorization as the CA has it, asked with the gateway's own account."""
    settings = load_settings(find_file(lab.config.config_file, {}), {})
    store = Store(lab.redis.url)
    authority = build_authority(settings.acme[0], store, load_keyring(settings.keyring_file))
    try:
        return await authority.read_authorization(url)
    finally:
        await authority.close()
        await store.close()


async def test_release_in_the_middle_deactivates_the_pending_authorization(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    with resting_while_published(service_lab, mine):
        issuance = json.loads(stored(service_lab, mine.hostname)["issuance"])
        before = await authorization_at_the_authority(service_lab, issuance["authorization_url"])
        assert mine.release() == "released"
        wait_until(lambda: stored(service_lab, mine.hostname) == {}, "all debts are paid")
    after = await authorization_at_the_authority(service_lab, issuance["authorization_url"])
    assert (before.status, after.status) == ("pending", "deactivated")
    assert hand.records(f"_acme-challenge.{mine.hostname}") == set()


async def left_behind(lab: Lab, mine: Ownership, address: str) -> None:
    """The note of a publication whose outcome nobody learned, as a crash leaves it."""
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    intent = {
        "type": "A",
        "value": address,
        "ttl": 300,
        "published": False,
        "edition": "a crash left it",
    }
    fields = {"holder": Holder(ClientId(client_id), AppId(mine.app_id)), "record": intent}
    store = Store(lab.redis.url)
    try:
        await Documents(store).change(Hostname(mine.hostname), lambda _: Change(fields))
    finally:
        await store.close()


async def test_intent_that_came_to_nothing_ends_with_a_conflict(
    service_lab: Lab, world: World, hand: Hand, mine: Ownership
) -> None:
    await left_behind(service_lab, mine, ADDRESS)
    hand.add(f"{mine.hostname} 300 A 192.0.2.44")
    assert mine.publish(ADDRESS)["status"] == "record-conflict"
    hand.update(f"delete {mine.hostname}")
    assert world.rival(mine).publish("198.51.100.6")["status"] == "managed-created"


async def test_intent_that_was_carried_out_still_withdraws_its_marker(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    await left_behind(service_lab, mine, ADDRESS)
    name = mine.hostname
    hand.update(f"delete {name} A", f"add {name} 300 A 192.0.2.77")
    assert mine.publish(ADDRESS)["status"] == "record-conflict"
    assert mine.withdraw()["status"] == "managed-deleted"
    assert hand.records(name) == {"300 A 192.0.2.77"}


def test_account_key_is_stored_sealed_only(service_lab: Lab, mine: Ownership) -> None:
    mine.certificate()
    settings = load_settings(find_file(service_lab.config.config_file, {}), {})
    directory = settings.acme[0].directory
    with redis.Redis.from_url(service_lab.redis.url, decode_responses=True) as connection:
        sealed = [connection.hget(key, "sealedKey") for key in connection.scan_iter("gw:account:*")]
    assert len(sealed) == 1
    key_pem = load_keyring(settings.keyring_file).open(
        sealed[0] or "", purpose="acme-account-key", bound_to=(directory,)
    )
    assert key_pem.startswith(b"-----BEGIN PRIVATE KEY-----")
    first_line = key_pem.splitlines()[1]
    files = [*service_lab.folder.glob("redis/**/*.aof"), *service_lab.folder.glob("gateway/*.log")]
    assert len(files) >= 3
    assert [file.name for file in files if first_line in file.read_bytes()] == []
