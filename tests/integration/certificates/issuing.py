"""A whole issuance by hand: the calls to the CA, with the challenge put into the real zone."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import dns.asyncquery
import dns.name
import dns.rcode
import dns.tsig
import dns.update

from gateway.certificates.accounts import StoredAccount
from gateway.certificates.authority import Authority, AuthoritySettings
from gateway.certificates.keys import (
    CheckedCertificate,
    KeyType,
    check_certificate,
    csr_for,
    new_private_key,
)
from gateway.certificates.orders import OrderView
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess

ZONE = "example.test"
POLL_SECONDS = 0.02
POLL_LIMIT_SECONDS = 60

_T = TypeVar("_T")


class MemoryAccountStore:
    """An account store for one test; counts what is written to it."""

    def __init__(self, account: StoredAccount | None = None) -> None:
        self.account = account
        self.urls: list[str | None] = []

    async def load(self) -> StoredAccount | None:
        return self.account

    async def add_key(self, key_pem: bytes) -> StoredAccount:
        if self.account is None:
            self.account = StoredAccount(key_pem, None)
        return self.account

    async def set_url(self, url: str | None) -> None:
        assert self.account is not None
        self.urls.append(url)
        self.account = StoredAccount(self.account.key_pem, url)


def settings_for(pebble: PebbleProcess, **changes: object) -> AuthoritySettings:
    values: dict[str, object] = {
        "directory_url": pebble.directory_url,
        "ca_bundle": pebble.ca_file,
        "contact": ("ops@example.test",),
        "eab_key_id": None,
        "eab_hmac_key": None,
        "user_agent": "gateway-tests",
        **changes,
    }
    return AuthoritySettings(**values)  # type: ignore[arg-type]


async def change_txt(bind: BindPair, name: str, value: str, *, present: bool) -> None:
    """Add or delete one TXT value at the primary."""
    key = dns.tsig.Key(bind.tsig.name, bind.tsig.secret_base64, bind.tsig.algorithm)
    update = dns.update.UpdateMessage(ZONE, keyring={key.name: key})
    owner = dns.name.from_text(f"{name}.")
    if present:
        update.add(owner, 60, "TXT", value)
    else:
        update.delete(owner, "TXT", value)
    host, port = bind.primary
    answer = await dns.asyncquery.tcp(update, host, timeout=10, port=port)
    assert answer.rcode() == dns.rcode.NOERROR


async def until(read: Callable[[], Awaitable[_T]], holds: Callable[[_T], bool]) -> _T:
    """Read again and again until what was read holds."""
    async with asyncio.timeout(POLL_LIMIT_SECONDS):
        while True:
            value = await read()
            if holds(value):
                return value
            await asyncio.sleep(POLL_SECONDS)


async def validated_order(authority: Authority, bind: BindPair, hostname: str) -> OrderView:
    """Order `hostname` and have the CA validate it: a `ready` order."""
    order = await authority.new_order(hostname)
    (url,) = order.authorization_urls
    authorization = await authority.read_authorization(url)
    assert authorization.challenge_url is not None
    assert authorization.txt_value is not None
    name = f"_acme-challenge.{hostname}"
    await change_txt(bind, name, authorization.txt_value, present=True)
    await authority.answer_challenge(authorization.challenge_url)
    order = await until(
        lambda: authority.read_order(order.url), lambda order: order.status != "pending"
    )
    await change_txt(bind, name, authorization.txt_value, present=False)
    return order


async def issue(
    authority: Authority,
    bind: BindPair,
    hostname: str,
    key_type: KeyType = KeyType.ECDSA_P256,
) -> CheckedCertificate:
    """Have a certificate issued, from the order to the check of what came."""
    key_pem = new_private_key(key_type)
    order = await validated_order(authority, bind, hostname)
    assert order.status == "ready"
    finalized = await authority.finalize(order.finalize_url, csr_for(key_pem, hostname))
    assert finalized.finalize_url == order.finalize_url
    done = await until(
        lambda: authority.read_order(order.url), lambda order: order.status != "processing"
    )
    assert done.status == "valid"
    assert done.certificate_url is not None
    chain_pem = await authority.fetch_certificate(done.certificate_url)
    return check_certificate(chain_pem, key_pem, hostname, datetime.now(UTC))
