"""A whole gateway on each kind of server: a record and a certificate through the API."""

from pathlib import Path

from tests.integration.service.calling import World
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.pebble import start_pebble
from tests.lab.process import wait_until
from tests.lab.redis import start_redis
from tests.servers.conftest import AnyServer, Tells
from tests.servers.eyes import Eyes


def test_certificate_is_issued_through_the_api(
    tmp_path: Path, server: AnyServer, eyes: Eyes, tells: Tells
) -> None:
    folders = [tmp_path / name for name in ("redis", "pebble")]
    for folder in folders:
        folder.mkdir()
    redis = start_redis(folders[0])
    pebble = start_pebble(folders[1], server.primary)
    config = write_gateway_config(tmp_path / "gateway", server, redis.url, pebble)
    gateway = start_gateway(config)
    try:
        mine = World(gateway.url, config.admin_token).ownership()
        answer = mine.publish("198.51.100.85")
        certificate = mine.certificate()
        assert certificate["hostname"] == mine.hostname
        assert "300 A 198.51.100.85" in eyes.records(mine.hostname)
        # The answer may be there before the challenge is taken back.
        wait_until(
            lambda: not eyes.records(f"_acme-challenge.{mine.hostname}"), "the challenge goes"
        )
        tells(
            "a record, then a certificate through the API",
            f"{answer['status']}, ready, challenge removed",
        )
    finally:
        for part in (gateway, pebble, redis):
            part.stop()
