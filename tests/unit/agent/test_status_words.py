"""What `gateway agent status` says, to people and to programs."""

import json
from dataclasses import replace

import pytest

from gateway.agent.running import Holder
from gateway.agent.status import Complaint, HookStatus
from gateway.agent.status_words import agent_line, distance, lines, view
from gateway.contract import DnsRecord
from tests.unit.agent.statuses import (
    DAY_MS,
    HOSTNAME,
    HOUR_MS,
    NEVER_SERVED,
    NOW_MS,
    SECOND_MS,
    SERVED,
    VERSION,
)


@pytest.mark.parametrize(
    ("apart_ms", "words"),
    [
        (0, "now"),
        (999, "now"),
        (-999, "now"),
        (SECOND_MS, "in 1 s"),
        (-119 * SECOND_MS, "119 s ago"),
        (120 * SECOND_MS, "in 2 min"),
        (-119 * 60 * SECOND_MS, "119 min ago"),
        (3 * HOUR_MS, "in 3 h"),
        (-47 * HOUR_MS, "47 h ago"),
        (48 * HOUR_MS, "in 2 d"),
        (-4000 * DAY_MS, "4000 d ago"),
    ],
)
def test_distance_is_told_in_the_unit_that_fits(apart_ms: int, words: str) -> None:
    assert distance(NOW_MS + apart_ms, NOW_MS) == words


def test_hostname_that_is_served_is_told_line_by_line() -> None:
    assert list(lines([SERVED], NOW_MS)) == [
        "relay.cluster-a.example.com  cluster-relay:a",
        "  record       A 198.51.100.85, TTL 60 s; A of the interface eth0",
        "               last published 2027-01-15 05:00:00 UTC, 3 h ago",
        "  certificate  valid until 2027-02-25 08:00:00 UTC, in 41 d",
        "  files        /var/lib/gateway-agent/certificates/live/relay.cluster-a.example.com,"
        f" version {VERSION}",
        "  renewal      due 2027-01-26 08:00:00 UTC, in 11 d",
        "               the gateway is asked next 2027-01-16 03:00:00 UTC, in 19 h",
        f"  hook         has run for version {VERSION}",
        "",
        "In all: relay.cluster-a.example.com is current. The gateway last did what was asked:"
        " 2027-01-15 05:00:00 UTC, 3 h ago.",
    ]


def test_hostname_that_was_never_served_is_told_with_every_reason() -> None:
    assert list(lines([NEVER_SERVED], NOW_MS)) == [
        "relay.cluster-b.example.com  cluster-relay:b  (not current)",
        "  record       never published; given: 198.51.100.86",
        "               fault: no way (since 2027-01-15 07:58:30 UTC, 90 s ago)",
        "  certificate  not usable: there is no certificate yet",
        "               fault: dns-not-ready: nothing answers",
        "  renewal      the gateway is asked next 2027-01-15 08:00:30 UTC, in 30 s",
        "  hook         nothing to run it for yet",
        "  memory       nothing: it is not JSON",
        "",
        "In all: relay.cluster-b.example.com is not current."
        " The gateway last did what was asked: never.",
    ]


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (HookStatus(False, 0, None), [f"still to be run for version {VERSION}"]),
        (
            HookStatus(False, 1, Complaint("no", NOW_MS)),
            [
                f"failed once for version {VERSION}",
                "fault: no (since 2027-01-15 08:00:00 UTC, now)",
            ],
        ),
        (
            HookStatus(False, 3, Complaint("no")),
            [f"failed 3 times for version {VERSION}", "fault: no"],
        ),
    ],
)
def test_hook_that_is_not_done_is_told(hook: HookStatus, words: list[str]) -> None:
    assert SERVED.certificate is not None
    status = replace(SERVED, certificate=replace(SERVED.certificate, hook=hook))
    told = [line[15:] for line in lines([status], NOW_MS)]
    assert told[-2 - len(words) : -2] == words


