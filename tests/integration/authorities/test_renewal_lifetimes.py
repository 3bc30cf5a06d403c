"""Renewal at every lifetime: planned in order, done in time, and what is served until and after."""

import time
from pathlib import Path

import pytest

from tests.integration.authorities.duo import Duo, running_duo
from tests.integration.authorities.renewing import is_found_by_pebble, renewing_ca
from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Refuse
from tests.lab.bind import BindPair
from tests.lab.pebble import start_pebble
from tests.lab.process import wait_until

DAY = 24 * 3600
LIFETIMES = [3600, 6 * DAY, 90 * DAY, 365 * DAY]


def shares_of(duo: Duo, mine: Ownership, seconds: int) -> tuple[float, float]:
    """When a certificate's renewal starts and when its client is told, as shares of its life."""
    told, held = mine.certificate(), duo.certificate(mine.hostname)
    times = [told["validFrom"], held["renew_at_ms"], told["renewAfter"], told["validUntil"]]
    assert times == sorted(set(times))
    life_ms = told["validUntil"] - told["validFrom"]
    # Pebble counts the last second in.
    assert seconds - 1 <= life_ms / 1000 <= seconds
    renew, tell = ((each - times[0]) / life_ms for each in times[1:3])
    return renew, tell


@pytest.mark.parametrize("seconds", LIFETIMES)
def test_renewal_is_planned_in_order_at_every_lifetime(
    tmp_path: Path, bind: BindPair, seconds: int
) -> None:
    with (
        renewing_ca(tmp_path / "ca", bind, validity_seconds=seconds) as ca,
        running_duo(tmp_path, bind, ca.proxy) as duo,
    ):
        # Pebble's window is two days wide: for an hour's certificate it begins long before and
        # ends long after that hour.
        suggested, unsaid = duo.world.ownership(), duo.world.ownership()
        silent = Refuse(500)
        ca.proxy.on(Operation.RENEWAL_INFO, silent, hostname=unsaid.hostname, times=None)
        for mine in (suggested, unsaid):
            mine.certificate()
            duo.wait_until_at_rest(mine.hostname)
        renew, _ = shares_of(duo, suggested, seconds)
        assert 0.1 <= renew <= 0.9
        held = duo.certificate(suggested.hostname)
        if is_found_by_pebble(held):
            assert held["window_ms"] == list(ca.window_of(held))
        renew, tell = shares_of(duo, unsaid, seconds)
        assert 0.59 < renew <= 0.66 < tell < 0.75


def test_short_lived_certificate_is_renewed_over_and_over_without_a_gap(
    tmp_path: Path, bind: BindPair
) -> None:
    folder = tmp_path / "ca"
    folder.mkdir()
    pebble = start_pebble(folder, bind.primary, validity_seconds=40)
    early = {"GATEWAY_ACME__0__RENEW_AT": "0.1"}
    try:
        with running_duo(tmp_path, bind, pebble, environ=early) as duo:
            mine = duo.world.ownership()
            seen = [mine.certificate()]

            def is_renewed_twice() -> bool:
                answer = mine.get()
                assert answer["status"] == "ready"
                certificate = answer["certificate"]
                assert certificate["validUntil"] > time.time() * 1000 - 1000
                if certificate != seen[-1]:
                    seen.append(certificate)
                return len(seen) == 3

            wait_until(is_renewed_twice, "it is renewed twice", 60)
            assert len({each["privateKeyPem"] for each in seen}) == 3
            ends = [each["validUntil"] for each in seen]
            assert ends == sorted(set(ends))
    finally:
        pebble.stop()


def test_expired_certificate_is_never_served_while_the_authority_is_away(
    tmp_path: Path, bind: BindPair
) -> None:
    folder = tmp_path / "ca"
    folder.mkdir()
    pebble = start_pebble(folder, bind.primary, validity_seconds=7)
    try:
        late = {"GATEWAY_ACME__0__RENEW_AT": "0.9"}
        with running_duo(tmp_path, bind, pebble, environ=late) as duo:
            mine = duo.world.ownership()
            held = mine.certificate()
            pebble.stop()

            def has_expired() -> bool:
                before_ms = time.time() * 1000
                answer = mine.get()
                if answer["status"] == "ready":
                    assert before_ms < held["validUntil"]
                    return False
                assert time.time() * 1000 >= held["validUntil"]
                return True

            wait_until(has_expired, "the certificate expires")
            answer = mine.get()
            assert (answer["status"], answer["reason"]) == ("refused", "authority-unavailable")
            assert answer["retryAfterMs"] > 0
            assert duo.issuance(mine.hostname)["renewal"]
            # Back, and as after a reset: it knows neither our account nor the certificate.
            pebble.start()
            duo.hurry(mine.hostname)
            wait_until(lambda: mine.get()["status"] == "ready", "it is issued again")
            assert mine.certificate()["validUntil"] > held["validUntil"]
    finally:
        pebble.stop()
