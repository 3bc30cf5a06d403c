"""Configures and starts gateway processes against the lab's servers.

Responsible for: one complete configuration folder (`gateway.toml`, keyring, admin token) that
anybody may also start by hand, and processes that are ready when `/readyz` says so.
Must not: import the gateway; it is run as its console command, as an operator runs it, or forked by
the tests (`run_as`).
Called by: `tests.lab.lab`, end-to-end and fault tests.
"""

import base64
import hashlib
import json
import secrets
import ssl
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.dns_server import DnsServer
from tests.lab.pebble import AcmeServer
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import LabFault, Process

_ANSWER_LIMIT_SECONDS = 2.0

run_as: type[Process] = Process
"""What a gateway is started as; the tests fork theirs, see `tests.lab.forks`."""

_SERVICE = """\
state_dir = {state_folder}
keyring_file = {keyring_file}

[admin]
token_sha256 = {admin_token_sha256}

[http]
listen = {listen}

[redis]
url = {redis_url}

[log]
level = {log_level}

# Tests call as fast as they can, from one address, and send much that is refused.
[limits]
calls_per_minute = 0
unauthenticated_per_minute = 0
unauthenticated_per_second = 0
concurrent_calls_per_credential = 0
"""

_ACME = """
[[acme]]
directory = {directory_url}
ca_bundle = {ca_file}
contact = ["mailto:hostmaster@example.test"]

# The lab's few domains would soon have used up a public authority's figures.
[acme.budget]
orders_per_3_hours = 0
certificates_per_domain_per_week = 0
certificates_per_hostname_per_week = 0
failed_validations_per_hour = 0
"""

_ZONE = """
[[zones]]
name = {zone}
primary = {primary}
nameserver_port = {nameserver_port}

[zones.tsig]
name = {tsig_name}
algorithm = {tsig_algorithm}
secret = {tsig_secret}
"""


@dataclass(frozen=True)
class GatewayConfig:
    """A configuration on disk; `port` is where its first gateway listens."""

    config_file: Path
    state_folder: Path
    port: int
    admin_token: str = field(repr=False)

    @property
    def url(self) -> str:
        return _typedrequest_url(self.port)


class GatewayProcess:
    """A running gateway; the same address over restarts."""

    def __init__(self, process: Process, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.process = process
        self.port = port
        self.base_url = f"{'http' if tls is None else 'https'}://{LOOPBACK}:{port}"
        self.url = f"{self.base_url}/typedrequest"
        self._tls = tls

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> None:
        """Start it, or start it again after `stop` or `kill`; ready when `/readyz` is 200.

        Raises: LabFault.
        """
        self.process.start(self._is_ready)

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()

    def kill(self) -> None:
        """Kill it in the middle of whatever it does. May be repeated."""
        self.process.kill()

    @property
    def log_lines(self) -> list[dict[str, Any]]:
        """What it has logged so far, of one that logs JSON."""
        lines = self.process.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def _is_ready(self) -> bool:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._tls)
        )
        try:
            with opener.open(f"{self.base_url}/readyz", timeout=_ANSWER_LIMIT_SECONDS) as answer:
                return bool(answer.status == 200)
        except OSError:  # not listening yet, or an HTTP error: 503 until all is there
            return False


def write_gateway_config(
    folder: Path,
    bind: DnsServer,
    redis_url: str,
    pebble: AcmeServer | None,
    *,
    log_level: str = "info",
) -> GatewayConfig:
    """Write a configuration for all zones of `bind` into the new `folder`.

    Without `pebble` the gateway has no ACME section: certificates are off.
    """
    folder.mkdir(mode=0o700)
    state_folder = folder / "state"
    state_folder.mkdir(mode=0o700)
    keyring_file = folder / "keyring"
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    _write_secret(keyring_file, f"lab-1 {key}\n")
    admin_token = f"gwa_{secrets.token_urlsafe(32)}"
    port = free_port()
    text = _fill(
        _SERVICE,
        state_folder=state_folder,
        keyring_file=keyring_file,
        admin_token_sha256=hashlib.sha256(admin_token.encode()).hexdigest(),
        listen=f"{LOOPBACK}:{port}",
        redis_url=redis_url,
        log_level=log_level,
    )
    if pebble is not None:
        text += _fill(_ACME, directory_url=pebble.directory_url, ca_file=pebble.ca_file)
    for zone in bind.zones:
        text += _fill(
            _ZONE,
            zone=zone,
            primary="{}:{}".format(*bind.primary),
            nameserver_port=bind.nameserver_port,
            tsig_name=bind.tsig.name,
            tsig_algorithm=bind.tsig.algorithm,
            tsig_secret=bind.tsig.secret_base64,
        )
    config_file = folder / "gateway.toml"
    _write_secret(config_file, text)
    return GatewayConfig(config_file, state_folder, port, admin_token)


def start_gateway(
    config: GatewayConfig,
    name: str = "gateway",
    *,
    port: int | None = None,
    environ: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> GatewayProcess:
    """Start `gateway serve` on the configured port, or on another one (a further process).

    Its output goes to `<name>.log` beside the configuration. One that `environ` gives TLS is asked
    with the client's side of it, `tls`, whether it is ready.

    Raises: LabFault.
    """
    gateway = prepare_gateway(config, name, port=port, environ=environ, tls=tls)
    gateway.start()
    return gateway


@contextmanager
def running_gateway(
    config: GatewayConfig,
    name: str = "gateway",
    *,
    port: int | None = None,
    environ: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[GatewayProcess]:
    """The same as `start_gateway`, as long as the block runs."""
    gateway = start_gateway(config, name, port=port, environ=environ, tls=tls)
    try:
        yield gateway
    finally:
        gateway.stop()


def prepare_gateway(
    config: GatewayConfig,
    name: str = "gateway",
    *,
    port: int | None = None,
    environ: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> GatewayProcess:
    """The same as `start_gateway`, not started yet."""
    command_file = Path(sys.executable).with_name("gateway")
    if not command_file.exists():
        raise LabFault(f"{command_file} is missing: run scripts/setup")
    own_port = config.port if port is None else port
    own_environ = {"GATEWAY_HTTP__LISTEN": f"{LOOPBACK}:{own_port}", **(environ or {})}
    command = [str(command_file), "serve", "--config", str(config.config_file)]
    process = run_as(name, command, config.config_file.parent, own_environ)
    return GatewayProcess(process, own_port, tls)


def _typedrequest_url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}/typedrequest"


def _fill(template: str, **values: object) -> str:
    # JSON's strings and numbers are TOML's as well.
    quoted = {
        name: json.dumps(value if isinstance(value, int) else str(value))
        for name, value in values.items()
    }
    return template.format(**quoted)


def _write_secret(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
