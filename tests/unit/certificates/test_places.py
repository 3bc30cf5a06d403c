"""Where a challenge goes is known for two seconds, until it is taken."""

from gateway.certificates.places import KEPT_SECONDS, MAX_KEPT, Places
from gateway.contract.names import Hostname
from gateway.dns.challenges import ChallengeTarget
from tests.unit.dns.building import ZONE

HOSTNAME = Hostname("relay.example.test")
PLACE = ChallengeTarget(ZONE, "_acme-challenge.relay.example.test")
OTHER = ChallengeTarget(ZONE, "_acme-challenge.other.example.test")


def test_place_is_known_until_two_seconds_later() -> None:
    places = Places()
    places.keep(HOSTNAME, PLACE, 10.0)
    assert places.take(HOSTNAME, 10.0 + KEPT_SECONDS) == PLACE


def test_place_is_not_known_any_longer() -> None:
    places = Places()
    places.keep(HOSTNAME, PLACE, 10.0)
    assert places.take(HOSTNAME, 10.1 + KEPT_SECONDS) is None


def test_place_is_taken_once() -> None:
    places = Places()
    places.keep(HOSTNAME, PLACE, 10.0)
    places.take(HOSTNAME, 10.0)
    assert places.take(HOSTNAME, 10.0) is None


def test_place_that_was_looked_at_is_still_there() -> None:
    places = Places()
    places.keep(HOSTNAME, PLACE, 10.0)
    assert places.at(HOSTNAME, 10.0) == places.at(HOSTNAME, 11.0) == PLACE
    assert places.at(HOSTNAME, 10.1 + KEPT_SECONDS) is None


def test_place_found_last_counts() -> None:
    places = Places()
    places.keep(HOSTNAME, OTHER, 10.0)
    places.keep(HOSTNAME, PLACE, 11.0)
    assert places.take(HOSTNAME, 13.0) == PLACE


def test_place_of_many_is_of_the_latest() -> None:
    places = Places()
    places.keep(HOSTNAME, PLACE, 10.0)
    for number in range(MAX_KEPT):
        places.keep(Hostname(f"h{number}.example.test"), OTHER, 10.0)
    assert places.take(HOSTNAME, 10.0) is None
    assert places.take(Hostname("h0.example.test"), 10.0) == OTHER
