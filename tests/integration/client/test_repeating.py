"""Calls that failed are made again where that does no harm.

At a real gateway that goes away and comes back, and at a liar that ends connections at exact
places.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from httpx import URL

from gateway.client import (
    AsyncGatewayClient,
    ClientContext,
    DeadlinePassed,
    GatewayError,
    Overloaded,
    ProvisionResponse,
    Unavailable,
    Unreachable,
    exchange,
)
from tests.integration.client.conftest import RELAY, TOKEN
from tests.integration.client.counting import counted_connections
from tests.integration.service.calling import World, spec
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayProcess, start_gateway, write_gateway_config
from tests.lab.liar import CUT, HANG, RESET, Answer, Liar, Says, failure, response, spoiled
from tests.lab.ports import LOOPBACK
from tests.lab.process import read_until
from tests.lab.redis import RedisProcess, start_redis

ADDRESS = {"type": "A", "value": "198.51.100.5", "ttl": 60}
CLIENT = {
    "clientId": "cluster-a",
    "clientType": "relay",
    "policyGeneration": 1,
    "hostnamePatterns": ["a.example.test"],
    "allowedDnsRecordAddresses": [],
    "capabilities": [],
}
SYNCED = {
    "status": "managed-created",
    "hostname": RELAY.hostname,
    "record": ADDRESS,
    "conflictingRecords": [],
    "retryAfterMs": None,
    "message": "The record is published.",
}
PROVISIONED = response({"client": CLIENT, "credential": None, "apiToken": None})
"""Of a call that makes no token, or none any more."""
RELEASED = response({"status": "released"})

Call = Callable[[AsyncGatewayClient], object]
SAFE: dict[str, tuple[Call, Answer]] = {
    "capabilities": (
        lambda client: client.get_capabilities(),
        response(
            {
                "capabilities": {
                    "dns": {"clientRecords": True},
                    "certificates": {"exactIssuance": True},
                }
            }
        ),
    ),
    "context": (lambda client: client.get_context(), response({"context": {"role": "admin"}})),
    "sync": (lambda client: client.sync_dns_record(RELAY, ADDRESS), response(SYNCED)),
    "delete": (
        lambda client: client.delete_dns_record(RELAY),
        response(SYNCED | {"status": "managed-deleted", "record": None}),
    ),
    "get": (
        lambda client: client.get_certificate(RELAY),
        response({"status": "pending", "retryAfterMs": 5}),
    ),
    "release": (lambda client: client.release_certificate(RELAY), RELEASED),
    "revoke": (lambda client: client.revoke_credentials("cluster-a"), PROVISIONED),
    "remove": (lambda client: client.remove_client("cluster-a"), PROVISIONED),
}
TOKEN_MAKING: dict[str, Call] = {
    "ensure": lambda client: client.ensure_client(spec("cluster-a", "a.example.test")),
    "rotate": lambda client: client.rotate_credential("cluster-a"),
}
PASSING: dict[str, Answer] = {
    "no answer": CUT,
    "a reset": RESET,
    "half an answer": spoiled(RELEASED, cut_after=200),
    "too many requests": Says(b"slow down", status=429),
    "a bad gateway": Says(b"<html>", status=502),
    "an unavailable service": Says(b"<html>", status=503),
    "a gateway timeout": Says(b"<html>", status=504),
    "unavailable": failure("unavailable", retryAfterMs=1),
    "overloaded": failure("overloaded", retryAfterMs=1),
}


@pytest.mark.parametrize("name", SAFE)
async def test_safe_call_is_repeated_after_its_answer_was_lost(
    liar: Liar, deceived: AsyncGatewayClient, name: str
) -> None:
    call, answer = SAFE[name]
    liar.answers(CUT, answer)
    assert await call(deceived)  # type: ignore[misc]
    assert len(set(liar.methods)) == 1
    assert len(liar.requests) == 2


@pytest.mark.parametrize("name", TOKEN_MAKING)
@pytest.mark.parametrize("what", PASSING)
async def test_call_that_makes_a_token_is_sent_once(
    liar: Liar, deceived: AsyncGatewayClient, name: str, what: str
) -> None:
    liar.answers(PASSING[what], PROVISIONED)
    with pytest.raises((Unreachable, Unavailable, Overloaded)) as raised:
        await TOKEN_MAKING[name](deceived)  # type: ignore[misc]
    assert len(liar.requests) == 1
    if isinstance(raised.value, Unreachable):
        assert raised.value.may_have_arrived


@pytest.mark.parametrize("what", PASSING)
async def test_safe_call_is_repeated_through_what_passes(
    liar: Liar, deceived: AsyncGatewayClient, what: str
) -> None:
    liar.answers(PASSING[what], RELEASED)
    assert (await deceived.release_certificate(RELAY)).status == "released"
    assert len(liar.requests) == 2


async def test_call_is_repeated_more_than_once(liar: Liar, deceived: AsyncGatewayClient) -> None:
    liar.answers(PASSING["unavailable"], PASSING["unavailable"], RELEASED)
    assert (await deceived.release_certificate(RELAY)).status == "released"
    assert len(liar.requests) == 3


async def test_repetition_is_a_call_of_its_own(liar: Liar, deceived: AsyncGatewayClient) -> None:
    liar.answers(CUT, RELEASED)
    await deceived.release_certificate(RELAY)
    first, second = (request.envelope for request in liar.requests)
    assert first["request"] == second["request"]
    assert first["correlation"] != second["correlation"]


async def test_wait_beyond_the_deadline_ends_the_call_with_the_gateways_error(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(failure("unavailable", retryAfterMs=3_600_000))
    with pytest.raises(Unavailable, match=r"^Told to fail\.$") as raised:
        await deceived.release_certificate(RELAY)
    assert raised.value.retry_after_ms == 3_600_000
    assert len(liar.requests) == 1


@pytest.mark.parametrize("host", [LOOPBACK, "localhost"])
async def test_gateway_that_stays_away_is_unreachable_with_the_reason(host: str) -> None:
    with Liar() as gone:
        url = gone.url.replace(LOOPBACK, host)
    async with AsyncGatewayClient(url, TOKEN, deadline=0.5) as client:
        # Which of the two depends on whether the deadline meets an attempt or a pause.
        with pytest.raises(
            (Unreachable, DeadlinePassed), match=r"cannot be reached: Connection refused\.$"
        ):
            await client.release_certificate(RELAY)


async def test_gateway_that_is_silent_is_asked_again_within_the_deadline(
    liar: Liar, deceived: AsyncGatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A test has no time for the real limit, which is longer than a gateway ever takes.
    monkeypatch.setattr(exchange, "EXCHANGE_SECONDS", 0.2)
    liar.answers(HANG, RELEASED)
    assert (await deceived.release_certificate(RELAY)).status == "released"
    assert len(liar.requests) == 2


@dataclass
class Own:
    """A gateway of this module's own, and its Redis: both may be stopped."""

    gateway: GatewayProcess
    redis: RedisProcess
    world: World


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[Own]:
    folder = tmp_path_factory.mktemp("client")
    redis = start_redis(tmp_path_factory.mktemp("client-redis"))
    config = write_gateway_config(folder / "gateway", bind, redis.url, None)
    gateway = start_gateway(config)
    yield Own(gateway, redis, World(config.url, config.admin_token))
    gateway.stop()
    redis.stop()


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_gateway_restarted_between_two_calls_is_not_noticed(own: Own, how: str) -> None:
    mine = own.world.ownership()
    async with AsyncGatewayClient(mine.caller.url, mine.caller.token or "") as client:
        first = await client.sync_dns_record(mine.wire, ADDRESS)
        await asyncio.to_thread(getattr(own.gateway, how))
        await asyncio.to_thread(own.gateway.start)
        second = await client.sync_dns_record(mine.wire, ADDRESS)
    assert (first.status, second.status) == ("managed-created", "managed-unchanged")


