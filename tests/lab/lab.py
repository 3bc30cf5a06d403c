"""Composes the whole lab: Redis, BIND twice, Pebble and gateways, each in its own folder.

Responsible for: the order of starts and stops, and the description that `scripts/lab` prints.
Must not: know how a part is started; each has its module.
Called by: `tests.lab.__main__` (`scripts/lab`), `scripts/demo`, end-to-end tests.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin

from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.gateway import GatewayConfig, GatewayProcess, start_gateway, write_gateway_config
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.ports import free_port
from tests.lab.redis import RedisDeployment, start_redis


@dataclass(frozen=True)
class LabOptions:
    """What a lab may be told; the defaults are `scripts/lab` without options.

    `gateways` is how many gateway processes share the lab's Redis, 0 for none; `start_redis` starts
    it in a folder. `acme_environ` goes to Pebble. `acme_validity_seconds` needs a Pebble that can.
    """

    gateways: int = 1
    acme_environ: Mapping[str, str] = field(default_factory=dict)
    acme_validity_seconds: int | None = None
    log_level: str = "info"
    start_redis: Callable[[Path], RedisDeployment] = start_redis


@dataclass(frozen=True)
class Lab:
    """A running lab. Its parts may be stopped, killed and started again one by one.

    `config` is complete and unused with no gateway: one started by hand from its file is
    `config.url`.
    """

    folder: Path
    bind: BindPair
    redis: RedisDeployment
    pebble: PebbleProcess
    config: GatewayConfig
    gateways: tuple[GatewayProcess, ...]

    def describe(self) -> dict[str, object]:
        """Everything a program needs to use the lab, as JSON values. Holds its secrets."""
        urls = [gateway.url for gateway in self.gateways]
        redis_pids = self.redis.pids
        return {
            "url": self.config.url,
            # Only more than one says something that `url` does not.
            **({"urls": urls} if len(urls) > 1 else {}),
            "page": urljoin(self.config.url, "/operator"),
            "adminToken": self.config.admin_token,
            "state": str(self.config.state_folder),
            "config": str(self.config.config_file),
            "zones": list(self.bind.zones),
            "primary": "{}:{}".format(*self.bind.primary),
            "secondary": "{}:{}".format(*self.bind.secondary),
            "tsig": {
                "name": self.bind.tsig.name,
                "algorithm": self.bind.tsig.algorithm,
                "secret": self.bind.tsig.secret_base64,
            },
            "redis": self.redis.url,
            "acme": {
                "directory": self.pebble.directory_url,
                "management": self.pebble.management_url,
                "caFile": str(self.pebble.ca_file),
            },
            "pids": {
                "gateway": [gateway.pid for gateway in self.gateways],
                "redis": redis_pids[0] if len(redis_pids) == 1 else redis_pids,
                **self.bind.pids,
                "acme": self.pebble.pid,
            },
        }


@contextmanager
def running_lab(options: LabOptions | None = None) -> Iterator[Lab]:
    """Start a lab in a temporary folder; stop it and remove the folder, however the block ends.

    Raises: LabFault when a part cannot be started.
    """
    folder = Path(tempfile.mkdtemp(prefix="gateway-lab-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        yield _start(folder, options or LabOptions(), stack)


def _start(folder: Path, options: LabOptions, stack: ExitStack) -> Lab:
    redis = options.start_redis(_subfolder(folder, "redis"))
    stack.callback(redis.stop)
    bind = start_bind_pair(_subfolder(folder, "bind"))
    stack.callback(bind.stop)
    pebble = start_pebble(
        _subfolder(folder, "pebble"),
        bind.primary,
        options.acme_environ,
        validity_seconds=options.acme_validity_seconds,
    )
    stack.callback(pebble.stop)
    config = write_gateway_config(
        folder / "gateway", bind, redis.url, pebble, log_level=options.log_level
    )
    gateways = []
    for number in range(1, options.gateways + 1):
        gateway = start_gateway(
            config,
            f"gateway-{number}",
            port=config.port if number == 1 else free_port(),
        )
        stack.callback(gateway.stop)
        gateways.append(gateway)
    return Lab(folder, bind, redis, pebble, config, tuple(gateways))


def _subfolder(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir(mode=0o700)
    return path
