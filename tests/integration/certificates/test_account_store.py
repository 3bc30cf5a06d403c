"""The stored account on the real Redis: sealed, shared, changed by comparing first."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
import structlog.testing

from gateway.certificates.accounts import SEALED_FIELDS, RedisAccountStore, StoredAccount
from gateway.certificates.authority import Authority
from gateway.certificates.orders import AuthorityFault, FaultKind
from gateway.certificates.sealing import KeyMissing, Keyring, SealBroken
from gateway.store import keys
from gateway.store.connection import Store
from tests.integration.certificates.conftest import MakeAuthority
from tests.integration.certificates.issuing import settings_for
from tests.integration.certificates.scripted import scripted_ca, scripted_settings
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import RedisProcess

OLD = ("old", bytes(range(32)))
NEW = ("new", bytes(range(32, 64)))
KEYRING = Keyring([OLD])
URL = "https://ca.example.test/account/1"
OTHER_URL = "https://ca.example.test/account/2"


@pytest.fixture
async def redis(redis_server: RedisProcess) -> AsyncIterator[Store]:
    store = Store(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
def directory() -> str:
    """A directory that no other test uses."""
    return f"https://{secrets.token_hex(6)}.example.test/dir"


@pytest.fixture
def accounts(redis: Store, directory: str) -> RedisAccountStore:
    return RedisAccountStore(redis, KEYRING, directory)


async def fields(redis: Store, directory: str) -> dict[str, str]:
    return await redis.fields(keys.account_key(directory))


async def test_account_is_none_before_a_key_is_stored(accounts: RedisAccountStore) -> None:
    assert await accounts.load() is None
    await accounts.set_url(URL)
    await accounts.drop_next_key(b"none")
    await accounts.promote_next_key(b"none", URL)
    with pytest.raises(LookupError):
        await accounts.add_next_key(b"next")
    assert await accounts.load() is None


async def test_first_key_wins(accounts: RedisAccountStore) -> None:
    added = await asyncio.gather(*(accounts.add_key(f"key {one}".encode()) for one in range(8)))
    assert len({one.key_pem for one in added}) == 1
    assert await accounts.load() == added[0]


async def test_keys_are_stored_sealed(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    await accounts.add_key(b"SECRET one")
    account = await accounts.add_next_key(b"SECRET two")
    found = await fields(redis, directory)
    assert set(SEALED_FIELDS) <= set(found)
    assert "SECRET" not in repr(found)
    assert "SECRET" not in repr(account)


async def test_sealed_key_of_another_directory_does_not_open(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    other = RedisAccountStore(redis, KEYRING, f"{directory}/other")
    await other.add_key(b"key")
    stolen = (await fields(redis, f"{directory}/other"))["sealedKey"]
    await redis.set_field(keys.account_key(directory), "sealedKey", stolen)
    assert await accounts.load() is None


async def test_url_is_remembered_and_forgotten(accounts: RedisAccountStore) -> None:
    await accounts.add_key(b"key")
    await accounts.set_url(URL)
    assert await accounts.load() == StoredAccount(b"key", URL)
    await accounts.set_url(None)
    assert await accounts.load() == StoredAccount(b"key", None)


async def test_url_of_a_key_that_was_replaced_is_not_remembered(
    accounts: RedisAccountStore,
) -> None:
    await accounts.add_key(b"key")
    await accounts.add_next_key(b"next")
    await accounts.promote_next_key(b"next", URL)
    await accounts.set_url(OTHER_URL, key_pem=b"key")
    assert await accounts.load() == StoredAccount(b"next", URL)
    await accounts.set_url(OTHER_URL, key_pem=b"next")
    assert await accounts.load() == StoredAccount(b"next", OTHER_URL)


async def test_next_key_that_is_there_stays(accounts: RedisAccountStore) -> None:
    await accounts.add_key(b"key")
    added = await asyncio.gather(*(accounts.add_next_key(bytes([one])) for one in range(8)))
    assert len({one.next_key_pem for one in added}) == 1
    assert (await accounts.load()) == added[0]


async def test_next_key_takes_the_place_of_the_key_once(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    await accounts.add_key(b"key")
    await accounts.add_next_key(b"next")
    await accounts.promote_next_key(b"next", URL)
    await accounts.add_next_key(b"third")
    # Another process that is late with the same: it must not drop or undo what came after.
    await accounts.promote_next_key(b"next", OTHER_URL)
    await accounts.drop_next_key(b"next")
    assert await accounts.load() == StoredAccount(b"next", URL, b"third")
    await accounts.drop_next_key(b"third")
    assert await accounts.load() == StoredAccount(b"next", URL)
    assert "sealedNextKey" not in await fields(redis, directory)


async def test_account_of_an_earlier_release_is_understood(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    sealed = KEYRING.seal(b"key", purpose="acme-account-key", bound_to=(directory,))
    for name, text in (("sealedKey", sealed), ("url", URL)):
        await redis.set_field(keys.account_key(directory), name, text)
    assert await accounts.load() == StoredAccount(b"key", URL)
    await accounts.add_next_key(b"next")
    await accounts.promote_next_key(b"next", URL)
    assert await accounts.load() == StoredAccount(b"next", URL)


async def test_key_that_was_altered_is_replaced_with_a_warning(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    await accounts.add_key(b"key")
    await accounts.set_url(URL)
    await accounts.add_next_key(b"next")
    sealed = (await fields(redis, directory))["sealedKey"]
    place = len(sealed) - 10
    altered = sealed[:place] + ("A" if sealed[place] != "A" else "B") + sealed[place + 1 :]
    await redis.set_field(keys.account_key(directory), "sealedKey", altered)
    with structlog.testing.capture_logs() as lines:
        assert await accounts.load() is None
    assert [(line["log_level"], line["directory"]) for line in lines] == [("warning", directory)]
    assert altered not in repr(lines)
    assert await accounts.add_key(b"another") == StoredAccount(b"another", None)


async def test_next_key_that_was_altered_is_replaced(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    await accounts.add_key(b"key")
    await redis.set_field(keys.account_key(directory), "sealedNextKey", "v1:old:AAAA")
    assert await accounts.load() == StoredAccount(b"key", None)
    assert (await accounts.add_next_key(b"next")).next_key_pem == b"next"


async def test_key_of_another_keyring_is_not_replaced(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    stranger = RedisAccountStore(redis, Keyring([NEW]), directory)
    await accounts.add_key(b"key")
    with pytest.raises(KeyMissing):
        await stranger.load()
    with pytest.raises(KeyMissing):
        await stranger.add_key(b"another")
    assert await accounts.load() == StoredAccount(b"key", None)


async def test_keys_are_moved_to_the_first_key_of_the_keyring(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    moving = RedisAccountStore(redis, Keyring([NEW, OLD]), directory)
    assert await moving.reseal() == 0
    await accounts.add_key(b"key")
    await accounts.add_next_key(b"next")
    assert await moving.reseal() == 2
    assert await moving.reseal() == 0
    alone = RedisAccountStore(redis, Keyring([NEW]), directory)
    assert await alone.load() == StoredAccount(b"key", None, b"next")


async def test_key_that_does_not_open_is_not_moved_and_does_not_hold_up_the_other(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    await accounts.add_key(b"key")
    await redis.set_field(keys.account_key(directory), "sealedNextKey", "v1:lost:AAAA")
    moving = RedisAccountStore(redis, Keyring([NEW, OLD]), directory)
    with pytest.raises(SealBroken):
        await moving.reseal()
    assert (await fields(redis, directory))["sealedKey"].startswith("v1:new:")


async def test_authority_refuses_an_account_whose_key_is_of_another_keyring(
    accounts: RedisAccountStore, redis: Store, directory: str
) -> None:
    await accounts.add_key(b"key")
    stranger = RedisAccountStore(redis, Keyring([NEW]), directory)
    with scripted_ca([]) as ca:
        authority = Authority(scripted_settings(ca), stranger)
        for call in (authority.ensure_account, authority.describe_account):
            with pytest.raises(AuthorityFault) as caught:
                await call()
            assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
            assert "keyring" in caught.value.detail
        await authority.close()
    assert await accounts.load() == StoredAccount(b"key", None)


async def test_authority_registers_anew_when_its_key_was_altered(
    accounts: RedisAccountStore,
    redis: Store,
    directory: str,
    pebble: PebbleProcess,
    make_authority: MakeAuthority,
) -> None:
    await make_authority(settings_for(pebble), accounts).ensure_account()
    before = await accounts.load()
    assert before is not None
    await redis.set_field(keys.account_key(directory), "sealedKey", "v1:old:AAAA")
    authority = make_authority(settings_for(pebble), accounts)
    await authority.ensure_account()
    view = await authority.describe_account()
    assert view.status == "valid"
    assert view.url != before.url
