"""What `gateway check` makes of what it learned of a zone's primaries, rights and name servers."""

from dataclasses import replace

import pytest

from gateway.cli.finding import State
from gateway.cli.findings import (
    done_without,
    primary_findings,
    rights_finding,
    silence_finding,
)
from gateway.dns.health import Silence, Trouble, ZoneHealth
from gateway.dns.zones import Endpoint
from tests.unit.dns.building import ZONE

SILENT = Silence(at=("192.0.2.53:53", "192.0.2.54:53"), is_everywhere=False)
BOUND = replace(ZONE, silent_server_seconds=300.0)
TRIED = "_gateway-check-0.example.test"


def test_silent_servers_are_waited_for_without_end() -> None:
    finding = silence_finding(ZONE, SILENT)
    assert finding.state is State.FAILED
    assert finding.finding == (
        "No answer for the zone from 192.0.2.53:53, 192.0.2.54:53, which every issuance waits for."
    )


def test_silent_servers_that_issuances_go_on_without_are_a_warning() -> None:
    finding = silence_finding(BOUND, SILENT)
    assert finding.state is State.WARNING
    assert finding.finding.endswith("; issuances go on without it after 300 s.")


def test_bound_is_no_help_when_all_servers_are_silent() -> None:
    finding = silence_finding(BOUND, replace(SILENT, is_everywhere=True))
    assert finding.state is State.FAILED
    assert "no certificate is issued" in finding.finding


def test_listed_server_that_is_silent_is_to_be_started_or_taken_out() -> None:
    listed = replace(ZONE, servers=(Endpoint("192.0.2.53", 53),))
    assert "take it out of the zone's servers" in silence_finding(listed, SILENT).remedy
    assert "name the servers to wait for" in silence_finding(ZONE, SILENT).remedy


def test_servers_that_all_answer_are_well() -> None:
    assert silence_finding(ZONE, Silence((), is_everywhere=False)).state is State.OK


def test_key_that_may_change_txt_alone_is_well() -> None:
    finding = rights_finding("acme.example.test", ("A", "AAAA"), TRIED)
    assert (finding.state, finding.remedy) == (State.OK, "")
    assert "challenges only" in finding.finding


def test_refused_types_are_told_with_the_name_that_was_tried() -> None:
    finding = rights_finding("example.test", ("A", "AAAA", "TXT"), TRIED)
    assert finding.state is State.WARNING
    assert f"was refused A, AAAA and TXT at {TRIED}" in finding.finding
    assert "was refused TXT at" in rights_finding("example.test", ("TXT",), TRIED).finding


@pytest.mark.parametrize("trouble", [each for each in Trouble if each is not Trouble.CLOCK])
def test_each_trouble_of_a_primary_has_its_own_remedy(trouble: Trouble) -> None:
    health = ZoneHealth(ok=False, detail="It is so.", trouble=trouble)
    others = [replace(health, trouble=other) for other in Trouble if other is not trouble]
    (finding,) = primary_findings("example.test", health)
    assert (finding.state, finding.finding) == (State.FAILED, "It is so.")
    remedies = [next(primary_findings("example.test", other)).remedy for other in others]
    assert finding.remedy not in ["", *remedies]


def test_refused_clock_has_its_remedy_once() -> None:
    health = ZoneHealth(False, "BADTIME.", clock_skew_seconds=400.0, trouble=Trouble.CLOCK)
    zone, clock = primary_findings("example.test", health)
    assert (zone.remedy, bool(clock.remedy)) == ("", True)
    (alone,) = primary_findings("example.test", replace(health, clock_skew_seconds=None))
    assert alone.remedy == clock.remedy


def test_clock_that_is_off_by_nobody_knows_how_much_is_a_warning() -> None:
    health = ZoneHealth(ok=True, detail="The server serves the zone.", is_clock_off=True)
    zone, clock = primary_findings("example.test", health)
    assert (zone.state, clock.state) == (State.OK, State.WARNING)
    assert "does not tell by how much" in clock.finding


def test_clock_of_which_nothing_is_known_is_not_judged() -> None:
    health = ZoneHealth(ok=True, detail="The server serves the zone.")
    assert [each.part for each in primary_findings("example.test", health)] == ["zone example.test"]


def test_primary_that_another_stands_in_for_is_a_warning() -> None:
    health = ZoneHealth(ok=False, detail="It is dead.", trouble=Trouble.SILENT)
    (finding,) = primary_findings("example.test", health)
    instead = done_without(finding, "192.0.2.54:53 answers in its place")
    assert instead.state is State.WARNING
    assert instead.finding == "It is dead. 192.0.2.54:53 answers in its place."
    assert instead.remedy == finding.remedy
