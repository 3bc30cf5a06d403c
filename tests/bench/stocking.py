"""Stocks a lab: clients, and holdings by the hundred thousand in Redis and in the zone.

Responsible for a state that is as true as one that grew: one holding, the *model*, is made by calls
(a record in BIND, a certificate by Pebble). Every other is the model's own document as it lies in
Redis, with another hostname, holder, address and edition, and with the model's private key sealed
anew for it by the gateway's keyring (`copying`). So each costs what a real one costs; only the name
in the certificate is the model's. Address and owner marker are in the zone's file (`zones`).
Questions about renewal come due all over a day, as of certificates that were issued one by one.
Redis keeps no log meanwhile, and writes a whole one before anything is measured.
Must not: be used on anything but a new lab of its own.
Called by the benches.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from redis import Redis

from gateway.certificates.binding import KEY_PURPOSE
from gateway.certificates.sealing import Keyring, load_keyring
from gateway.contract.names import Hostname
from gateway.dns.marker import MarkerKey, Markers
from gateway.store import keys
from gateway.wiring import MARKER_PURPOSE
from tests.bench.copying import Model, binding_of, copy_to
from tests.bench.forking import forked_pool
from tests.bench.stock import (
    ALLOWED,
    APP_ID,
    TTL,
    Stock,
    address,
    client_id,
    suffix,
)
from tests.bench.zones import load_zones, owner_of
from tests.integration.service.calling import PROVISION, Caller, Ownership, spec
from tests.lab.lab import Lab
from tests.lab.process import wait_until

_PROCESSES = 2
_LIMIT_SECONDS = 60.0
_LOG_LIMIT_SECONDS = 600.0
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
    keyring_file = lab.config.config_file.with_name("keyring")
    keyring = load_keyring(keyring_file)
    load_zones(lab, stock, _markers(keyring))
    tokens = provision_clients(url, lab.config.admin_token, stock)
    with Redis.from_url(lab.redis.url, decode_responses=True) as redis:
        before = _memory(redis)
        fields = _model(redis, stock, Caller(url, tokens[0]))
        sealed = json.loads(fields["certificate"])["sealed_key"]
        private_key = keyring.open(
            sealed, purpose=KEY_PURPOSE, bound_to=binding_of(owner_of(stock, 0))
        )
        model = Model(fields, private_key, keyring_file, renewals, within_seconds)
        redis.config_set("appendonly", "no")
        _copy_all(int(redis.connection_pool.connection_kwargs["port"]), stock, model)
        redis_bytes = _memory(redis) - before
        redis.config_set("appendonly", "yes")
        wait_until(lambda: _is_logged(redis), "Redis has written its log anew", _LOG_LIMIT_SECONDS)
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


def _model(redis: Redis, stock: Stock, client: Caller) -> dict[str, str]:
    """Make the first holding by calls; its document, when nothing is left to be done for it."""
    mine = Ownership(client, stock.hostname(0), APP_ID)
    mine.publish(address(0), TTL)
    mine.certificate()
    key = keys.host_key(Hostname(mine.hostname))
    wait_until(
        lambda: not any(redis.hmget(key, _UNSETTLED)),
        "the model's issuance is cleaned up",
        _LIMIT_SECONDS,
    )
    fields: dict[str, str] = redis.hgetall(key)  # type: ignore[assignment]
    return fields


def _copy_all(port: int, stock: Stock, model: Model) -> None:
    parts = [range(1, stock.holdings)[part::_PROCESSES] for part in range(_PROCESSES)]
    with forked_pool(_PROCESSES) as pool:
        pool.starmap(copy_to, [(port, stock, model, part) for part in parts])


def _is_logged(redis: Redis) -> bool:
    seen: Any = redis.info("persistence")
    under_way = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
    return bool(seen["aof_enabled"]) and not any(seen[name] for name in under_way)


def _memory(redis: Redis) -> int:
    figures: Any = redis.info("memory")
    return int(figures["used_memory"])


def _markers(keyring: Keyring) -> Markers:
    derived = keyring.derive(MARKER_PURPOSE)
    return Markers([MarkerKey(key_id, key) for key_id, key in derived])
