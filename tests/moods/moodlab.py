"""A gateway whose CA has moods: a real Pebble behind the scripted proxy, real BIND and Redis.

Used by the tests of this folder. A test names hostnames of its own, and moods are put in charge of
that hostname's requests only, so tests share a lab; what a mood does to the account, or a CA that
is reset, takes a lab of its own.
"""

import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from redis import Redis

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import POLL_SECONDS, Ownership, World
from tests.lab.acme_calls import Call, Operation
from tests.lab.acme_moods import Mood
from tests.lab.acme_proxy import AcmeProxy, Rule
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayProcess, start_gateway, write_gateway_config
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, start_redis

ISSUED_LIMIT_SECONDS = 40.0

STEADY = {"PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}
"""Pebble without moods of its own."""


@dataclass(frozen=True)
class Told:
    """A certificate that came in the end, and the reasons why it was held up on the way."""

    certificate: dict[str, Any]
    reasons: set[str]


@dataclass(frozen=True)
class MoodLab:
    """One gateway, its CA and what is behind both."""

    bind: BindPair
    redis: RedisProcess
    pebble: PebbleProcess
    proxy: AcmeProxy
    gateway: GatewayProcess
    world: World
    hand: Hand

    @property
    def admin_token(self) -> str:
        token = self.world.admin.token
        assert token is not None
        return token

    def stored(self, hostname: str) -> dict[str, str]:
        """The fields of a hostname's document in Redis."""
        with self._redis() as connection:
            keys = list(set(connection.scan_iter(match=f"*:host:{hostname}")))
            fields: Any = connection.hgetall(keys[0]) if keys else {}
        return dict(fields)

    def issuance(self, hostname: str) -> dict[str, Any]:
        """A hostname's issuance as it is stored; empty when there is none."""
        value: dict[str, Any] = json.loads(self.stored(hostname).get("issuance") or "{}")
        return value

    def wait_for_state(self, hostname: str, state: str) -> dict[str, Any]:
        """Wait until the issuance is in this state, and answer it."""
        wait_until(lambda: self.issuance(hostname).get("state") == state, f"the state {state}")
        return self.issuance(hostname)

    def hurry(self, hostname: str) -> None:
        """Have an issuance that rests go on now: a test cannot wait for minutes."""
        wait_until(lambda: "lease" not in self.stored(hostname), "it rests")
        with self._redis() as connection:
            (key,) = set(connection.scan_iter(match=f"*:host:{hostname}"))
            issuance = self.issuance(hostname)
            issuance["due_at_ms"] = issuance["changed_at_ms"]
            hurried = json.dumps(issuance)
            connection.hset(key, "issuance", hurried)

            def goes_on() -> bool:
                # Again and again: a debt paid at the same moment may set the queue to its own time.
                connection.zadd(f"{key.split(':host:', maxsplit=1)[0]}:due", {hostname: 0})
                return self.stored(hostname).get("issuance") != hurried

            wait_until(goes_on, "it goes on")

    def on(self, mine: Ownership, operation: str, mood: Mood, times: int | None = 1) -> Rule:
        """Put a mood in charge of one hostname's requests."""
        return self.proxy.on(operation, mood, hostname=mine.hostname, times=times)

    def orders(self, mine: Ownership) -> list[Call]:
        """The orders that Pebble has made for a hostname."""
        return self.proxy.done(Operation.NEW_ORDER, mine.hostname)

    def issued(self, *each: Ownership, limit_seconds: float = ISSUED_LIMIT_SECONDS) -> Told:
        """Ask until the certificates are there, past all refusals on the way; told of the last."""
        answers: list[dict[str, Any]] = []

        def are_ready() -> bool:
            answers[:] = [mine.get() for mine in each]
            return all(answer["status"] == "ready" for answer in answers)

        names = [mine.hostname for mine in each]
        wait_until(are_ready, f"certificates of {names}", limit_seconds, pause_seconds=POLL_SECONDS)
        reasons = set().union(*(self.held_up(name) for name in names))
        return Told(answers[-1]["certificate"], reasons)

    def held_up(self, hostname: str) -> set[str]:
        """Why its issuance has waited or failed so far, by the gateway's own log."""
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return {
            line["reason"]
            for line in lines
            if line["event"] == "issuance held up" and line["hostname"] == hostname
        }

    def is_tidy(self, mine: Ownership) -> bool:
        """Whether nothing is owed any more and no challenge record is left."""
        owed = json.loads(self.stored(mine.hostname).get("debts") or "[]")
        return not owed and not self.hand.records(f"_acme-challenge.{mine.hostname}")

    def log(self) -> str:
        return self.gateway.process.log_file.read_text()

    @contextmanager
    def _redis(self) -> Iterator[Redis]:
        with Redis.from_url(self.redis.url, decode_responses=True) as connection:
            yield connection


@contextmanager
def mood_lab(
    folder: Path,
    bind: BindPair,
    *,
    environ: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    acme: Sequence[str] = (),
    budget: Mapping[str, int] | None = None,
) -> Iterator[MoodLab]:
    """Start one on `bind`; `environ` and `settings` are Pebble's, `acme` lines of the gateway's.

    `budget`: figures of the account; all of them are without a limit unless told.
    """
    with (
        pebble_and_proxy(folder, bind, environ, settings) as (pebble, proxy),
        gateway_at(folder, bind, pebble, proxy, acme, budget) as lab,
    ):
        yield lab


@contextmanager
def pebble_and_proxy(
    folder: Path,
    bind: BindPair,
    environ: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Iterator[tuple[PebbleProcess, AcmeProxy]]:
    """Start a CA alone, for a test whose gateway must know of it first."""
    with ExitStack() as stack:
        (folder / "ca").mkdir()
        pebble = start_pebble(
            folder / "ca", bind.primary, {**STEADY, **(environ or {})}, settings=settings
        )
        stack.callback(pebble.stop)
        yield pebble, stack.enter_context(AcmeProxy(folder / "ca", pebble))


@contextmanager
def gateway_at(
    folder: Path,
    bind: BindPair,
    pebble: PebbleProcess,
    proxy: AcmeProxy,
    acme: Sequence[str] = (),
    budget: Mapping[str, int] | None = None,
) -> Iterator[MoodLab]:
    """Start a gateway whose CA is behind `proxy`, with a Redis of its own."""
    with ExitStack() as stack:
        (folder / "redis").mkdir()
        server = start_redis(folder / "redis")
        stack.callback(server.stop)
        config = write_gateway_config(
            folder / "gateway", bind, server.url, proxy, log_level="debug"
        )
        text = config.config_file.read_text()
        more = "".join(f"{line}\n" for line in acme)
        config.config_file.write_text(re.sub(r"(?m)^(directory = .*\n)", rf"\1{more}", text))
        figures = {
            f"GATEWAY_ACME__0__BUDGET__{name.upper()}": str(figure)
            for name, figure in (budget or {}).items()
        }
        gateway = start_gateway(config, environ={"GATEWAY_LOG__FORMAT": "json", **figures})
        stack.callback(gateway.stop)
        world = World(config.url, config.admin_token)
        yield MoodLab(bind, server, pebble, proxy, gateway, world, Hand.at(bind))


def management(pebble: PebbleProcess, path: str) -> bytes:
    """Read what Pebble tells of itself to its operator."""
    tls = ssl.create_default_context(cafile=pebble.ca_file)
    answer = httpx.get(f"{pebble.management_url}/{path}", verify=tls, trust_env=False)
    answer.raise_for_status()
    return answer.content
