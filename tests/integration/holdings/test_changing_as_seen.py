"""Two operators change one client at once: the later is refused, whatever moment it comes at."""

from collections.abc import AsyncIterator

import pytest

from gateway.access.clients import ABSENT, ClientChanged, mark_of
from gateway.contract import ClientSpec, ProvisionRequest, RequestInvalid
from gateway.contract.names import ClientId
from tests.integration.holdings.site import SeamedStore, Site
from tests.lab.redis import RedisProcess

ACTIONS = ("ensure", "rotate", "revoke", "remove")


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[SeamedStore]:
    store = SeamedStore(redis_server.url)
    yield store
    await store.close()


def request(action: str, client_id: ClientId, pattern: str = "a.example.test") -> ProvisionRequest:
    spec = ClientSpec(
        client_id=client_id,
        client_type="test",
        hostname_patterns=(pattern,),
        allowed_dns_record_addresses=(),
        capabilities=frozenset(),
    )
    return ProvisionRequest(
        action=action, client_id=client_id, spec=spec if action == "ensure" else None
    )


async def mark(site: Site, client_id: ClientId) -> str:
    stored = await site.clients.by_id(client_id)
    return mark_of(None if stored is None else stored.client)


@pytest.mark.parametrize("later", ACTIONS)
@pytest.mark.parametrize("first", ["rotate", "revoke", "remove"])
async def test_change_is_refused_that_was_decided_before_another(
    site: Site, first: str, later: str
) -> None:
    client_id = site.owner.client_id
    seen = await mark(site, client_id)
    await site.provisioning.provision(request(first, client_id), as_seen=seen)
    became = await mark(site, client_id)
    is_told_gone = first == later == "remove"
    with pytest.raises(RequestInvalid if is_told_gone else ClientChanged):
        await site.provisioning.provision(request(later, client_id), as_seen=seen)
    assert await mark(site, client_id) == became


@pytest.mark.parametrize("later", ACTIONS)
async def test_change_is_refused_where_another_comes_between_its_reading_and_its_writing(
    site: Site, store: SeamedStore, later: str
) -> None:
    client_id = site.owner.client_id
    seen = await mark(site, client_id)
    rotation = request("rotate", client_id)
    store.after_read.set(lambda: site.provisioning.provision(rotation, as_seen=seen))
    with pytest.raises(ClientChanged):
        await site.provisioning.provision(request(later, client_id), as_seen=seen)
    assert store.after_read.has_come
    stored = await site.clients.by_id(client_id)
    assert stored is not None
    assert len(stored.client.credentials) == 1
    assert stored.client.policy_generation == 2


async def test_client_made_by_somebody_else_meanwhile_keeps_his_policy(
    site: Site, store: SeamedStore, fresh_label: str
) -> None:
    client_id = ClientId(f"new-{fresh_label}")
    theirs = request("ensure", client_id, "theirs.example.test")
    store.after_read.set(lambda: site.provisioning.provision(theirs, as_seen=ABSENT))
    mine = request("ensure", client_id, "mine.example.test")
    with pytest.raises(ClientChanged):
        await site.provisioning.provision(mine, as_seen=ABSENT)
    stored = await site.clients.by_id(client_id)
    assert stored is not None
    assert stored.client.hostname_patterns == ("theirs.example.test",)


@pytest.mark.parametrize("later", ACTIONS)
async def test_change_without_a_mark_is_made_of_whatever_is_there(
    site: Site, store: SeamedStore, later: str
) -> None:
    client_id = site.owner.client_id
    store.after_read.set(lambda: site.provisioning.provision(request("rotate", client_id)))
    await site.provisioning.provision(request(later, client_id))
    assert store.after_read.has_come
