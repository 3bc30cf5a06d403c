"""The order of a renewal: what it replaces, with and without the CA's consent, once for all."""

from pathlib import Path

import pytest

from tests.integration.authorities.conftest import AriLab
from tests.integration.authorities.duo import running_duo
from tests.integration.authorities.renewing import name_of, renewing_ca, replaced_by
from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Drop, Lose, Mood, Refuse
from tests.lab.bind import BindPair
from tests.lab.gateway import start_gateway
from tests.lab.ports import free_port
from tests.lab.process import wait_until

REFUSALS = [
    Refuse(409, "alreadyReplaced"),
    Refuse(400, "malformed"),
    Refuse(403, "unauthorized"),
    Refuse(404, "malformed"),
]


@pytest.mark.parametrize("mood", REFUSALS, ids=lambda mood: mood.name)
def test_refused_replacement_is_ordered_again_without_it(ari: AriLab, mood: Refuse) -> None:
    mine, held = ari.issued()
    with ari.ca.proxy.on(Operation.NEW_ORDER, mood, hostname=mine.hostname):
        ari.duo.renew_now(mine.hostname)
        ari.duo.wait_until_renewed(mine, held["serial"])
    told = [(replaced_by(order), order.status) for order in ari.ca.orders(mine.hostname)]
    assert told == [(None, 201), (name_of(held), mood.status), (None, 201)]
    # It was no failure: nothing waited, nobody was warned.
    assert not ari.held_up(mine)


AWAY = [
    # Pebble answers 500 to the name of a certificate that it does not know.
    (Refuse(500, "serverInternal"), False),
    # Without a problem document it may be anybody's word, or the CA's about the replacement.
    (Refuse(404), False),
    (Refuse(409), False),
    (Refuse(429, "rateLimited", retry_after="1"), True),
    (Drop(), True),
]


@pytest.mark.parametrize(("mood", "says_so_again"), AWAY, ids=str)
def test_order_that_the_authority_could_not_take_is_placed_again(
    ari: AriLab, mood: Mood, says_so_again: bool
) -> None:
    mine, held = ari.issued()
    # Twice: what is cut off is sent once more at once, in case that an idle connection was closed.
    times = 2 if isinstance(mood, Drop) else 1
    with ari.ca.proxy.on(Operation.NEW_ORDER, mood, hostname=mine.hostname, times=times):
        ari.duo.renew_now(mine.hostname)
        ari.duo.wait_until_renewed(mine, held["serial"])
        # What the CA's words do not name concerns the whole account, and other tests use it.
        ari.duo.forget_ledgers()
    first, again = ari.ca.made_orders(mine.hostname)
    assert replaced_by(first) is None
    assert replaced_by(again) == (name_of(held) if says_so_again else None)
    assert len(ari.ca.orders(mine.hostname)) == 2 + times


def test_certificate_that_was_replaced_before_is_renewed_all_the_same(ari: AriLab) -> None:
    mine, first = ari.issued()
    ari.duo.renew_now(mine.hostname)
    second = ari.duo.wait_until_renewed(mine, first["serial"])
    # As after a Redis that came back from a backup of before the renewal.
    ari.duo.change_certificate(
        mine.hostname, lambda _: {**first, "renew_at_ms": 1, "share_at_ms": 1}
    )
    mood: list[Mood] = [] if ari.ca.is_newer else [Refuse(409, "alreadyReplaced")]
    for each in mood:
        ari.ca.proxy.on(Operation.NEW_ORDER, each, hostname=mine.hostname)
    wait_until(
        lambda: (
            ari.duo.certificate(mine.hostname)["serial"] not in {first["serial"], second["serial"]}
        ),
        "it is renewed once more",
    )
    told = [(replaced_by(order), order.status) for order in ari.ca.orders(mine.hostname)]
    named = name_of(first)
    assert told == [(None, 201), (named, 201), (named, 409), (None, 201)]
    assert not ari.held_up(mine)


def test_order_whose_answer_was_lost_is_placed_again(ari: AriLab) -> None:
    mine, held = ari.issued()
    with ari.ca.proxy.on(Operation.NEW_ORDER, Lose(), hostname=mine.hostname):
        ari.duo.renew_now(mine.hostname)
        ari.duo.wait_until_renewed(mine, held["serial"])
    first, lost, last = ari.ca.made_orders(mine.hostname)
    assert replaced_by(first) is None
    assert (replaced_by(lost), lost.status) == (name_of(held), None)
    # Or without it, where the CA says that the order that nobody knows of has replaced it already.
    assert replaced_by(last) in {name_of(held), None}
    ari.duo.wait_until_at_rest(mine.hostname)


def test_two_gateways_place_one_order_for_a_renewal(tmp_path: Path, bind: BindPair) -> None:
    with (
        renewing_ca(tmp_path / "ca", bind) as ca,
        running_duo(tmp_path, bind, ca.proxy) as duo,
    ):
        other = start_gateway(duo.config, "gateway-2", port=free_port())
        try:
            caller = duo.world.client("*.example.test")
            mine = [Ownership(caller, f"two-{number}.example.test") for number in range(8)]
            for each in mine:
                each.get()
            assert all(each.certificate() for each in mine)
            serials = {each: duo.certificate(each.hostname)["serial"] for each in mine}
            for each in mine:
                duo.renew_now(each.hostname)
            for each in mine:
                duo.wait_until_renewed(each, serials[each])
                duo.wait_until_at_rest(each.hostname)
                # A client sees the same at both.
                assert each.certificate() == each.at(other.url).certificate()
            assert [len(ca.made_orders(each.hostname)) for each in mine] == [2] * len(mine)
        finally:
            other.stop()
