"""Processes other than the common one: a worker alone, and one that cannot have its address."""

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.integration.metrics.conftest import MeteredLab, metered
from tests.integration.metrics.scraping import Scraper
from tests.lab import forks
from tests.lab.ports import LOOPBACK, free_port


@pytest.fixture
def gateway_command(metered_lab: MeteredLab) -> tuple[str, ...]:
    return (str(Path(sys.executable).with_name("gateway")), str(metered_lab.lab.config.config_file))


def test_worker_alone_shows_its_figures_and_its_health(
    metered_lab: MeteredLab, gateway_command: tuple[str, ...]
) -> None:
    program, config = gateway_command
    own = Scraper(free_port())
    folder = metered_lab.lab.folder
    worker = forks.ForkedGateway(
        "worker", (program, "worker", "--config", config), folder, metered(own.port)
    )
    worker.start(lambda: _answers(own))
    try:
        page = own.until(lambda page: page.figure("gateway_ready") == 1, "the worker is ready")
        assert page.figure("gateway_part_up", kind="worker") == 1
        assert own.get("/readyz").status_code == 200
        # Both show what either of them has counted.
        metered_lab.world.ownership().publish("198.51.100.3")
        records = metered_lab.metrics.counted().figure("gateway_documents", holds="record")
        assert records > 0
        own.until(
            lambda page: page.figure("gateway_documents", holds="record") == records,
            "it shows the other's count, or the same",
        )
    finally:
        worker.stop()


def test_zone_that_a_reload_takes_away_is_shown_no_more(
    metered_lab: MeteredLab, gateway_command: tuple[str, ...]
) -> None:
    program, config = gateway_command
    text = Path(config).read_text("utf-8")
    own_config = Path(config).with_name("reloaded.toml")
    own_config.write_text(text)
    own_config.chmod(0o600)
    own = Scraper(free_port())
    worker = forks.ForkedGateway(
        "reloaded",
        (program, "worker", "--config", str(own_config)),
        metered_lab.lab.folder,
        metered(own.port),
    )
    worker.start(lambda: _answers(own))
    try:
        removed = {"part": "zone example.net.test"}
        own.until(lambda page: page.figure("gateway_part_up", **removed) == 1, "both zones are up")
        kept, _, _ = text.rpartition("\n[[zones]]")
        own_config.write_text(kept)
        os.kill(worker.pid, signal.SIGHUP)
        page = own.until(lambda page: not page.has("gateway_part_up", **removed), "it is gone")
        assert page.has("gateway_part_up", part="zone example.test")
    finally:
        worker.stop()


def test_address_that_is_taken_ends_the_start_with_its_key(
    metered_lab: MeteredLab, gateway_command: tuple[str, ...]
) -> None:
    _, config = gateway_command
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        ended = forks.run_command(("worker", "--config", config), metered(port), 60)
    assert ended.returncode != 0
    assert f"metrics.listen 127.0.0.1:{port}" in ended.stderr


def _answers(scraper: Scraper) -> bool:
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, scraper.port)) != 0:
            return False
    return scraper.get("/healthz").status_code == 200
