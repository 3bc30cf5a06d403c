"""When credentials were last used, on a real Redis of each kind: noted, read, and gone in time."""

import asyncio
import secrets

import pytest
from structlog.testing import capture_logs

from gateway.access import clients as rules
from gateway.access.clients import ClientStore
from gateway.access.last_use import NOTED_AT_MOST, LastUses
from gateway.access.tokens import new_client_token
from gateway.contract import ClientSpec
from gateway.contract.names import ClientId, CredentialId
from gateway.store.connection import Store
from gateway.store.faults import StoreRefused
from gateway.store.keys import client_uses_key, fingerprint
from tests.lab.process import read_until
from tests.lab.redis import RedisProcess

NOW_MS = 1_800_000_000_000
PATIENCE_SECONDS = 30.0
OFTEN_SECONDS = 0.01


class Clock:
    """Says the time that a test sets."""

    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms


class Made:
    """A client of a test's own, in Redis."""

    def __init__(self, store: Store) -> None:
        self.client_id = ClientId(f"client-{secrets.token_hex(6)}")
        self.clients = ClientStore(store)

    async def ensure(self) -> CredentialId:
        spec = ClientSpec(
            client_id=self.client_id,
            client_type="test",
            hostname_patterns=(),
            allowed_dns_record_addresses=(),
            capabilities=frozenset(),
        )
        token = new_client_token(self.client_id)
        await self.clients.change(self.client_id, lambda _: rules.created(spec, token, NOW_MS))
        return token.credential_id

    async def rotate(self, overlap_seconds: int) -> CredentialId:
        token = new_client_token(self.client_id)
        await self.clients.change(
            self.client_id,
            lambda client: client and rules.rotated(client, token, overlap_seconds, NOW_MS),
        )
        return token.credential_id


async def stored(store: Store, client_id: ClientId) -> dict[str, str]:
    return await store.fields(client_uses_key(fingerprint(client_id)))


async def test_uses_are_written_in_the_background_and_read_by_any_process(store: Store) -> None:
    clock, made, other = Clock(), Made(store), Made(store)
    first, others = await made.ensure(), await other.ensure()
    uses, elsewhere = LastUses(store, clock.now_ms), LastUses(store, clock.now_ms)
    async with uses.writing(PATIENCE_SECONDS, OFTEN_SECONDS):
        uses.note(first)
        uses.note(others)
        clock.ms += 5
        uses.note(first)
        await read_until(
            lambda: elsewhere.of(made.client_id), lambda found: found == {first: NOW_MS + 5}
        )
    assert await elsewhere.of(other.client_id) == {others: NOW_MS}
    nobody = ClientId("nobody")
    assert await elsewhere.of_each([nobody, other.client_id]) == {
        nobody: {},
        other.client_id: {others: NOW_MS},
    }


async def test_use_at_a_time_that_no_calendar_has_is_left_out(store: Store) -> None:
    made = Made(store)
    first = await made.ensure()
    await store.set_field(client_uses_key(fingerprint(made.client_id)), first, "9" * 16)
    assert await LastUses(store, Clock().now_ms).of(made.client_id) == {}


async def test_what_this_process_has_noted_is_told_before_it_is_written(store: Store) -> None:
    clock, made = Clock(), Made(store)
    first = await made.ensure()
    uses = LastUses(store, clock.now_ms)
    uses.note(first)
    assert await uses.of(made.client_id) == {first: NOW_MS}
    assert await stored(store, made.client_id) == {}


async def test_end_writes_what_is_left(store: Store) -> None:
    clock, made = Clock(), Made(store)
    first = await made.ensure()
    uses = LastUses(store, clock.now_ms)
    async with uses.writing(PATIENCE_SECONDS):
        uses.note(first)
    assert await stored(store, made.client_id) == {first: str(NOW_MS)}


async def test_later_use_that_another_process_wrote_first_stays(store: Store) -> None:
    clock, made = Clock(), Made(store)
    first = await made.ensure()
    for at_ms in (NOW_MS + 50, NOW_MS):
        clock.ms = at_ms
        uses = LastUses(store, clock.now_ms)
        async with uses.writing(PATIENCE_SECONDS):
            uses.note(first)
    elsewhere = LastUses(store, clock.now_ms)
    assert await elsewhere.of(made.client_id) == {first: NOW_MS + 50}


async def test_credential_that_is_gone_is_forgotten_with_the_next_use(store: Store) -> None:
    clock, made = Clock(), Made(store)
    first = await made.ensure()
    async with (uses := LastUses(store, clock.now_ms)).writing(PATIENCE_SECONDS):
        uses.note(first)
    second = await made.rotate(60)
    async with (uses := LastUses(store, clock.now_ms)).writing(PATIENCE_SECONDS):
        uses.note(second)
    assert (await stored(store, made.client_id)).keys() == {first, second}
    third = await made.rotate(0)
    async with (uses := LastUses(store, clock.now_ms)).writing(PATIENCE_SECONDS):
        # The call came just before the rotation.
        uses.note(second)
        uses.note(third)
    assert (await stored(store, made.client_id)).keys() == {third}


async def test_nothing_is_left_of_a_client_that_is_removed(store: Store) -> None:
    clock, made = Clock(), Made(store)
    first = await made.ensure()
    async with (uses := LastUses(store, clock.now_ms)).writing(PATIENCE_SECONDS):
        uses.note(first)
    assert await stored(store, made.client_id)
    late = LastUses(store, clock.now_ms)
    late.note(first)
    assert await made.clients.drop(made.client_id)
    assert await stored(store, made.client_id) == {}
    async with late.writing(PATIENCE_SECONDS):
        pass
    assert await stored(store, made.client_id) == {}


