"""Processes other than the common one: a worker alone, and one that cannot have its address."""

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.integration.metrics.conftest import MeteredLab, metered
from tests.integration.metrics.scraping import Page, Scraper
from tests.lab import forks
from tests.lab.ports import LOOPBACK, free_port

OF_ACCOUNT = ("gateway_acme_orders_held", "gateway_acme_budget_left", "gateway_acme_budget_size")


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


def test_zone_and_authority_that_a_reload_takes_away_are_shown_no_more(
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
        own.until(lambda page: _has_account(page, "127.0.0.1"), "the authority's budget is known")
        assert not _is_refused(own.page())
        own_config.write_text("nonsense")
        os.kill(worker.pid, signal.SIGHUP)
        own.until(_is_refused, "the refused reload is shown")
        kept, _, _ = text.rpartition("\n[[zones]]")
        own_config.write_text(kept.replace("[[acme]]", '[[acme]]\nname = "other"'))
        os.kill(worker.pid, signal.SIGHUP)
        page = own.until(lambda page: not page.has("gateway_part_up", **removed), "it is gone")
        assert page.has("gateway_part_up", part="zone example.test")
        assert not _is_refused(page)
        own.until(
            lambda page: (
                _has_account(page, "other")
                and not any(page.has(name, authority="127.0.0.1") for name in OF_ACCOUNT)
            ),
            "the authority's other name alone is there",
        )
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


def _has_account(page: Page, authority: str) -> bool:
    return all(page.has(name, authority=authority) for name in OF_ACCOUNT)


def _is_refused(page: Page) -> bool:
    return page.figure("gateway_configuration_refused") == 1


def _answers(scraper: Scraper) -> bool:
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, scraper.port)) != 0:
            return False
    return scraper.get("/healthz").status_code == 200
