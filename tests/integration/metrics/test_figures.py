"""What happens shows in the figures: calls, DNS, authorities, issuances, all hostnames."""

import re
from pathlib import Path

from gateway import measures
from gateway.access import calls
from tests.integration.metrics.conftest import ORDERS_PER_3_HOURS, MeteredLab
from tests.integration.metrics.scraping import Page, Scraper
from tests.integration.service.calling import GET, SYNC, Caller, World
from tests.integration.service.inside import resting_while_published

ADDRESS = "198.51.100.7"


def test_sync_counts_as_a_call_and_as_dns_messages(metrics: Scraper, world: World) -> None:
    mine = world.ownership()
    before = metrics.page()
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    after = metrics.page()
    assert grown(before, after, "gateway_calls_total", method=SYNC, outcome="managed-created") == 1
    assert grown(before, after, "gateway_call_seconds_count", method=SYNC) == 1
    updates = {"zone": "example.test", "kind": "update"}
    assert grown(before, after, "gateway_dns_exchanges_total", outcome="NOERROR", **updates) >= 1
    assert grown(before, after, "gateway_dns_exchange_seconds_count", **updates) >= 1
    assert grown(before, after, "gateway_redis_exchange_seconds_count", command="EVALSHA") >= 1


def test_conflict_counts_by_its_status(metrics: Scraper, world: World) -> None:
    mine = world.ownership()
    mine.publish(ADDRESS)
    before = metrics.page()
    assert world.rival(mine).publish(ADDRESS)["status"] == "record-conflict"
    after = metrics.page()
    assert grown(before, after, "gateway_calls_total", method=SYNC, outcome="record-conflict") == 1


def test_refusal_counts_by_its_code(metrics: Scraper, world: World) -> None:
    before = metrics.page()
    assert Caller(world.url, None).refused(SYNC)["code"] == "unauthorized"
    assert Caller(world.url, "gwc_x").refused("noMethodOfOurs")["code"] == "method-unknown"
    after = metrics.page()
    assert grown(before, after, "gateway_calls_total", method=SYNC, outcome="unauthorized") == 1
    unknown = {"method": measures.UNKNOWN, "outcome": "method-unknown"}
    assert grown(before, after, "gateway_calls_total", **unknown) == 1


def test_every_method_that_is_answered_is_counted_by_its_name() -> None:
    named = re.findall(r'"(\w*Gateway\w+)": _Method', Path(calls.__file__).read_text("utf-8"))
    assert set(named) == measures.CALL_METHODS


def test_issuance_counts_at_its_authority_and_in_the_census(metrics: Scraper, world: World) -> None:
    mine = world.ownership()
    before = metrics.counted()
    mine.certificate()
    after = metrics.counted()
    authority = {"authority": "127.0.0.1"}
    assert grown(before, after, "gateway_issuances_ended_total", outcome="issued", **authority) == 1
    assert grown(before, after, "gateway_issuance_seconds_count", **authority) == 1
    for kind in ("newOrder", "finalize", "fetchCertificate"):
        series = {"kind": kind, "outcome": "ok", **authority}
        assert grown(before, after, "gateway_acme_calls_total", **series) >= 1
    assert grown(before, after, "gateway_calls_total", method=GET, outcome="ready") == 1
    assert grown(before, after, "gateway_certificates") == 1
    assert after.figure("gateway_certificates", left="expired") == 0
    assert after.has("gateway_certificate_earliest_end_timestamp_seconds")
    mine.release()
    assert grown(before, metrics.counted(), "gateway_certificates") == 0


def test_issuance_that_waits_is_counted_by_its_state_and_its_age(metered_lab: MeteredLab) -> None:
    metrics = metered_lab.metrics
    mine = metered_lab.world.ownership()
    ended = metrics.figure("gateway_issuances_ended_total", outcome="released")
    with resting_while_published(metered_lab.lab, mine):
        page = metrics.counted()
        assert page.figure("gateway_issuances", state="published") == 1
        assert page.figure("gateway_debts", kind="challenge-record") == 1
        aged = page.figure("gateway_issuance_oldest_age_seconds")
        metrics.until(
            lambda page: page.figure("gateway_issuance_oldest_age_seconds") > aged, "it grows old"
        )
        assert mine.release() == "released"
    page = metrics.until(
        lambda page: page.figure("gateway_debts") == 0 and page.figure("gateway_issuances") == 0,
        "it has ended and is cleaned up",
    )
    assert page.figure("gateway_issuances_ended_total", outcome="released") == 1 + ended
    assert not page.has("gateway_issuance_oldest_age_seconds")


def test_orders_use_up_the_budget(metrics: Scraper, world: World) -> None:
    world.ownership().certificate()
    page = metrics.until(
        lambda page: (
            page.has("gateway_acme_budget_left")
            and page.figure("gateway_acme_budget_left") < ORDERS_PER_3_HOURS
        ),
        "the order is charged",
    )
    assert page.figure("gateway_acme_budget_size", limit="orders") == ORDERS_PER_3_HOURS
    assert page.figure("gateway_acme_orders_held") == 0


def test_healthy_gateway_shows_every_part_up(metered_lab: MeteredLab) -> None:
    page = metered_lab.metrics.until(lambda page: page.figure("gateway_ready") == 1, "ready")
    parts = {labels["part"]: value for labels, value in page.series("gateway_part_up")}
    assert {"redis", "zone example.test", "zone example.net.test", "worker"} <= parts.keys()
    assert page.has("gateway_build_info")
    assert page.figure("process_resident_memory_bytes") > 0


def grown(before: Page, after: Page, name: str, **labels: str) -> float:
    return after.figure(name, **labels) - before.figure(name, **labels)