async def test_what_somebody_else_put_there_is_replaced(store: Store) -> None:
    clock, made, other = Clock(), Made(store), Made(store)
    first, others = await made.ensure(), await other.ensure()
    await store.put(client_uses_key(fingerprint(made.client_id)), "a text", 1_000_000)
    await store.set_field(client_uses_key(fingerprint(other.client_id)), others, "yesterday")
    both = [made.client_id, other.client_id]
    assert await LastUses(store, clock.now_ms).of_each(both) == {each: {} for each in both}
    async with (uses := LastUses(store, clock.now_ms)).writing(PATIENCE_SECONDS):
        uses.note(first)
        uses.note(others)
    elsewhere = LastUses(store, clock.now_ms)
    assert await elsewhere.of(made.client_id) == {first: NOW_MS}
    assert await elsewhere.of(other.client_id) == {others: NOW_MS}


@pytest.mark.parametrize("ahead", [str(NOW_MS + 60_001), "9" * 16, "9" * 400, "inf", "1e300"])
async def test_time_that_is_yet_to_come_does_not_stay(store: Store, ahead: str) -> None:
    made = Made(store)
    first = await made.ensure()
    await store.set_field(client_uses_key(fingerprint(made.client_id)), first, ahead)
    async with (uses := LastUses(store, Clock().now_ms)).writing(PATIENCE_SECONDS):
        uses.note(first)
    assert await stored(store, made.client_id) == {first: str(NOW_MS)}


async def test_later_use_stays_where_an_earlier_one_is_written_long_after_it(store: Store) -> None:
    clock, made = Clock(), Made(store)
    first = await made.ensure()
    late = LastUses(store, clock.now_ms)
    late.note(first)
    clock.ms += 3_600_000
    for uses in (LastUses(store, clock.now_ms), late):
        async with uses.writing(PATIENCE_SECONDS):
            if uses is not late:
                uses.note(first)
    assert await stored(store, made.client_id) == {first: str(NOW_MS + 3_600_000)}


async def test_client_that_is_removed_takes_its_uses_along_in_one_step(
    own_redis: RedisProcess, alone: Store
) -> None:
    """Whatever comes after it: here the user may not change the list of clients."""
    clock, made = Clock(), Made(alone)
    first = await made.ensure()
    async with (uses := LastUses(alone, clock.now_ms)).writing(PATIENCE_SECONDS):
        uses.note(first)
    user = ("ACL", "SETUSER", "short", "on", ">secret", "~*", "+@all", "-srem")
    await alone.answers_of_each([("any", [user])])
    store = Store(own_redis.url.replace("redis://", "redis://short:secret@"), replicas=0)
    with pytest.raises(StoreRefused):
        await ClientStore(store).drop(made.client_id)
    assert await made.clients.by_id(made.client_id) is None
    assert await stored(alone, made.client_id) == {}
    await store.close()


async def test_uses_wait_for_a_redis_that_is_away(own_redis: RedisProcess, alone: Store) -> None:
    clock, made = Clock(), Made(alone)
    first = await made.ensure()
    uses = LastUses(alone, clock.now_ms)
    async with uses.writing(PATIENCE_SECONDS, OFTEN_SECONDS):
        own_redis.stop()
        uses.note(first)
        await asyncio.to_thread(own_redis.start)
        await read_until(
            lambda: stored(alone, made.client_id), lambda found: found == {first: str(NOW_MS)}
        )


async def test_end_without_redis_comes_in_time(own_redis: RedisProcess, alone: Store) -> None:
    uses = LastUses(alone, Clock().now_ms)
    async with uses.writing(0.5):
        uses.note(CredentialId("0" * 36))
        own_redis.stop()


async def test_redis_that_refuses_uses_disturbs_nobody(
    own_redis: RedisProcess, alone: Store
) -> None:
    made = Made(alone)
    first = await made.ensure()
    user = ("ACL", "SETUSER", "short", "on", ">secret", "~*", "+@all", "-eval")
    await alone.answers_of_each([("any", [user])])
    store = Store(own_redis.url.replace("redis://", "redis://short:secret@"), replicas=0)
    uses = LastUses(store, Clock().now_ms)
    uses.note(first)
    with capture_logs() as logged:
        async with uses.writing(PATIENCE_SECONDS):
            pass
    assert [line["event"] for line in logged] == ["last uses of credentials are not kept"]
    assert await uses.of(made.client_id) == {}
    await store.close()


async def test_memory_is_bounded_and_a_known_credential_goes_on(store: Store) -> None:
    clock, made = Clock(), Made(store)
    first = await made.ensure()
    uses = LastUses(store, clock.now_ms)
    uses.note(first)
    for number in range(NOTED_AT_MOST):
        uses.note(CredentialId(f"{number:036x}"))
    last = CredentialId(f"{NOTED_AT_MOST - 1:036x}")
    clock.ms += 1
    uses.note(first)
    uses.note(last)
    found = await uses.of(made.client_id)
    assert found == {first: NOW_MS + 1}
    async with uses.writing(PATIENCE_SECONDS):
        pass
    assert await stored(store, made.client_id) == {first: str(NOW_MS + 1)}
