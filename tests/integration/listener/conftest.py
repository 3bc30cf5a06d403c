"""A configuration on the session's BIND and Pebble with a Redis of its own, and TLS for it."""

import shutil
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.dns.hand import Hand
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, write_gateway_config
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import running_redis
from tests.lab.tls import write_server_certificate


@pytest.fixture(scope="package")
def listener_config(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, pebble: PebbleProcess
) -> Iterator[GatewayConfig]:
    folder = tmp_path_factory.mktemp("listener")
    with running_redis(tmp_path_factory.mktemp("listener-redis")) as redis:
        yield write_gateway_config(folder / "gateway", bind, redis.url, pebble)


@pytest.fixture(scope="package")
def hand(bind: BindPair) -> Hand:
    return Hand.at(bind)


@dataclass(frozen=True)
class TlsFiles:
    """A server's certificate and key for 127.0.0.1 and `localhost`, and their authority."""

    ca: Path
    certificate: Path
    key: Path

    @property
    def environ(self) -> dict[str, str]:
        return {
            "GATEWAY_HTTP__TLS": "files",
            "GATEWAY_HTTP__CERTIFICATE_FILE": str(self.certificate),
            "GATEWAY_HTTP__KEY_FILE": str(self.key),
        }

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)

    def replace(self, other: "TlsFiles") -> None:
        """Put another pair in the place of this one, one file after the other."""
        for new, old in ((other.certificate, self.certificate), (other.key, self.key)):
            beside = old.with_suffix(".new")
            shutil.copy(new, beside)
            beside.replace(old)


def new_files(folder: Path) -> TlsFiles:
    folder.mkdir()
    files = TlsFiles(folder / "ca.pem", folder / "tls.pem", folder / "tls.key")
    write_server_certificate(files.ca, files.certificate, files.key, "127.0.0.1")
    return files


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return new_files(tmp_path / "first")


@pytest.fixture
def other_files(tmp_path: Path) -> TlsFiles:
    return new_files(tmp_path / "second")
