"""A gateway with two authorities in order of preference, and a Redis of its own.

Responsible for starting the parts, and for looking at and moving what Redis holds of a hostname
where waiting for it would take days.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from cryptography import x509

from gateway.store.keys import bucket_of, due_key, host_key
from tests.integration.service.calling import Ownership, World
from tests.lab.bind import BindPair
from tests.lab.gateway import (
    GatewayConfig,
    GatewayProcess,
    start_gateway,
    write_gateway_config,
)
from tests.lab.pebble import AcmeServer, PebbleProcess
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, start_redis

NO_BUDGET = {
    "orders_per_3_hours": 0,
    "certificates_per_domain_per_week": 0,
    "certificates_per_hostname_per_week": 0,
    "failed_validations_per_hour": 0,
}


@dataclass(frozen=True)
class Duo:
    """The running parts. `world` makes clients of the gateway; `config` is what started it."""

    config: GatewayConfig
    gateway: GatewayProcess
    redis: RedisProcess
    world: World

    def document(self, hostname: str) -> dict[str, Any]:
        """What Redis holds of a hostname, field by field, decoded."""
        with self._connection() as connection:
            fields = connection.hgetall(host_key(hostname))
        return {
            name: value if name == "version" else json.loads(value)
            for name, value in fields.items()
        }

    def certificate(self, hostname: str) -> dict[str, Any]:
        """The certificate as it is stored."""
        stored: dict[str, Any] = self.document(hostname)["certificate"]
        return stored

    def wait_until_at_rest(self, hostname: str) -> None:
        """Wait until nothing is under way and nothing owed."""

        def is_at_rest() -> bool:
            fields = self.document(hostname)
            return not fields.keys() & {"issuance", "debts", "lease"}

        wait_until(is_at_rest, f"{hostname} is at rest")

    def change_certificate(
        self, hostname: str, change: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        """Store a certificate with other times, and make the worker look at it at once."""
        self.wait_until_at_rest(hostname)
        self._change(hostname, "certificate", change)

    def renew_now(self, hostname: str) -> None:
        """Make a certificate due for its renewal, its share of the lifetime being over."""
        self.change_certificate(hostname, lambda held: {**held, "renew_at_ms": 1, "share_at_ms": 1})

    def ask_now(self, hostname: str) -> None:
        """Have a certificate's CA asked at once when to renew it; returns when it was."""
        self.change_certificate(hostname, lambda held: {**held, "ask_at_ms": 1})
        wait_until(lambda: self.certificate(hostname)["ask_at_ms"] != 1, "the CA was asked")

    def issuance(self, hostname: str) -> dict[str, Any]:
        """The issuance under way as it is stored; empty when there is none."""
        stored: dict[str, Any] = self.document(hostname).get("issuance", {})
        return stored

    def hurry(self, hostname: str) -> None:
        """Have an issuance that rests go on now, unless it has ended meanwhile."""
        with suppress(KeyError):
            self._change(hostname, "issuance", lambda issuance: {**issuance, "due_at_ms": 1})

    def expire(self, hostname: str) -> None:
        """Have a certificate expired, as far as the gateway knows."""
        self._change(hostname, "certificate", lambda held: {**held, "valid_until_ms": 1})

    def wait_until_looked_at(self, hostname: str) -> None:
        """Wait until the worker has found nothing more to do now for a hostname."""

        def is_done() -> bool:
            with self._connection() as connection:
                due_ms = connection.zscore(due_key(bucket_of(hostname)), hostname)
            return due_ms != 0 and "lease" not in self.document(hostname)

        wait_until(is_done, f"the worker has looked at {hostname}")

    def debt(self, hostname: str) -> dict[str, Any]:
        """The one debt of a hostname as it is stored."""
        stored: list[dict[str, Any]] = self.document(hostname)["debts"]
        assert len(stored) == 1
        return stored[0]

    def change_debt(self, hostname: str, changes: Mapping[str, object]) -> None:
        """Store the one debt changed, and have the worker look at it now."""
        wait_until(lambda: "lease" not in self.document(hostname), f"{hostname} rests")
        with self._connection() as connection:
            changed = json.dumps([{**self.debt(hostname), **changes}])
            connection.hset(
                host_key(hostname), mapping={"debts": changed, "version": "changed by hand"}
            )
            connection.zadd(due_key(bucket_of(hostname)), {hostname: 0})

    def wait_until_renewed(self, mine: Ownership, serial: str) -> dict[str, Any]:
        """Wait for another certificate than the one of that serial; the stored form."""
        wait_until(
            lambda: self.certificate(mine.hostname)["serial"] != serial,
            f"{mine.hostname} is renewed",
        )
        return self.certificate(mine.hostname)

    def forget_ledgers(self) -> None:
        """As if nothing had been asked of any authority yet."""
        with self._connection() as connection:
            for key in connection.scan_iter(match="gw:{a*"):
                connection.delete(key)

    def _change(self, hostname: str, field: str, change: Callable[[Any], Any]) -> None:
        """Store another value in a document that nobody works on, and have it looked at at once."""
        wait_until(lambda: "lease" not in self.document(hostname), f"{hostname} rests")
        changed = json.dumps(change(self.document(hostname)[field]))
        with self._connection() as connection:
            connection.hset(
                host_key(hostname), mapping={field: changed, "version": "changed by hand"}
            )
            connection.zadd(due_key(bucket_of(hostname)), {hostname: 0})

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with redis.Redis.from_url(self.redis.url, decode_responses=True) as connection:
            yield connection


@contextmanager
def running_duo(
    folder: Path,
    bind: BindPair,
    first: AcmeServer,
    second: AcmeServer | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Duo]:
    """A gateway for `first` and `second`; `environ` changes its settings further."""
    server = start_redis(_made(folder / "redis"))
    try:
        config = write_gateway_config(folder / "gateway", bind, server.url, first)
        more = {"GATEWAY_ACME__0__NAME": "first", **(environ or {})}
        if second is not None:
            more["GATEWAY_ACME__1__NAME"] = "second"
            more["GATEWAY_ACME__1__DIRECTORY"] = second.directory_url
            more["GATEWAY_ACME__1__CA_BUNDLE"] = str(second.ca_file)
            for figure, count in NO_BUDGET.items():
                more[f"GATEWAY_ACME__1__BUDGET__{figure.upper()}"] = str(count)
        gateway = start_gateway(config, environ=more)
        try:
            yield Duo(config, gateway, server, World(config.url, config.admin_token))
        finally:
            gateway.stop()
    finally:
        server.stop()


def issuer_of(certificate: Mapping[str, Any]) -> str:
    """The issuer's name of the leaf in a certificate as clients get it."""
    leaf = x509.load_pem_x509_certificates(certificate["chainPem"].encode())[0]
    return leaf.issuer.rfc4514_string()


def is_from(certificate: Mapping[str, Any], pebble: PebbleProcess) -> bool:
    """Whether a certificate, as clients get it, was issued by this Pebble."""
    chain = x509.load_pem_x509_certificates(certificate["chainPem"].encode())
    root = x509.load_pem_x509_certificate(pebble.root_file.read_bytes())
    return chain[-1].issuer == root.subject


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder
