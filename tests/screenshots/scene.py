"""A plausible story on the lab's real servers, in example names only.

Responsible for: zones (one of them away), clients, hostnames with records and certificates, and
some trouble: a refusal, a limit of the CA, a conflict made by hand, a certificate that ends soon,
an issuance under way.
Must not: make up what the gateway would say of any of it; it is called, and says it itself.
Called by: `tests.screenshots`, `tests.browser`.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from redis import Redis

from gateway.store.keys import CENSUS_KEY
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import PROVISION, Caller, Ownership, spec
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Pause, Refuse
from tests.lab.acme_proxy import AcmeProxy
from tests.lab.bind import start_bind_pair
from tests.lab.gateway import GatewayConfig, GatewayProcess, write_gateway_config
from tests.lab.pebble import start_pebble
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, wait_until
from tests.lab.redis import RedisProcess, start_redis
from tests.screenshots import named
from tests.screenshots.stock import LIFETIME, AgedCertificates

ZONES = ("example.com", "example.net", "relay.example")
AWAY_ZONE = "example.org"
AWAY = f"vpn.{AWAY_ZONE}"

CONFLICT = "git.example.com"
REFUSED = "ci.example.com"
LIMITED = "registry.example.com"
ENDING = "relay-07.fra.relay.example"
ISSUED = "relay-01.fra.relay.example"
UNDER_WAY = "docs.example.com"
CLAIMED = "status.example.com"

_AWAY = """
[[zones]]
name = "{zone}"
primary = "{host}:{port}"

