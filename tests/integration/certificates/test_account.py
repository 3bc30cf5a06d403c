"""The account at the real Pebble: made once, found again, bound, refused."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.certificates.accounts import StoredAccount
from gateway.certificates.authority.caller import Caller
from gateway.certificates.authority.faults import Operation
from gateway.certificates.authority.network import Network
from gateway.certificates.authority.signing import load_signer
from gateway.certificates.orders import AccountView, AuthorityFault, FaultKind
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
    await late.new_order(hostname)
    assert store.account == good
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


async def deactivate(pebble: PebbleProcess, store: MemoryAccountStore) -> None:
    """Have the CA deactivate the account (RFC 8555, 7.3.6), which no part of the gateway does."""
    assert store.account is not None
    network = Network(
        user_agent="gateway-tests",
        ca_bundle=pebble.ca_file,
        connections=1,
        monotonic=time.monotonic,
    )
    caller = Caller(
        network,
        pebble.directory_url,
        name="ca",
        now_utc=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
    )
    signer = load_signer(store.account.key_pem, store.account.url)
    await caller.call(
        Operation.UPDATE_ACCOUNT, signer.account_url, b'{"status":"deactivated"}', signer
    )
    network.close()


async def test_account_is_described_by_the_ca(
    each_pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    authority = make_authority(settings_for(each_pebble), store)
    await authority.ensure_account()
    view = await authority.describe_account()
    assert store.account is not None
    assert view.url == store.account.url
    assert (view.status, view.key_type) == ("valid", "ecdsa-p256")
    assert view.contact == ("mailto:ops@example.test",)
    assert view.orders_url is not None
    assert await authority.remembered_account() == AccountView(
        view.url, view.key_type, view.key_thumbprint
    )


async def test_account_that_is_not_registered_is_not_by_being_described(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    authority = make_authority(settings_for(pebble), store)
    with pytest.raises(AuthorityFault) as caught:
        await authority.describe_account()
    assert caught.value.kind is FaultKind.ACCOUNT_MISSING
    assert await authority.remembered_account() is None
    assert store.account is None


async def test_contact_is_changed_and_taken_away(
    each_pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    await make_authority(settings_for(each_pebble), store).ensure_account()
    for contact, urls in (
        (("new@example.test", "mailto:two@example.test"), ("new", "two")),
        ((), ()),
    ):
        changing = make_authority(settings_for(each_pebble, contact=contact), store)
        expected = tuple(f"mailto:{name}@example.test" for name in urls)
        assert (await changing.update_contact()).contact == expected
        assert (await changing.describe_account()).contact == expected


async def test_contact_that_the_ca_rejects_is_refused_and_changes_nothing(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    await make_authority(settings_for(pebble), store).ensure_account()
    changing = make_authority(settings_for(pebble, contact=("tel:+1",)), store)
    with pytest.raises(AuthorityFault) as caught:
        await changing.update_contact()
    assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
    assert (await changing.describe_account()).contact == ("mailto:ops@example.test",)


async def test_deactivated_account_stays_refused_and_no_other_is_made(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    store = MemoryAccountStore()
    authority = make_authority(settings_for(each_pebble), store)
    await authority.ensure_account()
    before = store.account
    await deactivate(each_pebble, store)
    for process in (authority, make_authority(settings_for(each_pebble), store)):
        await process.ensure_account()
        with pytest.raises(AuthorityFault) as caught:
            await process.new_order(hostname)
        assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
        assert "deactivated" in caught.value.detail
    await store.set_url(None)
    with pytest.raises(AuthorityFault) as caught:
        await make_authority(settings_for(each_pebble), store).ensure_account()
    assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
    assert store.account is not None
    assert before is not None
    assert (store.account.key_pem, store.account.next_key_pem) == (before.key_pem, None)


@pytest.mark.parametrize("is_url_known", [True, False])
async def test_deactivated_account_is_replaced_when_told_and_others_notice(
    each_pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str, is_url_known: bool
) -> None:
    store = MemoryAccountStore()
    running = make_authority(settings_for(each_pebble), store)
    await running.ensure_account()
    order = await running.new_order(hostname)
    before = store.account
    assert before is not None
    await deactivate(each_pebble, store)
    if not is_url_known:
        await store.set_url(None)
    view = await make_authority(settings_for(each_pebble), store).replace_account()
    assert view.url != before.url
    after = store.account
    assert after is not None
    assert after == StoredAccount(after.key_pem, view.url)
    assert after.key_pem != before.key_pem
    await running.new_order(f"new.{hostname}")
    with pytest.raises(AuthorityFault) as caught:
        await running.read_order(order.url)
    assert caught.value.kind is FaultKind.GONE


async def test_account_is_not_replaced_while_it_is_valid(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    authority = make_authority(settings_for(pebble), store)
    await authority.ensure_account()
    before = store.account
    with pytest.raises(AuthorityFault) as caught:
        await authority.replace_account()
    assert caught.value.kind is FaultKind.REFUSED
    assert store.account == before


async def test_account_is_replaced_by_the_one_that_a_killed_replacement_made(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store, made = MemoryAccountStore(), MemoryAccountStore()
    for each in (store, made):
        await make_authority(settings_for(pebble), each).ensure_account()
    assert store.account is not None
    assert made.account is not None
    await deactivate(pebble, store)
    store.account = replace(store.account, next_key_pem=made.account.key_pem)
    await make_authority(settings_for(pebble), store).replace_account()
    assert store.account == made.account


async def test_account_is_replaced_by_another_when_the_next_key_is_refused_too(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store, made = MemoryAccountStore(), MemoryAccountStore()
    for each in (store, made):
        await make_authority(settings_for(pebble), each).ensure_account()
        await deactivate(pebble, each)
    assert store.account is not None
    assert made.account is not None
    before = store.account
    store.account = replace(before, next_key_pem=made.account.key_pem)
    await make_authority(settings_for(pebble), store).replace_account()
    assert store.account.key_pem not in (before.key_pem, made.account.key_pem)
    assert (await make_authority(settings_for(pebble), store).describe_account()).status == "valid"
