"""When a server counts as silent, and when a line in the log says so."""

import pytest
from structlog.testing import capture_logs

from gateway.dns.errors import NoReply, NoRoute, Unreachable
from gateway.dns.replies import Peer
from gateway.dns.silences import SILENCE_SECONDS, Silences
from tests.unit.dns.building import ZONE

PEER = Peer.primary_of(ZONE)
NAME_SERVER = Peer(ZONE.primary, ZONE.name)
DEAD = Unreachable("Nobody is there.")
LATER = SILENCE_SECONDS + 1


@pytest.fixture
def silences() -> Silences:
    return Silences()


def test_server_is_silent_for_half_a_minute(silences: Silences) -> None:
    silences.not_heard(PEER, "tcp", 100.0, DEAD)
    assert silences.is_silent(PEER.endpoint, 100.0 + SILENCE_SECONDS - 1)
    assert not silences.is_silent(PEER.endpoint, 100.0 + SILENCE_SECONDS)


def test_server_that_was_heard_is_silent_no_more(silences: Silences) -> None:
    silences.not_heard(PEER, "tcp", 100.0, DEAD)
    silences.heard(PEER, "udp")
    assert not silences.is_silent(PEER.endpoint, 100.0)


def test_silence_and_its_end_have_one_line_each(silences: Silences) -> None:
    with capture_logs() as lines:
        for now in (0.0, 1.0, LATER):
            silences.not_heard(PEER, "tcp", now, DEAD)
            silences.not_heard(PEER, "udp", now, NoReply("No answer."))
        silences.heard(PEER, "udp")
        silences.heard(PEER, "tcp")
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("dns server silent", "warning"),
        ("dns server answers again", "info"),
    ]
    assert {line["server"] for line in lines} == {str(ZONE.primary)}
    assert lines[0]["detail"] == "Nobody is there."


def test_server_that_takes_udp_alone_has_one_line(silences: Silences) -> None:
    with capture_logs() as lines:
        for now in (0.0, LATER, 2 * LATER):
            silences.not_heard(PEER, "tcp", now, DEAD)
            silences.heard(PEER, "udp")
    assert [line["event"] for line in lines] == ["dns server silent"]


def test_server_that_loses_messages_now_and_then_has_a_line_each_half_minute_at_most(
    silences: Silences,
) -> None:
    with capture_logs() as lines:
        for now in range(60):
            silences.not_heard(PEER, "tcp", float(now), DEAD)
            silences.heard(PEER, "tcp")
    assert [line["event"] for line in lines].count("dns server silent") == 2


def test_name_server_that_this_machine_has_no_route_to_has_no_line(silences: Silences) -> None:
    with capture_logs() as lines:
        silences.not_heard(NAME_SERVER, "udp", 0.0, NoRoute("No IPv6 here."))
    assert lines == []
    with capture_logs() as lines:
        silences.not_heard(PEER, "tcp", 0.0, NoRoute("No IPv6 here."))
    assert len(lines) == 1
