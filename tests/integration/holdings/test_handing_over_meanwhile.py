"""`gateway holdings hand-over` that is killed, unheard of, or not alone: it comes to one owner."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from gateway.dns.owner import Owner
from gateway.holdings import handing_over
from gateway.holdings.handing_over import HandOverRefused
from gateway.store.documents import Contended
from tests.integration.dns.conftest import zone_at
from tests.integration.dns.servers import lossy_line
from tests.integration.holdings.handing import assert_handed_over
from tests.integration.holdings.ruins import (
    ADDRESS,
    OTHER_ADDRESS,
    ZONE,
    Ruins,
    holder_of,
    in_zone,
    marked,
)


class KilledError(Exception):
    """The command ends here, as by SIGKILL: nothing after this moment happens."""


async def die() -> None:
    raise KilledError


async def killed_after_the_zone(held: Ruins, giver: Owner, taker: Owner) -> None:
    held.exchange.after_update.set(die)
    with pytest.raises(KilledError):
        await held.hand_over(giver, taker)
    assert await held.in_zone(taker) == in_zone(taker, ADDRESS)
    assert await held.holder(giver) == holder_of(giver)


Meanwhile = Callable[[Ruins, Owner, Owner], Awaitable[None]]


async def _nothing(_ruins: Ruins, _giver: Owner, _taker: Owner) -> None:
    return None


async def _both_publish(ruins: Ruins, giver: Owner, taker: Owner) -> None:
    assert (await ruins.publish(giver, OTHER_ADDRESS)).status == "record-conflict"
    assert (await ruins.publish(taker, OTHER_ADDRESS)).status == "record-conflict"


async def _giver_withdraws(ruins: Ruins, giver: Owner, taker: Owner) -> None:
    assert (await ruins.records.withdraw(giver)).status == "managed-deleted"
    assert await ruins.in_zone(taker) == in_zone(taker, ADDRESS)


async def _redis_is_lost(ruins: Ruins, giver: Owner, taker: Owner) -> None:
    ruins.lose_redis()
    await ruins.make_client("mine")
    await ruins.make_client("theirs")
    assert (await ruins.publish(giver)).status == "record-conflict"
    assert (await ruins.publish(taker)).status == "managed-unchanged"


@pytest.mark.parametrize("meanwhile", [_nothing, _both_publish, _giver_withdraws, _redis_is_lost])
async def test_command_that_died_after_the_zone_is_finished_by_the_next(
    held: Ruins, giver: Owner, taker: Owner, meanwhile: Meanwhile
) -> None:
    """Until then the giver meets a conflict in the zone, and the taker one in Redis."""
    await killed_after_the_zone(held, giver, taker)
    await meanwhile(held, giver, taker)
    assert await held.in_zone(taker) == in_zone(taker, ADDRESS)
    assert (await held.hand_over(giver, taker)).was_done
    await assert_handed_over(held, giver, taker)


async def test_command_that_died_before_the_zone_has_changed_nothing(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    held.exchange.before_update.set(die)
    with pytest.raises(KilledError):
        await held.hand_over(giver, taker)
    await held.assert_agreed(giver, ADDRESS)
    assert (await held.publish(taker)).status == "record-conflict"
    assert (await held.publish(giver)).status == "managed-unchanged"
    await held.hand_over(giver, taker)
    await assert_handed_over(held, giver, taker)


async def test_command_that_died_after_redis_is_done(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    """Only the giver's index has an entry too many, which whoever reads it checks."""
    held.taking.after.set(die)
    with pytest.raises(KilledError):
        await held.hand_over(giver, taker)
    await held.assert_agreed(taker, ADDRESS)
    await held.hand_over(giver, taker)
    await assert_handed_over(held, giver, taker)


