"""Stocks a lab: clients, and holdings by the hundred thousand in Redis and in the zone.

Responsible for a state that is as true as one that grew: one holding, the *model*, is made by calls
(a record in BIND, a certificate by Pebble). Every other is the model's own document as it lies in
Redis, with another hostname, holder, address and edition, and with the model's private key sealed
anew for it by the gateway's keyring. So each costs what a real one costs; only the name in the
certificate is the model's. Address and owner marker are put into the zone by signed updates.
Questions about renewal come due all over a day, as of certificates that were issued one by one.
Must not: be used on anything but a lab of its own.
Called by `soak` and `calls`.
"""

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from redis import Redis

from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.sealing import Keyring, load_keyring
from gateway.contract.names import Hostname
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.owner import Owner
from gateway.store import keys
from gateway.store.documents import Holder
from gateway.wiring import MARKER_PURPOSE
from tests.bench.stock import (
    ALLOWED,
    APP_ID,
    TTL,
    Stock,
    address,
    client_id,
    suffix,
)
from tests.bench.zones import fill_zones, owner_of
from tests.integration.service.calling import PROVISION, Caller, Ownership, spec
from tests.lab.lab import Lab
from tests.lab.process import wait_until

_DOCUMENTS_AT_ONCE = 500
_DAY_MS = 24 * 3_600_000
_LIMIT_SECONDS = 60.0
_UNSETTLED = ("issuance", "debts", "lease")


@dataclass(frozen=True)
class Stocked:
    """A stock that is there: the clients' tokens by number, how long it took, and Redis' size."""

    stock: Stock
    tokens: tuple[str, ...]
    seconds: float
    redis_bytes: int


def stock_up(lab: Lab, stock: Stock, url: str, *, renewals: int, within_seconds: float) -> Stocked:
    """Make the clients and the holdings; the gateway at `url` has to run.

    `renewals` of them come due within that time.
    """
    began = time.monotonic()
    tokens = provision_clients(url, lab.config.admin_token, stock)
    keyring = load_keyring(lab.config.config_file.with_name("keyring"))
    with Redis.from_url(lab.redis.url, decode_responses=True) as redis:
        before = _memory(redis)
        model = _Model(redis, stock, Caller(url, tokens[0]), keyring)
        others = range(1, stock.holdings)
        for some in _batches(others, _DOCUMENTS_AT_ONCE):
            model.copy_to(some, renewals, within_seconds)
        redis_bytes = _memory(redis) - before
    fill_zones(lab.bind, stock, _markers(keyring))
    return Stocked(stock, tokens, time.monotonic() - began, redis_bytes)


def provision_clients(url: str, admin_token: str, stock: Stock) -> tuple[str, ...]:
    """Make the clients of a stock, without a holding; their tokens by number."""
    admin = Caller(url, admin_token)
    return tuple(_provision(admin, client) for client in range(stock.clients))


def count_renewed(lab: Lab, stock: Stock, renewals: int) -> int:
    """How many of the holdings whose renewal came due have another certificate by now."""
    with Redis.from_url(lab.redis.url, decode_responses=True) as redis:
        hostnames = [Hostname(stock.hostname(number)) for number in range(renewals + 1)]
        stored = [redis.hget(keys.host_key(name), "certificate") for name in hostnames]
    serials = [json.loads(str(text))["serial"] for text in stored if text is not None]
    return sum(serial != serials[0] for serial in serials[1:])


def client_spec(client: int) -> dict[str, object]:
    """The policy of the client of this number."""
    return spec(client_id(client), f"*.{suffix(client)}", allowedDnsRecordAddresses=list(ALLOWED))


def _provision(admin: Caller, client: int) -> str:
    token: str = admin.call(PROVISION, action="ensure", spec=client_spec(client))["apiToken"]
    return token


class _Model:
    """The holding that was made by calls, and copies of it."""

    def __init__(self, redis: Redis, stock: Stock, client: Caller, keyring: Keyring) -> None:
        self._redis = redis
        self._stock = stock
        self._keyring = keyring
        mine = Ownership(client, stock.hostname(0), APP_ID)
        mine.publish(address(0), TTL)
        mine.certificate()
        key = keys.host_key(Hostname(mine.hostname))
        wait_until(
            lambda: not any(redis.hmget(key, _UNSETTLED)),
            "the model's issuance is cleaned up",
            _LIMIT_SECONDS,
        )
        self._fields: dict[str, str] = redis.hgetall(key)  # type: ignore[assignment]
        self._record: dict[str, Any] = json.loads(self._fields["record"])
        self._certificate: dict[str, Any] = json.loads(self._fields["certificate"])
        self._private_key = self._open(owner_of(stock, 0))

    def copy_to(self, numbers: range, renewals: int, within_seconds: float) -> None:
        """Store one document for each number, and enter it in all indices."""
        now_ms = time.time_ns() // 1_000_000
        pipeline = self._redis.pipeline(transaction=False)
        for number in numbers:
            owner = owner_of(self._stock, number)
            certificate = self._certificate_of(owner, number, now_ms)
            if number <= renewals:
                certificate["renew_at_ms"] = now_ms + int(within_seconds * 1000 * number / renewals)
            due_ms = min(certificate["renew_at_ms"], certificate["ask_at_ms"])
            document = self._document(owner, number, certificate)
            # Flat, since a mapping's type leaves none but redis-py's own.
            pairs = [each for pair in document.items() for each in pair]
            pipeline.hset(keys.host_key(owner.hostname), items=pairs)
            bucket = keys.bucket_of(owner.hostname)
            pipeline.zadd(keys.due_key(bucket), {owner.hostname: due_ms})
            pipeline.zadd(keys.names_key(bucket), {owner.hostname: 0})
            index = keys.client_holdings_key(keys.fingerprint(owner.client_id))
            pipeline.zadd(index, {owner.hostname: now_ms})
        pipeline.execute()

    def _document(self, owner: Owner, number: int, certificate: dict[str, Any]) -> dict[str, str]:
        edition = secrets.token_hex(8)
        return {
            **self._fields,
            "version": secrets.token_hex(8),
            "holder": _text({"clientId": owner.client_id, "appId": owner.app_id}),
            "record": _text({**self._record, "value": address(number), "edition": edition}),
            "certificate": _text(certificate),
        }

    def _certificate_of(self, owner: Owner, number: int, now_ms: int) -> dict[str, Any]:
        sealed = self._keyring.seal(
            self._private_key, purpose=KEY_PURPOSE, bound_to=_binding(owner)
        )
        ask_at_ms = now_ms + _DAY_MS * number // self._stock.holdings
        return {
            **self._certificate,
            "sealed_key": sealed,
            "issuance_id": secrets.token_hex(8),
            "ask_at_ms": ask_at_ms,
        }

    def _open(self, owner: Owner) -> bytes:
        sealed = self._certificate["sealed_key"]
        return self._keyring.open(sealed, purpose=KEY_PURPOSE, bound_to=_binding(owner))


def _binding(owner: Owner) -> tuple[str, str, str]:
    return key_binding(Holder(owner.client_id, owner.app_id), owner.hostname)


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _memory(redis: Redis) -> int:
    figures: Any = redis.info("memory")
    return int(figures["used_memory"])


def _markers(keyring: Keyring) -> Markers:
    derived = keyring.derive(MARKER_PURPOSE)
    return Markers([MarkerKey(key_id, key) for key_id, key in derived])


def _batches(numbers: range, size: int) -> Iterator[range]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]
