"""A whole issuance by hand: the calls to the CA, with the challenge put into the real zone."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

import dns.asyncquery
import dns.name
import dns.rcode
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
from tests.lab.pebble import AcmeServer
from tests.lab.process import read_until

ZONE = "example.test"
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

    async def set_url(self, url: str | None, *, key_pem: bytes | None = None) -> None:
        assert self.account is not None
        self.urls.append(url)
        if key_pem in (None, self.account.key_pem):
            self.account = replace(self.account, url=url)

    async def add_next_key(self, key_pem: bytes) -> StoredAccount:
        assert self.account is not None
        if self.account.next_key_pem is None:
            self.account = replace(self.account, next_key_pem=key_pem)
        return self.account

    async def drop_next_key(self, next_key_pem: bytes) -> None:
        assert self.account is not None
        if self.account.next_key_pem == next_key_pem:
            self.account = replace(self.account, next_key_pem=None)

    async def promote_next_key(self, next_key_pem: bytes, url: str) -> None:
        assert self.account is not None
        if self.account.next_key_pem == next_key_pem:
            self.account = StoredAccount(next_key_pem, url)


def settings_for(pebble: AcmeServer, **changes: object) -> AuthoritySettings:
    values: dict[str, object] = {
        "directory_url": pebble.directory_url,
        "ca_bundle": pebble.ca_file,
        "contact": ("ops@example.test",),
        "eab_key_id": None,
        "eab_hmac_key": None,
        "user_agent": "gateway-tests",
        "name": "pebble",
        **changes,
    }
    return AuthoritySettings(**values)  # type: ignore[arg-type]


async def change_txt(bind: BindPair, name: str, value: str, *, present: bool) -> None:
    """Add or delete one TXT value at the primary."""
    key = bind.tsig.key()
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
    return await read_until(read, holds, POLL_LIMIT_SECONDS)


async def validated_order(
    authority: Authority, bind: BindPair, hostname: str, replaces: str | None = None
) -> OrderView:
    """Order `hostname` and have the CA validate it, unless it did before: a `ready` order."""
    order = await authority.new_order(hostname, replaces=replaces)
    if order.status == "ready":
        return order
    (url,) = order.authorization_urls
    authorization = await authority.read_authorization(url)
    assert authorization.challenge_url is not None
    assert authorization.txt_value is not None
    name = f"_acme-challenge.{hostname}"
    await change_txt(bind, name, authorization.txt_value, present=True)
    await authority.answer_challenge(authorization.challenge_url, authorization.key_thumbprint)
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
    replaces: str | None = None,
) -> CheckedCertificate:
    """Have a certificate issued, from the order to the check of what came."""
    key_pem = new_private_key(key_type)
    order = await validated_order(authority, bind, hostname, replaces)
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