async def test_answer_of_the_server_that_was_lost_is_found_out(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    async with lossy_line(held.server.primary, lambda *_: None, with_tcp=True) as line:
        held.at(zone_at(line, held.server.tsig, ZONE))
        done = await held.hand_over(giver, taker)
    assert (done.record, done.was_done) == (ADDRESS, False)
    held.at(zone_at(held.server.primary, held.server.tsig, ZONE))
    await assert_handed_over(held, giver, taker)


async def test_server_that_is_not_heard_of_again_leaves_it_open(
    held: Ruins, giver: Owner, taker: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update was made, its reply lost, and nothing can be read: the next command finds out."""
    monkeypatch.setattr(handing_over, "BOUND_SECONDS", 0.5)
    held.exchange.after_update.set(held.exchange.silence)
    with pytest.raises(HandOverRefused, match="is not known: run the same command again"):
        await held.hand_over(giver, taker)
    held.exchange.before.set(_silence_is_over)
    assert (await held.hand_over(giver, taker)).was_done
    await assert_handed_over(held, giver, taker)


async def _silence_is_over() -> None:
    return None


async def test_replacement_by_the_giver_at_that_moment_is_handed_over(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    held.exchange.before_update.set(lambda: held.publish(giver, OTHER_ADDRESS))
    done = await held.hand_over(giver, taker)
    assert (held.exchange.before_update.has_come, done.record) == (True, OTHER_ADDRESS)
    await assert_handed_over(held, giver, taker, OTHER_ADDRESS)


async def test_replacement_by_the_giver_that_comes_too_late_is_a_conflict(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    """The giver has read its hold, and then the hostname is handed over."""
    held.exchange.before.set(lambda: held.hand_over(giver, taker))
    assert (await held.publish(giver, OTHER_ADDRESS)).status == "record-conflict"
    await assert_handed_over(held, giver, taker)


async def test_replacement_by_the_giver_that_is_remembered_too_late_is_a_conflict(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    """The giver has written the zone, and then the hostname is handed over."""
    held.exchange.after_update.set(lambda: held.hand_over(giver, taker))
    assert (await held.publish(giver, OTHER_ADDRESS)).status == "record-conflict"
    await assert_handed_over(held, giver, taker, OTHER_ADDRESS)


async def test_withdrawal_by_the_giver_at_that_moment_leaves_nothing_to_hand_over(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    held.exchange.before_update.set(lambda: held.records.withdraw(giver))
    with pytest.raises(HandOverRefused, match="there is no marker"):
        await held.hand_over(giver, taker)
    assert await held.in_zone(giver) == set()
    assert (await held.document(giver)).version == ""


async def test_withdrawal_by_the_taker_at_that_moment_is_not_undone(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    """Redis was lost, so that nothing keeps the taker from its record once the zone has it."""
    held.lose_redis()
    await held.make_client("theirs")
    held.exchange.after_update.set(lambda: held.records.withdraw(taker))
    with pytest.raises(HandOverRefused, match="changed again at the same moment"):
        await held.hand_over(giver, taker)
    assert await held.in_zone(taker) == set()
    assert (await held.document(taker)).version == ""


async def test_address_edited_at_that_moment_is_refused_and_stays(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    name = giver.hostname

    async def edit() -> None:
        await held.edit(f"delete {name} A", f"add {name} 300 A 192.0.2.9")

    held.exchange.before_update.set(edit)
    with pytest.raises(HandOverRefused, match="not that of mine for app for the address"):
        await held.hand_over(giver, taker)
    assert await held.in_zone(giver) == {"300 A 192.0.2.9", f"300 {marked(giver)}"}


async def test_third_that_takes_the_hostname_in_between_is_told(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    """Redis was lost; the third has it for a moment. The next command finishes."""
    held.lose_redis()
    await held.make_client("theirs")
    third = held.owner("third")
    held.exchange.after_update.set(lambda: held.put(third, holder=holder_of(third)))
    with pytest.raises(HandOverRefused, match="is held by third for app"):
        await held.hand_over(giver, taker)
    await held.put(third, holder=None)
    await held.hand_over(giver, taker)
    await held.assert_agreed(taker, ADDRESS)


async def test_client_removed_in_between_is_told(held: Ruins, giver: Owner, taker: Owner) -> None:
    held.exchange.after_update.set(lambda: held.clients.drop(taker.client_id))
    with pytest.raises(HandOverRefused, match="There is no client theirs any more"):
        await held.hand_over(giver, taker)
    await held.make_client("theirs")
    assert (await held.hand_over(giver, taker)).was_done
    await assert_handed_over(held, giver, taker)


async def test_two_commands_at_once_come_to_one_taker(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    third = held.owner("third")
    await held.make_client("third")
    done = await asyncio.gather(
        held.hand_over(giver, taker), held.hand_over(giver, third), return_exceptions=True
    )
    (refused,) = (each for each in done if isinstance(each, BaseException))
    assert isinstance(refused, HandOverRefused)
    winner = third if isinstance(done[0], BaseException) else taker
    await assert_handed_over(held, giver, winner)


@pytest.mark.parametrize("seed", range(3))
async def test_calls_and_commands_at_once_leave_one_record_or_none(held: Ruins, seed: int) -> None:
    """Both ownerships, hand-overs in both directions and rebuilds, all at once and at random."""
    owners = [held.owner(), held.owner("theirs")]
    chance = random.Random(seed)  # noqa: S311 (to be repeatable, not secret)

    async def act() -> None:
        one, other = chance.sample(owners, 2)
        record = chance.choice([ADDRESS, OTHER_ADDRESS])
        acts: list[Callable[[], Awaitable[object]]] = [
            lambda: held.publish(one, record),
            lambda: held.records.withdraw(one),
            lambda: held.hand_over(one, other),
            lambda: held.rebuild("app"),
        ]
        with suppress(HandOverRefused, Contended):
            await chance.choices(acts, [5, 2, 3, 1])[0]()

    async def several() -> None:
        for _ in range(6):
            await act()

    await asyncio.gather(*(several() for _ in range(6)))
    found = await held.in_zone(owners[0])
    pairs = [in_zone(owner, record) for owner in owners for record in (ADDRESS, OTHER_ADDRESS)]
    assert found in (set(), *pairs)
    statuses = [(await held.publish(owner)).status for owner in owners]
    assert statuses.count("record-conflict") == 1
    for owner in owners:
        assert (await held.records.withdraw(owner)).status == "managed-deleted"
    assert await held.in_zone(owners[0]) == set()
    assert (await held.document(owners[0])).version == ""