async def test_gateway_killed_in_the_middle_of_a_call_answers_when_it_is_back(own: Own) -> None:
    mine = own.world.ownership()
    failures: list[GatewayError] = []
    async with (
        counted_connections(URL(own.gateway.base_url).port or 0) as counted,
        AsyncGatewayClient(
            counted.url, mine.caller.token or "", on_repeat=failures.append
        ) as client,
    ):
        await client.get_context()
        sent_before = counted.sent_bytes
        own.gateway.process.pause()
        call = asyncio.create_task(client.sync_dns_record(mine.wire, ADDRESS))
        await happens(lambda: counted.sent_bytes > sent_before)
        await asyncio.to_thread(own.gateway.kill)
        await happens(lambda: bool(failures))
        await asyncio.to_thread(own.gateway.start)
        assert (await call).status in ("managed-created", "managed-unchanged")
    assert isinstance(failures[0], Unreachable)
    assert failures[0].may_have_arrived


async def test_call_that_makes_a_token_waits_for_a_gateway_that_is_down(
    own: Own, new_client_id: str
) -> None:
    await asyncio.to_thread(own.gateway.kill)
    failures: list[GatewayError] = []
    async with AsyncGatewayClient(
        own.world.url, own.world.admin.token or "", on_repeat=failures.append
    ) as operator:
        call = asyncio.create_task(operator.ensure_client(spec(new_client_id, "a.example.test")))
        await happens(lambda: bool(failures))
        await asyncio.to_thread(own.gateway.start)
        made = await call
    assert isinstance(made, ProvisionResponse)
    assert made.api_token


async def test_gateway_without_its_store_is_asked_until_it_has_it_again(own: Own) -> None:
    mine = own.world.ownership()
    await asyncio.to_thread(own.redis.kill)
    async with AsyncGatewayClient(mine.caller.url, mine.caller.token or "") as client:
        call = asyncio.create_task(client.get_context())
        # Another call, which is not repeated, has told by then that the store is away.
        with pytest.raises(Unavailable) as refused:
            await _rotate(own)
        await asyncio.to_thread(own.redis.start)
        assert isinstance(await call, ClientContext)
    assert refused.value.retry_after_ms > 0


async def happens(condition: Callable[[], bool]) -> None:
    async def read() -> bool:
        return condition()

    await read_until(read, lambda is_so: is_so)


async def _rotate(own: Own) -> None:
    async with AsyncGatewayClient(own.world.url, own.world.admin.token or "") as operator:
        await operator.rotate_credential("cluster-a")
