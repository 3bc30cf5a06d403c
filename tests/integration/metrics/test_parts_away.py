"""A part that is away shows in the figures, which can be scraped all the while, and so its return.

Each test stops what it needs of the folder's lab and has it run again.
"""

from tests.integration.metrics.conftest import MeteredLab
from tests.integration.metrics.scraping import Page

ADDRESS = "198.51.100.8"


def test_dns_server_that_is_away_shows_until_it_is_back(metered_lab: MeteredLab) -> None:
    metrics, bind = metered_lab.metrics, metered_lab.lab.bind
    mine = metered_lab.world.ownership()
    metrics.until(_all_is_well, "well before")
    before = metrics.page()
    bind.primary_process.kill()
    try:
        assert mine.publish(ADDRESS)["status"] == "zone-unavailable"
        page = metrics.until(
            lambda page: page.figure("gateway_part_up", kind="zone") == 0, "both zones are down"
        )
        faults = {"zone": "example.test", "outcome": "Unreachable"}
        name = "gateway_dns_exchanges_total"
        assert page.figure(name, **faults) > before.figure(name, **faults)
        assert page.figure("gateway_ready") == 0
    finally:
        bind.start_primary()
    metrics.until(_all_is_well, "well again")


def test_redis_that_is_away_shows_until_it_is_back(metered_lab: MeteredLab) -> None:
    metrics, redis = metered_lab.metrics, metered_lab.lab.redis
    metrics.until(_all_is_well, "well before")
    before = metrics.counted()
    redis.kill()
    try:
        page = metrics.until(
            lambda page: page.figure("gateway_part_up", part="redis") == 0, "redis is down"
        )
        faults = ("gateway_redis_faults_total", {"fault": "connection"})
        assert page.figure(faults[0], **faults[1]) > before.figure(faults[0], **faults[1])
        aged = page.figure("gateway_census_age_seconds") + 1
        metrics.until(
            lambda page: page.figure("gateway_census_age_seconds") > aged, "the census grows old"
        )
    finally:
        redis.start()
    metrics.until(_all_is_well, "well again")
    metrics.counted()


def test_redis_that_hangs_is_a_timeout(metered_lab: MeteredLab) -> None:
    metrics, process = metered_lab.metrics, metered_lab.lab.redis.process
    metrics.until(_all_is_well, "well before")
    before = metrics.figure("gateway_redis_faults_total", fault="timeout")
    process.pause()
    try:
        metrics.until(
            lambda page: page.figure("gateway_redis_faults_total", fault="timeout") > before,
            "an answer is late",
        )
    finally:
        process.resume()
    metrics.until(_all_is_well, "well again")


def test_authority_that_is_away_shows_by_its_fault(metered_lab: MeteredLab) -> None:
    metrics, pebble = metered_lab.metrics, metered_lab.lab.pebble
    mine = metered_lab.world.ownership()
    faults = {"authority": "127.0.0.1", "outcome": "unreachable"}
    before = metrics.figure("gateway_acme_calls_total", **faults)
    pebble.stop()
    try:
        mine.get()
        metrics.until(
            lambda page: page.figure("gateway_acme_calls_total", **faults) > before,
            "the authority was asked in vain",
        )
    finally:
        pebble.start()
    mine.release()


def _all_is_well(page: Page) -> bool:
    ups = [value for _, value in page.series("gateway_part_up")]
    return page.figure("gateway_ready") == 1 and len(ups) > 0 and all(ups)
