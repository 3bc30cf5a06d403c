"""The account at the real Pebble: made once, found again, bound, refused."""

import asyncio
from pathlib import Path

import pytest

from gateway.certificates.accounts import StoredAccount
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.integration.certificates.conftest import MakeAuthority
from tests.integration.certificates.issuing import (
    MemoryAccountStore,
    issue,
    settings_for,
)
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble


async def test_account_is_the_same_for_a_second_process(
    pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    first, second = (make_authority(settings_for(pebble), store) for _ in range(2))
    await first.ensure_account()
    await first.ensure_account()
    await second.ensure_account()
    assert store.account is not None
    assert store.urls == [store.account.url]
    order = await first.new_order(hostname)
    assert (await second.read_order(order.url)).status == "pending"


async def test_account_is_found_again_when_its_url_was_lost(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    await make_authority(settings_for(pebble), store).ensure_account()
    assert store.account is not None
    again = MemoryAccountStore(StoredAccount(store.account.key_pem, None))
    await make_authority(settings_for(pebble), again).ensure_account()
    assert again.account == store.account


async def test_account_is_one_when_many_ask_for_it_at_once(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    authorities = [make_authority(settings_for(pebble), store) for _ in range(3)]
    await asyncio.gather(*(one.ensure_account() for one in authorities * 4))
    assert len(set(store.urls)) == 1


async def test_call_without_an_account_says_that_it_is_missing(
    pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    with pytest.raises(AuthorityFault) as caught:
        await make_authority(settings_for(pebble)).new_order(hostname)
    assert caught.value.kind is FaultKind.ACCOUNT_MISSING


async def test_account_is_registered_anew_when_the_ca_has_forgotten_it(
    tmp_path: Path, bind: BindPair, make_authority: MakeAuthority, hostname: str
) -> None:
    pebble = start_pebble(tmp_path, bind.primary)
    try:
        store = MemoryAccountStore()
        authority = make_authority(settings_for(pebble), store)
        await authority.ensure_account()
        order = await authority.new_order(hostname)
        assert store.account is not None
        key_pem = store.account.key_pem
        pebble.stop()
        pebble.start()
        with pytest.raises(AuthorityFault) as caught:
            await authority.read_order(order.url)
        assert caught.value.kind is FaultKind.ACCOUNT_MISSING
        assert store.account == StoredAccount(key_pem, None)
        await authority.ensure_account()
        with pytest.raises(AuthorityFault) as caught:
            await authority.read_order(order.url)
        assert caught.value.kind is FaultKind.GONE
        await issue(authority, bind, hostname)
        assert store.account.key_pem == key_pem
    finally:
        pebble.stop()


async def test_account_that_another_process_registered_anew_is_taken_over(
    pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    await make_authority(settings_for(pebble), store).ensure_account()
    assert store.account is not None
    good = store.account
    store.account = StoredAccount(good.key_pem, f"{good.url}999")
    late = make_authority(settings_for(pebble), store)
    await late.ensure_account()
    store.account = good
    store.urls.clear()
    with pytest.raises(AuthorityFault) as caught:
        await late.new_order(hostname)
    assert caught.value.kind is FaultKind.ACCOUNT_MISSING
    await late.ensure_account()
    await late.new_order(hostname)
    assert store.urls == []


EAB_KEY = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"


@pytest.mark.parametrize(
    ("key_id", "hmac_key", "is_accepted"),
    [
        ("kid-1", EAB_KEY, True),
        ("kid-1", EAB_KEY.swapcase(), False),
        ("kid-2", EAB_KEY, False),
        (None, None, False),
    ],
)
async def test_account_is_bound_to_an_external_one(
    tmp_path: Path,
    bind: BindPair,
    make_authority: MakeAuthority,
    key_id: str | None,
    hmac_key: str | None,
    is_accepted: bool,
) -> None:
    required = {
        "externalAccountBindingRequired": True,
        "externalAccountMACKeys": {"kid-1": EAB_KEY},
    }
    pebble = start_pebble(tmp_path, bind.primary, settings=required)
    try:
        settings = settings_for(pebble, eab_key_id=key_id, eab_hmac_key=hmac_key)
        assert EAB_KEY not in repr(settings)
        authority = make_authority(settings)
        if is_accepted:
            await authority.ensure_account()
            return
        with pytest.raises(AuthorityFault) as caught:
            await authority.ensure_account()
        assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
        assert caught.value.detail
    finally:
        pebble.stop()


async def test_account_is_refused_when_the_ca_rejects_its_contact(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    with pytest.raises(AuthorityFault) as caught:
        await make_authority(settings_for(pebble, contact=("tel:+1",))).ensure_account()
    assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
