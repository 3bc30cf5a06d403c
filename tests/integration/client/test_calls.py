"""Every call of the SDK at a real gateway: its result, and the exception of each error."""

import asyncio
from types import MappingProxyType

import pytest

from gateway.client import (
    AdminContext,
    AsyncGatewayClient,
    ClientContext,
    ClientSpec,
    DnsRecord,
    Forbidden,
    GatewayCapabilities,
    HostnameForbidden,
    Pending,
    ProvisionResponse,
    Ready,
    Refused,
    RequestInvalid,
    SyncDnsRecordResponse,
    Unauthorized,
)
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import EVERYTHING, Ownership as Mine, World, spec
from tests.lab.lab import Lab

ADDRESS = DnsRecord(type="A", value="198.51.100.5", ttl=60)
OTHER_ADDRESS = DnsRecord(type="AAAA", value="2001:db8::5")


@pytest.fixture(scope="session")
def hand(lab: Lab) -> Hand:
    """Another person, in the gateway's zones."""
    return Hand.at(lab.bind)


async def test_capabilities_are_what_the_gateway_is_configured_for(
    client: AsyncGatewayClient,
) -> None:
    capabilities = await client.get_capabilities()
    assert isinstance(capabilities, GatewayCapabilities)
    assert capabilities.dns.client_records
    assert capabilities.certificates.exact_issuance


async def test_context_of_a_client_is_its_policy(client: AsyncGatewayClient, mine: Mine) -> None:
    context = await client.get_context()
    assert isinstance(context, ClientContext)
    assert context.hostname_patterns == (mine.hostname,)
    assert context.capabilities == frozenset(EVERYTHING)


async def test_context_of_the_operator_is_told_apart(operator: AsyncGatewayClient) -> None:
    assert await operator.get_context() == AdminContext()


async def test_record_is_published_replaced_kept_and_withdrawn(
    client: AsyncGatewayClient, mine: Mine, hand: Hand
) -> None:
    steps = [
        await client.sync_dns_record(mine.wire, ADDRESS),
        await client.sync_dns_record(mine.wire, ADDRESS),
        await client.sync_dns_record(mine.wire, OTHER_ADDRESS),
    ]
    assert [step.status for step in steps] == [
        *("managed-created", "managed-unchanged", "managed-updated")
    ]
    assert [step.record for step in steps] == [ADDRESS, ADDRESS, OTHER_ADDRESS]
    assert all(isinstance(step, SyncDnsRecordResponse) for step in steps)
    gone = await client.delete_dns_record(mine.wire)
    assert (gone.status, gone.record) == ("managed-deleted", None)
    assert not hand.records(mine.hostname)


async def test_conflict_is_a_result_with_its_evidence(
    client: AsyncGatewayClient, mine: Mine, hand: Hand
) -> None:
    hand.add(f"{mine.hostname} 300 A 192.0.2.44")
    answer = await client.sync_dns_record(mine.wire, ADDRESS)
    assert answer.status == "record-conflict"
    assert [(found.type, found.value) for found in answer.conflicting_records] == [
        ("A", "192.0.2.44")
    ]


async def test_ownership_and_record_may_be_any_mapping(
    client: AsyncGatewayClient, mine: Mine
) -> None:
    answer = await client.sync_dns_record(
        MappingProxyType(mine.wire), {"type": "A", "value": "198.51.100.5"}
    )
    assert answer.record == DnsRecord(type="A", value="198.51.100.5", ttl=300)


async def test_certificate_is_pending_then_ready_then_released(
    client: AsyncGatewayClient, mine: Mine
) -> None:
    first = await client.get_certificate(mine.wire)
    assert isinstance(first, Pending)
    certificate = await client.wait_for_certificate(mine.wire)
    again = await client.get_certificate(mine.wire)
    assert again == Ready(certificate=certificate)
    assert (await client.release_certificate(mine.wire)).status == "released"
    assert (await client.release_certificate(mine.wire)).status == "unchanged"


async def test_certificate_of_a_foreign_hostname_is_refused_as_a_result(
    client: AsyncGatewayClient, mine: Mine, hand: Hand
) -> None:
    hand.add(f'{mine.hostname} 300 TXT "not ours"')
    answer = await client.get_certificate(mine.wire)
    assert isinstance(answer, Refused)
    assert answer.reason == "hostname-conflict"


