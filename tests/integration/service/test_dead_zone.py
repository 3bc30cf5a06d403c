"""Servers that swallow everything: a dead zone delays no other, a dead secondary not its own zone.

The former is judged by order and count: what was asked of the dead zone came first, and is far from
done when the other zone's answer is there.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.faults.evidence import Evidence
from tests.integration.service.calling import Ownership, World
from tests.lab.bind import is_authoritative, relay_process
from tests.lab.gateway import GatewayProcess, start_gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, wait_until

WELL, DEAD = "example.test", "example.net.test"
MANY = 40
PLACES = 8
CALLS_AT_ONCE = 20
ADDRESS = "198.51.100.5"
SILENT_SECONDS = 1
"""How long the zone that is well waits for a name server that does not answer."""


@dataclass(frozen=True)
class Site:
    """A lab whose second zone has its primary behind a line that can be made to hang."""

    lab: Lab
    line: Process
    desk: GatewayProcess
    """Answers calls, works on nothing."""

    @property
    def world(self) -> World:
        return World(self.desk.url, self.lab.config.admin_token)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_lab(LabOptions(gateways=0)) as lab:
        address = (LOOPBACK, free_port())
        line = relay_process(lab.folder, "line", address, lab.bind.primary)
        line.start(lambda: is_authoritative(address, DEAD))
        config_file, primary = lab.config.config_file, "{}:{}".format(*lab.bind.primary)
        text = config_file.read_text()
        there = text.index(DEAD)
        text = text[:there] + text[there:].replace(primary, "{}:{}".format(*address), 1)
        setting = f"silent_server_seconds = {SILENT_SECONDS}\nnameserver_port"
        text = text.replace("nameserver_port", setting, 1)
        config_file.write_text(text)
        desk = start_gateway(lab.config, "desk", environ={"GATEWAY_WORKER__ENABLED": "false"})
        yield Site(lab, line, desk)
        desk.stop()
        line.kill()


def test_calls_for_another_zone_are_answered_first(site: Site) -> None:
    mine = site.world.ownership(WELL)
    dead = [site.world.ownership(DEAD) for _ in range(CALLS_AT_ONCE)]
    site.line.pause()
    try:
        with ThreadPoolExecutor(CALLS_AT_ONCE) as threads:
            waiting = [threads.submit(each.publish, ADDRESS) for each in dead]
            assert mine.publish(ADDRESS)["status"] == "managed-created"
            assert not any(each.done() for each in waiting)
            answers = [each.result() for each in waiting]
    finally:
        site.line.resume()
    assert {answer["status"] for answer in answers} == {"zone-unavailable"}
    assert all(answer["retryAfterMs"] > 0 for answer in answers)


@pytest.mark.parametrize("clients", [1, MANY], ids=["one client", "many clients"])
def test_certificate_of_another_zone_is_issued_first(site: Site, clients: int) -> None:
    """All are asked for before anybody works, that of the zone that is well as the last one."""
    callers = [site.world.client(f"*.{DEAD}", f"*.{WELL}") for _ in range(clients)]
    dead = [
        Ownership(callers[number % clients], f"n{number}-of-{clients}.{DEAD}")
        for number in range(MANY)
    ]
    well = Ownership(callers[-1], f"one-of-{clients}.{WELL}")
    with ThreadPoolExecutor(CALLS_AT_ONCE) as threads:
        asked = list(threads.map(Ownership.get, [*dead, well]))
    assert {answer["status"] for answer in asked} == {"pending"}
    site.line.pause()
    port = free_port()
    environ = {"GATEWAY_WORKER__CONCURRENCY": str(PLACES)}
    worker = start_gateway(site.lab.config, f"worker-{clients}", port=port, environ=environ)
    try:
        wait_until(lambda: well.get()["status"] == "ready", "the other zone's is issued")
        documents = Evidence(site.lab).documents(each.hostname for each in dead).values()
        tried = [each for each in documents if (each.issuance or {}).get("faults")]
    finally:
        worker.kill()
        site.line.resume()
    assert len(tried) <= PLACES


def test_silent_secondary_is_gone_on_without_and_named_where_that_is_configured(
    site: Site,
) -> None:
    secondary = site.lab.bind.secondary_process
    mine = site.world.ownership(WELL)
    secondary.pause()
    gateway = start_gateway(site.lab.config, "impatient", port=free_port())
    try:
        assert mine.at(gateway.url).certificate()
        log = gateway.process.log_file.read_text()
    finally:
        secondary.resume()
        gateway.stop()
    (line,) = (each for each in log.splitlines() if "silent name servers gone on without" in each)
    assert "{}:{}".format(*site.lab.bind.secondary_as_ns2) in line
    assert mine.hostname in line
