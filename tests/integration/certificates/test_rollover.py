"""Account keys that change: at the real Pebble, under several processes, killed in between."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.certificates.accounts import StoredAccount
from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.orders import AuthorityFault, FaultKind
from gateway.store.connection import StoreUnavailable
from tests.integration.certificates.conftest import MakeAuthority
from tests.integration.certificates.issuing import (
    MemoryAccountStore,
    change_txt,
    issue,
    settings_for,
    until,
)
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble


class DyingStore(MemoryAccountStore):
    """A fake in place of a process that is killed between the CA's answer and Redis."""

    is_deadly = True

    async def promote_next_key(self, next_key_pem: bytes, url: str) -> None:
        if self.is_deadly:
            raise StoreUnavailable("killed here")
        await super().promote_next_key(next_key_pem, url)


def stored(store: MemoryAccountStore) -> StoredAccount:
    assert store.account is not None
    return store.account


async def registered(
    pebble: PebbleProcess, make_authority: MakeAuthority, store: MemoryAccountStore
) -> StoredAccount:
    await make_authority(settings_for(pebble), store).ensure_account()
    return stored(store)


async def half_rolled_over(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> tuple[MemoryAccountStore, StoredAccount]:
    """A store left behind by a process that died after the CA had taken the new key."""
    store = DyingStore()
    before = await registered(pebble, make_authority, store)
    with pytest.raises(StoreUnavailable):
        await make_authority(settings_for(pebble), store).roll_key_over()
    left = stored(store)
    assert (left.key_pem, left.url) == (before.key_pem, before.url)
    assert left.next_key_pem is not None
    return MemoryAccountStore(left), left


async def test_account_keeps_its_url_and_its_orders_under_a_new_key(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    authority = make_authority(settings_for(each_pebble), store)
    await authority.ensure_account()
    before, order = stored(store), await authority.new_order(hostname)
    described = await authority.describe_account()
    view = await authority.roll_key_over()
    after = stored(store)
    assert after.key_pem != before.key_pem
    assert (after.url, after.next_key_pem) == (before.url, None)
    assert (view.url, view.key_type) == (before.url, "ecdsa-p256")
    assert view.key_thumbprint != described.key_thumbprint
    assert (await authority.describe_account()).key_thumbprint == view.key_thumbprint
    assert (await authority.read_order(order.url)).status == "pending"


async def test_former_key_is_a_stranger_after_a_rollover(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    before = await registered(each_pebble, make_authority, store)
    await make_authority(settings_for(each_pebble), store).roll_key_over()
    thief = make_authority(settings_for(each_pebble), MemoryAccountStore(before))
    with pytest.raises(AuthorityFault) as caught:
        await thief.new_order(hostname)
    # As good as away: whoever signs so is to be told, and its request was never looked at.
    assert caught.value.kind is FaultKind.SERVER_ERROR
    assert "JWS" in caught.value.detail


async def test_other_process_goes_on_after_a_rollover(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, bind: BindPair, hostname: str
) -> None:
    store = MemoryAccountStore()
    first, second = (make_authority(settings_for(each_pebble), store) for _ in range(2))
    await first.ensure_account()
    order = await second.new_order(hostname)
    for _ in range(2):
        await first.roll_key_over()
        assert (await second.read_order(order.url)).status == "pending"
    await first.roll_key_over()
    await issue(second, bind, f"other.{hostname}")


async def test_many_calls_at_once_go_on_after_a_rollover(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    first, second = (make_authority(settings_for(each_pebble), store) for _ in range(2))
    await first.ensure_account()
    order = await second.new_order(hostname)
    calls = [second.read_order(order.url) for _ in range(12)]
    await asyncio.gather(first.roll_key_over(), *calls)
    assert (await second.read_order(order.url)).status == "pending"


async def test_rollovers_at_once_end_with_one_key(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    before = await registered(each_pebble, make_authority, store)
    authorities = [make_authority(settings_for(each_pebble), store) for _ in range(2)]
    views = await asyncio.gather(*(one.roll_key_over() for one in authorities))
    assert views[0] == views[1]
    assert stored(store).key_pem != before.key_pem
    assert stored(store).next_key_pem is None
    for authority in authorities:
        await authority.new_order(hostname)


async def test_challenge_is_stale_after_a_rollover_and_is_answered_anew(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, bind: BindPair, hostname: str
) -> None:
    store = MemoryAccountStore()
    first, second = (make_authority(settings_for(each_pebble), store) for _ in range(2))
    await first.ensure_account()
    order = await second.new_order(hostname)
    (url,) = order.authorization_urls
    before = await second.read_authorization(url)
    assert before.challenge_url is not None
    await first.roll_key_over()
    for _ in range(2):
        with pytest.raises(AuthorityFault) as caught:
            await second.answer_challenge(before.challenge_url, before.key_thumbprint)
        assert caught.value.kind is FaultKind.STALE_CHALLENGE
    after = await second.read_authorization(url)
    assert after.status == "pending"
    assert after.key_thumbprint != before.key_thumbprint
    assert after.txt_value != before.txt_value
    assert after.txt_value is not None
    await change_txt(bind, f"_acme-challenge.{hostname}", after.txt_value, present=True)
    await second.answer_challenge(before.challenge_url, after.key_thumbprint)
    done = await until(lambda: second.read_order(order.url), lambda one: one.status != "pending")
    await change_txt(bind, f"_acme-challenge.{hostname}", after.txt_value, present=False)
    assert done.status == "ready"


async def test_running_process_mends_a_rollover_that_was_killed(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = DyingStore()
    running = make_authority(settings_for(each_pebble), store)
    await running.ensure_account()
    order = await running.new_order(hostname)
    with pytest.raises(StoreUnavailable):
        await make_authority(settings_for(each_pebble), store).roll_key_over()
    store.is_deadly = False
    next_key_pem = stored(store).next_key_pem
    assert (await running.read_order(order.url)).status == "pending"
    assert stored(store) == StoredAccount(next_key_pem or b"", stored(store).url)


async def test_new_process_mends_a_rollover_that_was_killed(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store, left = await half_rolled_over(each_pebble, make_authority)
    authority = make_authority(settings_for(each_pebble), store)
    await authority.ensure_account()
    await authority.new_order(hostname)
    assert stored(store) == StoredAccount(left.next_key_pem or b"", left.url)


async def test_rollover_that_was_killed_is_ended_by_the_next_one(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store, left = await half_rolled_over(each_pebble, make_authority)
    authority = make_authority(settings_for(each_pebble), store)
    await authority.roll_key_over()
    assert stored(store) == StoredAccount(left.next_key_pem or b"", left.url)
    await authority.new_order(hostname)


async def test_account_is_found_when_its_url_was_forgotten_in_a_rollover_that_was_killed(
    each_pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store, left = await half_rolled_over(each_pebble, make_authority)
    store.account = replace(left, url=None)
    await make_authority(settings_for(each_pebble), store).ensure_account()
    assert stored(store) == StoredAccount(left.next_key_pem or b"", left.url)


async def test_key_that_the_ca_never_heard_of_is_no_hindrance_and_is_used_next(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    before = await registered(each_pebble, make_authority, store)
    next_key_pem = new_private_key(KeyType.ECDSA_P256)
    store.account = replace(before, next_key_pem=next_key_pem)
    authority = make_authority(settings_for(each_pebble), store)
    order = await authority.new_order(hostname)
    # A refusal that has nothing to do with the key: the store's next key is not taken for it.
    with pytest.raises(AuthorityFault) as caught:
        await authority.read_authorization(order.finalize_url)
    assert caught.value.kind is not FaultKind.ACCOUNT_MISSING
    assert stored(store).key_pem == before.key_pem
    await authority.roll_key_over()
    assert stored(store) == StoredAccount(next_key_pem, before.url)


async def test_key_of_another_account_is_dropped_and_the_next_rollover_succeeds(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    other = await registered(each_pebble, make_authority, MemoryAccountStore())
    store = MemoryAccountStore()
    before = await registered(each_pebble, make_authority, store)
    store.account = replace(before, next_key_pem=other.key_pem)
    authority = make_authority(settings_for(each_pebble), store)
    with pytest.raises(AuthorityFault) as caught:
        await authority.roll_key_over()
    assert caught.value.kind is FaultKind.REFUSED
    assert "another account" in caught.value.detail
    assert stored(store) == before
    await authority.new_order(hostname)
    await authority.roll_key_over()
    assert stored(store).url == before.url
    assert stored(store).key_pem not in (before.key_pem, other.key_pem)


async def test_account_is_registered_anew_for_a_rollover_when_the_ca_has_forgotten_it(
    tmp_path: Path, bind: BindPair, make_authority: MakeAuthority
) -> None:
    pebble = start_pebble(tmp_path, bind.primary)
    try:
        store = MemoryAccountStore()
        before = await registered(pebble, make_authority, store)
        pebble.stop()
        pebble.start()
        authority = make_authority(settings_for(pebble), store)
        view = await authority.roll_key_over()
        assert stored(store).key_pem != before.key_pem
        assert stored(store) == StoredAccount(stored(store).key_pem, view.url)
        assert (await authority.describe_account()).key_thumbprint == view.key_thumbprint
        pebble.stop()
        pebble.start()
        assert (await authority.update_contact()).contact == ("mailto:ops@example.test",)
    finally:
        pebble.stop()
