"""Parts that are away: the answer says so in time, and all goes on by itself when they are back."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis

from tests.integration.service.calling import CONTEXT, GET, NO_TLS, SYNC, World
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import wait_until

ADDRESS = "198.51.100.5"
ANSWER_LIMIT_SECONDS = 10


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    """A lab whose parts may be stopped."""
    with running_lab(LabOptions()) as lab:
        yield lab


@pytest.fixture(scope="module")
def own_world(own_lab: Lab) -> World:
    return World(own_lab.config.url, own_lab.config.admin_token)


def readiness(lab: Lab) -> tuple[int, dict[str, Any]]:
    url = lab.config.url.replace("typedrequest", "readyz")
    answer = httpx.get(url, trust_env=False, timeout=ANSWER_LIMIT_SECONDS, verify=NO_TLS)
    assert answer.headers["cache-control"] == "no-store"
    page: dict[str, Any] = answer.json()
    return answer.status_code, page


def is_ready(lab: Lab) -> bool:
    status, page = readiness(lab)
    return status == 200 and page["status"] == "ready"


def part(lab: Lab, name: str) -> dict[str, Any]:
    seen: dict[str, Any] = readiness(lab)[1]["parts"][name]
    return seen


def test_all_parts_are_up_in_a_healthy_lab(own_lab: Lab) -> None:
    wait_until(lambda: is_ready(own_lab), "ready")
    status, page = readiness(own_lab)
    assert status == 200
    zones = ("example.test", "example.net.test")
    of_zones = {f"{kind} {zone}" for kind in ("zone", "name servers") for zone in zones}
    assert set(page["parts"]) == of_zones | {"redis", "acme 127.0.0.1", "worker"}
    assert all(seen["state"] == "up" and seen["sinceMs"] > 0 for seen in page["parts"].values())


def test_redis_away_is_unavailable_and_unready_until_it_is_back(
    own_lab: Lab, own_world: World
) -> None:
    mine = own_world.ownership()
    mine.publish(ADDRESS)
    own_lab.redis.kill()
    try:
        for method, request in (
            (CONTEXT, {}),
            (SYNC, {"ownership": mine.wire, "delete": True}),
            (GET, {"ownership": mine.wire}),
        ):
            refusal = mine.caller.refused(method, **request)
            assert refusal["code"] == "unavailable"
            assert refusal["retryAfterMs"] > 0
        wait_until(lambda: readiness(own_lab)[0] == 503, "unready")
        assert part(own_lab, "redis")["state"] == "down"
        alive = own_lab.config.url.replace("typedrequest", "healthz")
        assert httpx.get(alive, trust_env=False, verify=NO_TLS).json() == {"status": "alive"}
    finally:
        own_lab.redis.start()
    wait_until(lambda: is_ready(own_lab), "ready again")
    assert mine.publish(ADDRESS)["status"] == "managed-unchanged"


def test_redis_that_takes_no_writes_is_unready_until_it_does(own_lab: Lab) -> None:
    with redis.Redis.from_url(own_lab.redis.url) as connection:
        connection.config_set("min-replicas-to-write", 1)
        try:
            wait_until(lambda: readiness(own_lab)[0] == 503, "unready")
            assert "NOREPLICAS" in part(own_lab, "redis")["detail"]
        finally:
            connection.config_set("min-replicas-to-write", 0)
        wait_until(lambda: is_ready(own_lab), "ready again")
        assert list(connection.scan_iter(match="*:probe")) == []


def test_redis_that_hangs_is_answered_in_time(own_lab: Lab, own_world: World) -> None:
    mine = own_world.ownership()
    process = own_lab.redis.process
    process.pause()
    try:
        answer = httpx.post(
            own_lab.config.url,
            json={"method": CONTEXT, "request": {"apiToken": mine.caller.token}},
            trust_env=False,
            timeout=ANSWER_LIMIT_SECONDS,
            verify=NO_TLS,
        )
    finally:
        process.resume()
    assert answer.json()["error"]["data"]["code"] == "unavailable"
    wait_until(lambda: is_ready(own_lab), "ready again")
    assert mine.caller.call(CONTEXT)


def test_primary_away_is_zone_unavailable_until_it_is_back(own_lab: Lab, own_world: World) -> None:
    mine, fresh = own_world.ownership(), own_world.ownership()
    mine.publish(ADDRESS)
    own_lab.bind.primary_process.kill()
    try:
        for answer in (mine.publish("198.51.100.6"), mine.withdraw(), fresh.publish(ADDRESS)):
            assert answer["status"] == "zone-unavailable"
            assert answer["retryAfterMs"] > 0
        refused = fresh.get()
        assert (refused["status"], refused["reason"]) == ("refused", "zone-unavailable")
        assert refused["retryAfterMs"] > 0
        wait_until(lambda: readiness(own_lab)[0] == 503, "unready without any zone")
    finally:
        own_lab.bind.start_primary()
    wait_until(lambda: is_ready(own_lab), "ready again")
    assert mine.publish("198.51.100.6")["status"] == "managed-updated"
    assert fresh.publish(ADDRESS)["status"] == "managed-created"


def test_primary_that_hangs_is_answered_in_time(own_lab: Lab, own_world: World) -> None:
    mine = own_world.ownership()
    own_lab.bind.primary_process.pause()
    try:
        answer = httpx.post(
            own_lab.config.url,
            json={
                "method": SYNC,
                "request": {
                    "apiToken": mine.caller.token,
                    "ownership": mine.wire,
                    "record": {"type": "A", "value": ADDRESS},
                },
            },
            trust_env=False,
            timeout=ANSWER_LIMIT_SECONDS,
            verify=NO_TLS,
        )
    finally:
        own_lab.bind.primary_process.resume()
    assert answer.json()["response"]["status"] == "zone-unavailable"
    wait_until(lambda: is_ready(own_lab), "ready again")
    assert mine.publish(ADDRESS)["status"] in {"managed-created", "managed-unchanged"}


def test_secondary_away_delays_no_record(own_lab: Lab, own_world: World) -> None:
    own_lab.bind.secondary_process.pause()
    try:
        mine = own_world.ownership()
        assert mine.publish(ADDRESS)["status"] == "managed-created"
        assert mine.get()["status"] == "pending"
    finally:
        own_lab.bind.secondary_process.resume()
    assert mine.certificate()


def test_authority_away_takes_no_certificate_away(own_lab: Lab, own_world: World) -> None:
    old, new = own_world.ownership(), own_world.ownership()
    kept = old.certificate()
    own_lab.pebble.stop()
    try:
        assert old.certificate() == kept
        refused = new.settled()
        assert (refused["status"], refused["reason"]) == ("refused", "authority-unavailable")
        assert refused["retryAfterMs"] > 0
    finally:
        own_lab.pebble.start()
    # The CA has forgotten its accounts and orders: the issuance begins anew by itself.
    wait_until(lambda: new.get()["status"] == "ready", "issued once the authority is back")