def test_part_that_is_not_configured_has_no_line() -> None:
    told = list(lines([replace(SERVED, certificate=None)], NOW_MS))
    assert not any("certificate" in line for line in told)


def test_view_is_json_with_the_wire_s_names() -> None:
    told = view([SERVED, NEVER_SERVED], NOW_MS, Holder(4711))
    assert json.loads(json.dumps(told)) == told
    first, second = told["ownerships"]
    assert (told["now"], told["current"], told["lastContact"]) == (
        NOW_MS,
        False,
        NOW_MS - 3 * HOUR_MS,
    )
    assert (first["hostname"], first["appId"], first["current"]) == (
        HOSTNAME,
        "cluster-relay:a",
        True,
    )
    assert first["record"]["published"] == {"type": "A", "value": "198.51.100.85", "ttl": 60}
    assert first["certificate"]["validUntil"] == NOW_MS + 41 * DAY_MS
    assert first["certificate"]["hook"] == {"done": True, "tries": 0, "fault": None}
    assert second["record"]["fault"] == {
        "sentence": "no way",
        "since": NOW_MS - 90 * SECOND_MS,
    }
    assert second["certificate"]["usable"] is False
    assert second["memoryFault"] == "it is not JSON"
    assert told["agent"] == {"running": True, "pid": 4711, "fault": None}


@pytest.mark.parametrize(
    ("holder", "line", "running"),
    [
        (Holder(4711), "Agent: running, process 4711.", True),
        (None, "Agent: not running.", False),
        ("no such list", "Agent: not known whether it runs: no such list.", None),
    ],
)
def test_agent_is_told(holder: Holder | str | None, line: str, running: bool | None) -> None:
    assert agent_line(holder) == line
    assert view([SERVED], NOW_MS, holder)["agent"]["running"] is running


def test_record_that_is_not_the_wanted_one_is_told_with_that() -> None:
    assert SERVED.record is not None
    wanted = DnsRecord(type="A", value="198.51.100.99", ttl=60)
    told = list(lines([replace(SERVED, record=replace(SERVED.record, wanted=wanted))], NOW_MS))
    assert f"{'':15}wanted: A 198.51.100.99, TTL 60 s" in told


def test_what_is_overdue_is_told_where_it_belongs() -> None:
    assert SERVED.record is not None
    assert SERVED.certificate is not None
    record = replace(SERVED.record, overdue="nobody publishes it")
    certificate = replace(SERVED.certificate, overdue="nobody renews it")
    status = replace(SERVED, record=record, certificate=certificate)
    told = list(lines([status], NOW_MS))
    assert told[0].endswith("(not current)")
    assert told[3] == f"{'':15}overdue: nobody publishes it"
    assert told[8] == f"{'':15}overdue: nobody renews it"
    (view_of,) = view([status], NOW_MS, None)["ownerships"]
    assert view_of["record"]["overdue"] == "nobody publishes it"


def test_key_that_this_user_may_not_read_is_told() -> None:
    assert SERVED.certificate is not None
    status = replace(SERVED, certificate=replace(SERVED.certificate, is_key_read=False))
    told = list(lines([status], NOW_MS))
    assert told[4] == f"{'':15}the key cannot be read by this user"
    assert "(not current)" not in told[0]


def test_issuance_that_is_under_way_is_told() -> None:
    assert SERVED.certificate is not None
    awaits = "the gateway obtains a certificate"
    status = replace(SERVED, certificate=replace(SERVED.certificate, awaits=awaits))
    told = list(lines([status], NOW_MS))
    assert told[4] == f"{'':15}under way: {awaits}"
    assert told[0].endswith("(not current)")


def test_view_has_null_for_a_part_that_is_not_configured() -> None:
    (only,) = view([replace(SERVED, record=None)], NOW_MS, None)["ownerships"]
    assert only["record"] is None