async def test_client_is_made_rotated_revoked_and_removed(
    operator: AsyncGatewayClient, lab: Lab, new_client_id: str
) -> None:
    made = await operator.ensure_client(spec(new_client_id, "a.example.test"))
    assert isinstance(made, ProvisionResponse)
    assert made.client.client_id == new_client_id
    assert made.api_token is not None
    rotated = await operator.rotate_credential(new_client_id, overlap_seconds=60)
    assert rotated.api_token != made.api_token
    revoked = await operator.revoke_credentials(new_client_id)
    assert (revoked.credential, revoked.api_token) == (None, None)
    async with AsyncGatewayClient(lab.config.url, rotated.api_token) as stranger:
        with pytest.raises(Unauthorized):
            await stranger.get_context()
    removed = await operator.remove_client(new_client_id)
    assert removed.client.client_id == new_client_id


async def test_policy_as_a_model_is_taken_too(
    operator: AsyncGatewayClient, new_client_id: str
) -> None:
    wanted = ClientSpec.model_validate(spec(new_client_id, "a.example.test"))
    made = await operator.ensure_client(wanted)
    assert made.client.hostname_patterns == wanted.hostname_patterns
    assert (await operator.ensure_client(wanted)).api_token is None


async def test_client_with_a_hostname_is_removed_only_with_its_holdings(
    operator: AsyncGatewayClient, client: AsyncGatewayClient, mine: Mine
) -> None:
    context = await client.get_context()
    assert isinstance(context, ClientContext)
    await client.sync_dns_record(mine.wire, ADDRESS)
    with pytest.raises(RequestInvalid, match="hold"):
        await operator.remove_client(context.client_id)
    removed = await operator.remove_client(context.client_id, release_holdings=True)
    assert removed.client.client_id == context.client_id


async def test_token_may_be_a_function_asked_for_each_call(mine: Mine) -> None:
    tokens = iter(["gwc_0000_unknown", mine.caller.token or ""])
    async with AsyncGatewayClient(mine.caller.url, lambda: next(tokens)) as client:
        with pytest.raises(Unauthorized):
            await client.get_context()
        assert await client.get_context()


async def test_forbidden_names_the_missing_capability(world: World) -> None:
    mine = world.ownership(capabilities=["syncDnsRecords"])
    async with AsyncGatewayClient(mine.caller.url, mine.caller.token or "") as client:
        with pytest.raises(Forbidden, match="requestCertificates") as refused:
            await client.get_certificate(mine.wire)
    assert refused.value.capability == "requestCertificates"


async def test_operators_call_by_a_client_is_forbidden(
    client: AsyncGatewayClient, new_client_id: str
) -> None:
    with pytest.raises(Forbidden) as refused:
        await client.revoke_credentials(new_client_id)
    assert refused.value.capability is None


async def test_hostname_outside_the_patterns_is_hostname_forbidden(
    client: AsyncGatewayClient,
) -> None:
    outside = {"appId": "relay", "hostname": "elsewhere.example.test"}
    with pytest.raises(HostnameForbidden, match=r"elsewhere\.example\.test matches none"):
        await client.sync_dns_record(outside, ADDRESS)


async def test_violation_that_only_the_gateway_can_see_is_request_invalid(
    operator: AsyncGatewayClient, new_client_id: str
) -> None:
    with pytest.raises(RequestInvalid) as refused:
        await operator.rotate_credential(new_client_id)
    assert refused.value.violations[0].startswith("spec.clientId ")


async def test_fifty_calls_at_once_are_each_answered_with_their_own(world: World) -> None:
    parent = world.ownership().hostname
    caller = world.client(f"*.{parent}")
    hostnames = [f"n{number}.{parent}" for number in range(50)]
    async with AsyncGatewayClient(caller.url, caller.token or "") as client:
        answers = await asyncio.gather(
            *(client.delete_dns_record({"appId": "relay", "hostname": name}) for name in hostnames)
        )
    assert [answer.hostname for answer in answers] == hostnames
