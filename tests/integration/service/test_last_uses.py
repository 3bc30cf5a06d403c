"""When a credential was last used, by `gateway clients show`, and what went wrong lately."""

import json
import secrets
import time
from contextlib import AsyncExitStack
from typing import Any

from gateway.store.connection import Store
from gateway.store.lately import DayCounts, Lately
from tests.integration.dns.hand import Hand
from tests.integration.service.calling import CONTEXT, PROVISION, Caller, Ownership, World, spec
from tests.integration.service.test_commands import gateway
from tests.integration.service.trailing import told_of
from tests.lab.gateway import running_gateway
from tests.lab.lab import Lab
from tests.lab.ports import free_port

EARLIER_MS = 1_000
"""So much the clocks of the machine and of Redis, which are one here, may be rounded apart."""


def shown(lab: Lab, client_id: str) -> list[dict[str, Any]]:
    """A client's credentials."""
    told = gateway(lab, "clients", "show", client_id, "--json")
    assert told.returncode == 0, told.stderr
    credentials: list[dict[str, Any]] = json.loads(told.stdout)["credentials"]
    return credentials


def test_use_of_each_credential_is_shown_once_its_process_has_written_it(
    service_lab: Lab, world: World
) -> None:
    client_id = f"client-{secrets.token_hex(4)}"
    made = world.admin.call(PROVISION, action="ensure", spec=spec(client_id))
    assert [each["lastUsedAt"] for each in shown(service_lab, client_id)] == [None]
    rotated = world.admin.call(
        PROVISION, action="rotate", spec={"clientId": client_id}, overlapSeconds=600
    )
    began_ms = time.time_ns() // 1_000_000
    port = free_port()
    with running_gateway(service_lab.config, f"gateway-{port}", port=port) as process:
        Caller(process.url, made["apiToken"]).call(CONTEXT)
        stranger = Caller(process.url, rotated["apiToken"][:-4] + "AAAA")
        assert stranger.refused(CONTEXT)["code"] == "unauthorized"
        process.stop()
    ended_ms = time.time_ns() // 1_000_000
    first, second = shown(service_lab, client_id)
    assert began_ms - EARLIER_MS <= first["lastUsedAt"] <= ended_ms + EARLIER_MS
    assert second["lastUsedAt"] is None


async def test_conflict_is_told_and_counted_lately(
    service_lab: Lab, mine: Ownership, hand: Hand
) -> None:
    store = Store(service_lab.redis.url)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        lately = Lately(store, is_kept=True)
        now_ms = await store.time_ms()
        before = await lately.days(2, now_ms)
        hand.add(f"{mine.hostname} 300 A 192.0.2.44")
        mine.publish("198.51.100.5")
        told_of(service_lab, mine.hostname, ("record-sync", "record-conflict"))
        (newest,) = [
            told.entry
            for told in (await lately.conflicts(now_ms - EARLIER_MS)).told
            if told.entry is not None and told.entry["hostname"] == mine.hostname
        ]
        assert newest["detail"] == "in the way: A 192.0.2.44"
        after = await lately.days(2, now_ms)
        assert conflicts(after) == conflicts(before) + 1


def conflicts(days: list[DayCounts]) -> int:
    return sum(day.conflicts for day in days)
