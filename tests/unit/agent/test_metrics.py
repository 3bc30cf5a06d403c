"""The gauges, as a Prometheus reads them. The file: tests/integration/agent_parts."""

from dataclasses import replace

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gateway import __version__
from gateway.agent.metrics import registry_of
from gateway.agent.status import Complaint, HookStatus, OwnershipStatus
from tests.unit.agent.statuses import DAY_MS, HOSTNAME, HOUR_MS, NEVER_SERVED, NOW_MS, SERVED

Samples = dict[tuple[str, str | None], float]


def samples(*statuses: OwnershipStatus) -> Samples:
    """By name, without its prefix, and hostname."""
    text = generate_latest(registry_of(statuses, NOW_MS)).decode()
    return {
        (sample.name.removeprefix("gateway_agent_"), sample.labels.get("hostname")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("record_ok", 1),
        ("record_fault", 0),
        ("record_published", 1),
        ("record_published_time_seconds", (NOW_MS - 3 * HOUR_MS) / 1000),
        ("certificate_ok", 1),
        ("certificate_fault", 0),
        ("certificate_not_before_seconds", (NOW_MS - 49 * DAY_MS) / 1000),
        ("certificate_not_after_seconds", (NOW_MS + 41 * DAY_MS) / 1000),
        ("certificate_renew_after_seconds", (NOW_MS + 11 * DAY_MS) / 1000),
        ("certificate_answered_time_seconds", (NOW_MS - 5 * HOUR_MS) / 1000),
        ("hook_ok", 1),
        ("hook_failures", 0),
    ],
)
def test_gauge_of_a_hostname_that_is_served(name: str, value: float) -> None:
    assert samples(SERVED)[name, HOSTNAME] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("record_ok", 0),
        ("record_fault", 1),
        ("record_published", 0),
        ("certificate_ok", 0),
        ("certificate_fault", 1),
        ("hook_ok", 0),
    ],
)
def test_gauge_of_a_hostname_that_was_never_served(name: str, value: float) -> None:
    assert samples(NEVER_SERVED)[name, NEVER_SERVED.hostname] == value


def test_date_that_is_not_known_is_left_out() -> None:
    names = {name for name, _ in samples(NEVER_SERVED)}
    assert not any("not_after" in name or "published_time" in name for name in names)


def test_hook_that_failed_is_counted() -> None:
    assert SERVED.certificate is not None
    hook = HookStatus(is_done=False, tries=3, fault=Complaint("no"))
    status = replace(SERVED, certificate=replace(SERVED.certificate, hook=hook))
    assert samples(status)["hook_failures", HOSTNAME] == 3


def test_record_that_stands_is_ok_though_it_could_not_be_published_again() -> None:
    assert SERVED.record is not None
    record = replace(SERVED.record, fault=Complaint("the gateway cannot be reached"))
    told = samples(replace(SERVED, record=record))
    assert (told["record_ok", HOSTNAME], told["record_fault", HOSTNAME]) == (1, 1)


def test_part_that_is_not_configured_has_no_gauge() -> None:
    told = samples(replace(SERVED, certificate=None))
    assert {name for name, hostname in told if hostname} == {
        "record_ok",
        "record_fault",
        "record_published",
        "record_published_time_seconds",
    }


def test_hook_that_is_not_configured_has_no_gauge() -> None:
    assert SERVED.certificate is not None
    told = samples(replace(SERVED, certificate=replace(SERVED.certificate, hook=None)))
    assert ("hook_ok", HOSTNAME) not in told


def test_agent_tells_of_itself() -> None:
    told = samples(SERVED, NEVER_SERVED)
    assert told["last_run_time_seconds", None] == NOW_MS / 1000
    assert told["last_contact_time_seconds", None] == (NOW_MS - 3 * HOUR_MS) / 1000
    assert told["info", None] == 1


def test_contact_that_there_never_was_is_left_out() -> None:
    assert ("last_contact_time_seconds", None) not in samples(NEVER_SERVED)


def test_version_is_a_label() -> None:
    text = generate_latest(registry_of([SERVED], NOW_MS)).decode()
    assert f'gateway_agent_info{{version="{__version__}"}} 1.0' in text
