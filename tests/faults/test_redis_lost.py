"""Redis comes back without its data: calls make all of it again, records keep their owner."""

import secrets
import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.faults.redislab import RedisLab, running_redis_lab
from tests.integration.service.calling import CONTEXT, PROVISION, Caller, Ownership, spec
from tests.lab.redis import RedisProcess, ask_redis, start_redis

ADDRESS = "198.51.100.5"


def _flush(redis_lab: RedisLab) -> None:
    ask_redis(redis_of(redis_lab).port, "FLUSHALL")


def _restart_empty(redis_lab: RedisLab) -> None:
    """With the gateways, so that no process remembers anything."""
    redis = redis_of(redis_lab)
    for gateway in redis_lab.gateways:
        gateway.kill()
    redis.kill()
    for folder in redis.data_folders:
        shutil.rmtree(folder / "appendonlydir")
    redis.start()
    for gateway in redis_lab.gateways:
        gateway.start()


WAYS: dict[str, Callable[[RedisLab], None]] = {
    "flushed": _flush,
    "restarted empty": _restart_empty,
}


def redis_of(redis_lab: RedisLab) -> RedisProcess:
    redis = redis_lab.lab.redis
    assert isinstance(redis, RedisProcess)
    return redis


@pytest.fixture(scope="module")
def redis_lab() -> Iterator[RedisLab]:
    with running_redis_lab(start_redis) as redis_lab:
        yield redis_lab


def made(redis_lab: RedisLab, client_id: str, hostname: str) -> Ownership:
    """The ownership of a client that the admin makes, or makes again as it was."""
    admin = Caller(redis_lab.urls[0], redis_lab.lab.config.admin_token)
    answer = admin.call(PROVISION, action="ensure", spec=spec(client_id, hostname))
    return Ownership(Caller(redis_lab.urls[0], answer["apiToken"]), hostname)


@pytest.mark.parametrize("way", WAYS)
def test_all_is_made_again_and_records_keep_their_owner(redis_lab: RedisLab, way: str) -> None:
    hostname, client_id = redis_lab.fresh_hostname(), f"mine-{secrets.token_hex(6)}"
    mine = made(redis_lab, client_id, hostname)
    mine.publish(ADDRESS)
    before = mine.certificate()
    accounts, orders = redis_lab.evidence.counts()

    WAYS[way](redis_lab)

    assert mine.caller.refused(CONTEXT)["code"] == "unauthorized"
    rival = made(redis_lab, f"rival-{secrets.token_hex(6)}", hostname)
    assert rival.publish("198.51.100.6")["status"] == "record-conflict"
    again = made(redis_lab, client_id, hostname)
    assert again.publish(ADDRESS)["status"] == "managed-unchanged"
    assert again.certificate()["privateKeyPem"] != before["privateKeyPem"]
    other = made(redis_lab, f"other-{secrets.token_hex(6)}", redis_lab.fresh_hostname())
    other.at(redis_lab.urls[1]).certificate()
    accounts_now, orders_now = redis_lab.evidence.counts()
    assert accounts_now - accounts == 1
    assert orders_now - orders == 2
