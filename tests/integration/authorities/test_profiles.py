"""ACME profiles: what is configured is asked for, also at a renewal, and may be refused.

On the newer Pebble. Where it cannot be had, the system's takes no notice of profiles: the proxy
then refuses the unknown one, and what the other one is for (six days) is not seen.
"""

from collections.abc import Iterator

import pytest

from tests.integration.authorities.duo import is_from, running_duo
from tests.integration.authorities.renewing import (
    DAY_MS,
    NINETY_DAYS_SECONDS,
    RenewingCa,
    renewing_ca,
)
from tests.lab.acme_calls import Call, Operation
from tests.lab.acme_moods import Refuse
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess

SIX_DAYS_SECONDS = 6 * 86_400
PROFILES = {
    "default": {"description": "ninety days", "validityPeriod": NINETY_DAYS_SECONDS},
    "shortlived": {"description": "six days", "validityPeriod": SIX_DAYS_SECONDS},
}
UNKNOWN = "wishful"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[RenewingCa]:
    folder = tmp_path_factory.mktemp("profiles") / "ca"
    with renewing_ca(folder, bind, settings={"profiles": PROFILES}) as ca:
        yield ca


def profile_of(order: Call) -> object:
    assert order.payload is not None
    return order.payload.get("profile")


def wishing(ca: RenewingCa, hostname: str) -> None:
    """Have the unknown profile refused for a hostname by whoever can."""
    if not ca.is_newer:
        words = f'Order includes unrecognized profile name "{UNKNOWN}"'
        refusal = Refuse(400, "invalidProfile", words)
        ca.proxy.on(Operation.NEW_ORDER, refusal, hostname=hostname, times=None)


def test_profile_is_asked_for_and_again_at_the_renewal(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, profiled: RenewingCa
) -> None:
    shortlived = {"GATEWAY_ACME__0__PROFILE": "shortlived"}
    folder = tmp_path_factory.mktemp("shortlived")
    with running_duo(folder, bind, profiled.proxy, environ=shortlived) as duo:
        mine = duo.world.ownership()
        told = [mine.certificate()]
        serial = duo.certificate(mine.hostname)["serial"]
        duo.renew_now(mine.hostname)
        duo.wait_until_renewed(mine, serial)
        told.append(mine.certificate())
        made = profiled.made_orders(mine.hostname)
        assert [profile_of(order) for order in made] == ["shortlived"] * 2
        if profiled.is_newer:
            days = [(each["validUntil"] - each["validFrom"]) / DAY_MS for each in told]
            assert days == pytest.approx([6, 6], abs=0.01)


def test_unknown_profile_is_refused_in_the_authoritys_words(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, profiled: RenewingCa
) -> None:
    wish = {"GATEWAY_ACME__0__PROFILE": UNKNOWN}
    folder = tmp_path_factory.mktemp("unknown")
    with running_duo(folder, bind, profiled.proxy, environ=wish) as duo:
        mine = duo.world.ownership()
        wishing(profiled, mine.hostname)
        answer = mine.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "authority-refused")
        assert UNKNOWN in answer["message"]
        assert answer["retryAfterMs"] > 0
        assert [profile_of(order) for order in profiled.orders(mine.hostname)] == [UNKNOWN]
        assert not profiled.made_orders(mine.hostname)


def test_next_authority_is_tried_where_one_does_not_know_the_profile(
    tmp_path_factory: pytest.TempPathFactory,
    bind: BindPair,
    profiled: RenewingCa,
    second_pebble: PebbleProcess,
) -> None:
    wish = {"GATEWAY_ACME__0__PROFILE": UNKNOWN}
    folder = tmp_path_factory.mktemp("next")
    with running_duo(folder, bind, profiled.proxy, second_pebble, environ=wish) as duo:
        mine = duo.world.ownership()
        wishing(profiled, mine.hostname)
        assert is_from(mine.certificate(), second_pebble)
        assert len(profiled.orders(mine.hostname)) == 1