[zones.tsig]
name = "{tsig.name}"
algorithm = "{tsig.algorithm}"
secret = "{tsig.secret_base64}"
"""
_CENSUS_LIMIT_SECONDS = 90.0
_STEADY = {"PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}


@dataclass(frozen=True)
class Fleet:
    """A client, and the hostnames that it keeps served under one suffix."""

    client_id: str
    kind: str
    app_id: str
    suffix: str
    labels: tuple[str, ...]

    def hostnames(self) -> list[str]:
        return [f"{label}.{self.suffix}" for label in self.labels]


FLEETS = (
    Fleet(
        "relays-fra",
        "relay",
        "relay",
        "fra.relay.example",
        tuple(f"relay-{n:02}" for n in range(1, 13)),
    ),
    Fleet(
        "relays-ams",
        "relay",
        "relay",
        "ams.relay.example",
        tuple(f"relay-{n:02}" for n in range(1, 9)),
    ),
    Fleet(
        "platform",
        "cloudly",
        "ingress",
        "example.com",
        (
            "api",
            "app",
            "auth",
            "billing",
            "cdn",
            "ci",
            "docs",
            "grafana",
            "registry",
            "support",
            "www",
        ),
    ),
    Fleet("mail", "mail", "mail", "example.net", ("imap", "mx1", "mx2", "smtp", "webmail")),
)
_REALLY_ISSUED = (ISSUED, "relay-02.fra.relay.example", "app.example.com", "www.example.com")


@dataclass(frozen=True)
class Scene:
    """What runs, and who may do what: `callers` by client id."""

    gateway: GatewayProcess
    config: GatewayConfig
    redis: RedisProcess
    proxy: AcmeProxy
    hand: Hand
    admin: Caller
    callers: dict[str, Caller]


@contextmanager
def playing(folder: Path) -> Iterator[Scene]:
    """Start the servers in `folder` and play the story; all of it ends with the block."""
    with _servers(folder) as scene:
        _tell_fleets(scene)
        _make_trouble(scene)
        _await_census(scene)
        yield scene


@contextmanager
def _servers(folder: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        for name in ("bind", "ca", "redis"):
            (folder / name).mkdir()
        bind = start_bind_pair(folder / "bind", ZONES)
        stack.callback(bind.stop)
        seconds = int(LIFETIME.total_seconds())
        pebble = start_pebble(folder / "ca", bind.primary, _STEADY, validity_seconds=seconds)
        stack.callback(pebble.stop)
        proxy = stack.enter_context(AcmeProxy(folder / "ca", pebble))
        redis = start_redis(folder / "redis")
        stack.callback(redis.stop)
        config = write_gateway_config(folder / "gateway", bind, redis.url, proxy)
        text = config.config_file.read_text()
        # A public authority's figures, so that the page has budgets to show.
        text = re.sub(r"(?m)^\[acme\.budget\]\n(?:\w+ = 0\n)+", "", text)
        text = re.sub(r"(?m)^(\[\[acme\]\]\n)", r'\1name = "example-ca"\n', text)
        # And a client's own limits, which its page shows.
        limits = "calls_per_minute = 600\nrecords = 200\ncertificates = 200\n"
        text = text.replace("calls_per_minute = 0\n", limits)
        away = _AWAY.format(zone=AWAY_ZONE, host=LOOPBACK, port=free_port(), tsig=bind.tsig)
        config.config_file.write_text(text + away)
        gateway = _gateway(config)
        stack.callback(gateway.stop)
        admin = Caller(config.url, config.admin_token)
        callers = {each.client_id: _client(admin, each) for each in FLEETS}
        yield Scene(gateway, config, redis, proxy, Hand.at(bind), admin, callers)


def _gateway(config: GatewayConfig) -> GatewayProcess:
    # All hostnames are counted again as soon as that is done.
    environ = {"GATEWAY_METRICS__CENSUS_SECONDS": "1"}
    process = Process("gateway", _command(config, "serve"), config.config_file.parent, environ)
    gateway = GatewayProcess(process, config.port)
    gateway.start()
    return gateway


def _command(config: GatewayConfig, *arguments: str) -> list[str]:
    command = [sys.executable, named.__file__, "gateway-1", *arguments]
    return [*command, "--config", str(config.config_file)]


def _client(admin: Caller, fleet: Fleet) -> Caller:
    patterns = [f"*.{fleet.suffix}", *([f"*.{AWAY_ZONE}"] if fleet.client_id == "mail" else [])]
    wanted = spec(fleet.client_id, *patterns, clientType=fleet.kind)
    return Caller(admin.url, admin.call(PROVISION, action="ensure", spec=wanted)["apiToken"])


def _tell_fleets(scene: Scene) -> None:
    """Publish every record; a few certificates are issued, the others have been for some time."""
    with Redis.from_url(scene.redis.url) as redis:
        aged = AgedCertificates(
            redis, scene.config.config_file.with_name("keyring"), scene.proxy.directory_url
        )
        aged.count_days()
        number = 0
        for fleet in FLEETS:
            for hostname in fleet.hostnames():
                number += 1
                mine = Ownership(scene.callers[fleet.client_id], hostname, fleet.app_id)
                mine.publish(f"198.51.100.{number}", 300)
                if hostname in _REALLY_ISSUED:
                    mine.get()
                elif hostname not in {REFUSED, LIMITED, UNDER_WAY, ENDING}:
                    # Spread over the part of the lifetime before a renewal is due.
                    ends_in = timedelta(days=32 + number * 17 % 57, hours=number % 24)
                    aged.put(hostname, fleet.client_id, fleet.app_id, ends_in)
        for hostname in _REALLY_ISSUED:
            fleet = _fleet_of(hostname)
            Ownership(scene.callers[fleet.client_id], hostname, fleet.app_id).certificate()
        fleet = _fleet_of(ENDING)
        _refuse(scene, ENDING, "caa", f"CAA record for {ENDING} prevents issuance")
        aged.put(ENDING, fleet.client_id, fleet.app_id, timedelta(days=3, hours=5))


def _make_trouble(scene: Scene) -> None:
    platform = scene.callers["platform"]
    words = f'The ACME server refuses to issue a certificate for "{REFUSED}": policy forbids it'
    _refuse(scene, REFUSED, "rejectedIdentifier", words)
    words = (
        "too many certificates (5) already issued for this exact set of identifiers in the last "
        f"168h0m0s: {LIMITED}"
    )
    limit = Refuse(429, "rateLimited", words, "5400")
    scene.proxy.on(Operation.NEW_ORDER, limit, hostname=LIMITED, times=None)
    scene.proxy.on(Operation.CHALLENGE, Pause(), hostname=UNDER_WAY, times=None)
    for hostname in (REFUSED, LIMITED, UNDER_WAY):
        Ownership(platform, hostname, "ingress").get()
    claim = ["claims", "add", CLAIMED, "--note", "kept for the status page, until it has moved"]
    subprocess.run(_command(scene.config, *claim), check=True, capture_output=True)
    scene.hand.add(f"{CONFLICT} 300 A 192.0.2.10")
    Ownership(platform, CONFLICT, "ingress").publish("198.51.100.77", 300)
    Ownership(scene.callers["mail"], AWAY, "vpn").publish("198.51.100.90")


def _await_census(scene: Scene) -> None:
    """Wait until all of the story was counted: by a census that began after it was told."""
    with Redis.from_url(scene.redis.url) as redis:
        for _ in range(2):
            redis.delete(CENSUS_KEY)
            wait_until(
                lambda: bool(redis.exists(CENSUS_KEY)), "a census is taken", _CENSUS_LIMIT_SECONDS
            )


def _refuse(scene: Scene, hostname: str, problem: str, words: str) -> None:
    refusal = Refuse(403, problem, words)
    scene.proxy.on(Operation.NEW_ORDER, refusal, hostname=hostname, times=None)


def _fleet_of(hostname: str) -> Fleet:
    return next(fleet for fleet in FLEETS if hostname in fleet.hostnames())
