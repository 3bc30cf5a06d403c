"""A token that was let in before is known and counted in one step, and judged as if it was not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from gateway.access.clients import Client, ClientStore, created, revoked, rotated, with_policy
from gateway.access.gate import ClientCaller, Gate
from gateway.access.last_use import LastUses
from gateway.access.limits import CallRates
from gateway.access.tokens import NewToken, digest_of, new_client_token
from gateway.contract import ClientSpec, Overloaded, Unauthorized
from gateway.store import keys

if TYPE_CHECKING:
    from gateway.contract.names import ClientId
    from gateway.store.connection import Store

NOW_MS = 1_700_000_000_000


class Known:
    """A gate, and a client whose token it has let in once."""

    def __init__(self, store: Store, client_id: str, per_minute: int) -> None:
        self.store = store
        self.clients = ClientStore(store)
        self.now_ms = NOW_MS
        self.spec = spec_of(client_id, "*.example.test")
        self.token = new_client_token(client_id)
        rates = CallRates(store, lambda _: per_minute, lambda: self.now_ms)
        self.rates = rates
        uses = LastUses(store, lambda: self.now_ms)
        self.gate = Gate(self.clients, None, rates, lambda: self.now_ms, uses)

    @property
    def client_id(self) -> ClientId:
        return self.spec.client_id

    async def make(self) -> None:
        await self.clients.change(self.client_id, lambda _: created(self.spec, self.token, NOW_MS))
        await self.call()
        assert self.gate.knows(digest_of(self.token.token))

    async def call(self, token: NewToken | None = None) -> Client:
        """The client as the gate has it for a call that it lets in."""
        shown = (token or self.token).token
        admitted = await self.gate.admit(shown, digest_of(shown))
        await self.gate.count(admitted)
        assert isinstance(admitted.caller, ClientCaller)
        return admitted.caller.client

    async def used(self) -> int:
        return (await self.rates.use_of(self.client_id)).used


def spec_of(client_id: str, *patterns: str) -> ClientSpec:
    return ClientSpec.of(client_id, "test", hostname_patterns=patterns, capabilities=[])


@pytest.fixture(params=[0, 100])
async def known(store: Store, fresh_label: str, request: pytest.FixtureRequest) -> Known:
    known = Known(store, fresh_label, request.param)
    await known.make()
    return known


async def test_each_call_counts_as_one(known: Known) -> None:
    before = await known.used()
    for _ in range(3):
        await known.call()
    assert await known.used() == (before + 3 if before else 0)


async def test_changed_policy_is_in_force_for_the_next_call(known: Known) -> None:
    before = await known.used()
    changed = spec_of(known.client_id, "*.example.net")
    await known.clients.change(known.client_id, lambda client: with_policy(client, changed))  # type: ignore[arg-type]
    for _ in range(2):
        assert (await known.call()).hostname_patterns == ("*.example.net",)
    assert await known.used() == (before + 2 if before else 0)


@pytest.mark.parametrize("how", ["revoked", "removed", "another type"])
async def test_token_that_is_good_no_more_is_refused_and_counts_nothing(
    known: Known, how: str
) -> None:
    before = await known.used()
    if how == "removed":
        assert await known.clients.drop(known.client_id)
    else:
        await known.clients.change(known.client_id, revoked)  # type: ignore[arg-type]
    if how == "another type":
        key = keys.client_key(keys.fingerprint(known.client_id))
        await known.store.answers_of_each([(key, [("DEL", key), ("SET", key, "text")])])
    for _ in range(2):
        with pytest.raises(ValueError if how == "another type" else Unauthorized):
            await known.call()
    assert await known.used() == before


async def test_rotated_token_ends_with_its_overlap_and_the_new_one_is_good(known: Known) -> None:
    fresh = new_client_token(known.client_id)
    change = partial(rotated, token=fresh, overlap_seconds=60, now_ms=NOW_MS)
    await known.clients.change(known.client_id, change)  # type: ignore[arg-type]
    for token in (None, fresh, None, fresh):
        await known.call(token)
    known.now_ms += 60_000
    await known.call(fresh)
    with pytest.raises(Unauthorized):
        await known.call()


async def test_text_that_changed_alone_is_seen_too(known: Known) -> None:
    key = keys.client_key(keys.fingerprint(known.client_id))
    ((text,),) = await known.store.answers_of_each([(key, [("HGET", key, "client")])])
    await known.store.set_field(key, "client", text.replace("example.test", "example.org"))
    assert (await known.call()).hostname_patterns == ("*.example.org",)


async def test_rate_is_exact(store: Store, fresh_label: str) -> None:
    known = Known(store, fresh_label, 4)
    await known.make()
    for _ in range(3):
        await known.call()
    with pytest.raises(Overloaded) as refused:
        await known.call()
    assert refused.value.retry_after_ms == 15_000
    known.now_ms += 15_000
    await known.call()
    with pytest.raises(Overloaded):
        await known.call()


async def test_what_was_asked_ahead_may_be_dropped_at_any_time(known: Known) -> None:
    key = keys.client_key(keys.fingerprint(known.client_id))
    for waits in (False, True):
        begun = known.store.begin_hash(key)
        if waits:
            await known.call()
        if begun is not None:
            begun.drop()
    begun = known.store.begin_hash(key)
    assert begun is not None
    found = await known.store.begun_hash(begun)
    assert found is not None
    assert "client" in found
