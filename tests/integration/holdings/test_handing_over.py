"""`gateway holdings hand-over`: a record goes from one ownership to another, or is refused."""

from collections.abc import Callable

import pytest

from gateway.contract import DnsRecord
from gateway.dns.owner import Owner
from gateway.holdings.handing_over import HandOverRefused
from tests.integration.dns.conftest import zone_at
from tests.integration.holdings.handing import assert_handed_over
from tests.integration.holdings.ruins import (
    ADDRESS,
    LOST_KEY,
    ZONE,
    Ruins,
    challenge_debt,
    debts_as_stored,
    holder_of,
    in_zone,
    issuance,
    marked,
)


async def test_record_is_the_takers_afterwards(held: Ruins, giver: Owner, taker: Owner) -> None:
    done = await held.hand_over(giver, taker)
    assert (done.record, done.was_done, done.released) == (ADDRESS, False, False)
    await assert_handed_over(held, giver, taker)
    assert (await held.records.withdraw(giver)).status == "managed-deleted"
    assert await held.in_zone(taker) == in_zone(taker, ADDRESS)
    assert (await held.records.withdraw(taker)).status == "managed-deleted"
    assert await held.in_zone(taker) == set()


async def test_record_goes_to_another_app_id_of_the_same_client(held: Ruins, giver: Owner) -> None:
    taker = held.owner(app="another")
    await held.hand_over(giver, taker)
    await assert_handed_over(held, giver, taker)


async def test_command_again_finds_it_done(held: Ruins, giver: Owner, taker: Owner) -> None:
    await held.hand_over(giver, taker)
    assert (await held.hand_over(giver, taker)).was_done
    await assert_handed_over(held, giver, taker)


async def test_record_goes_back_again(held: Ruins, giver: Owner, taker: Owner) -> None:
    await held.hand_over(giver, taker)
    await held.hand_over(taker, giver)
    await assert_handed_over(held, taker, giver)


async def test_foreign_texts_and_their_ttl_stay(held: Ruins, giver: Owner, taker: Owner) -> None:
    name = giver.hostname
    await held.edit(f'add {name} 900 TXT "v=spf1 -all"', f"add {name} 77 CAA 0 issue ;")
    await held.hand_over(giver, taker)
    assert await held.in_zone(taker) == {
        f"300 A {ADDRESS.value}",
        f"900 {marked(taker)}",
        '900 TXT "v=spf1 -all"',
        '77 CAA 0 issue ";"',
    }


async def test_givers_marker_for_the_record_that_redis_remembers_goes_too(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    """Somebody put an earlier address and its marker back, beside the last one's marker."""
    name, earlier = giver.hostname, ADDRESS.model_copy(update={"value": "198.51.100.2"})
    await held.edit(
        f"delete {name} A",
        f"add {name} 300 A {earlier.value}",
        f"add {name} 300 {marked(giver, earlier)}",
    )
    await held.hand_over(giver, taker)
    await held.assert_agreed(taker, earlier)


async def test_what_a_wildcard_makes_up_is_nobodys_to_hand_over(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    """Somebody copied an address and its markers, to the wildcard above a name that has nothing."""
    made_up, wildcard = (held.owner(first="x.wild"), held.owner(first="*.wild").hostname)
    of_taker = held.owner("theirs", first="y.wild")
    await held.edit(
        f"add {wildcard} 300 A {ADDRESS.value}",
        f"add {wildcard} 300 {marked(made_up)}",
        f"add {wildcard} 300 {marked(of_taker)}",
    )
    for giving, taking in (
        (made_up, held.owner("theirs", first="x.wild")),
        (held.owner(first="y.wild"), of_taker),
    ):
        with pytest.raises(HandOverRefused, match="there is no marker at it"):
            await held.hand_over(giving, taking)
        assert (await held.document(giving)).version == ""


async def test_certificate_is_released_and_never_the_takers(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    owed = challenge_debt(ZONE, giver.hostname)
    running = issuance(authorization_url="https://ca.test/authz", directory_url="https://ca.test")
    await held.put(
        giver,
        certificate={"sealed_key": "the giver's"},
        issuance=running.to_json(),
        debts=debts_as_stored(owed),
    )
    assert (await held.hand_over(giver, taker)).released
    document = await held.document(taker)
    assert (document.certificate, document.issuance) == (None, None)
    assert [debt["kind"] for debt in document.debts] == ["challenge-record", "authorization"]
    await assert_handed_over(held, giver, taker)


async def test_hostname_is_handed_over_after_redis_was_lost(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    held.lose_redis()
    await held.make_client("theirs")
    await held.hand_over(giver, taker)
    await held.make_client("mine")
    await assert_handed_over(held, giver, taker)


REFUSALS: dict[str, tuple[Callable[[Ruins], list[str]], str]] = {
    "nothing is there": (lambda _: ["delete NAME"], "there is no marker at it"),
    "its marker is gone": (lambda _: ["delete NAME TXT"], "there is no marker at it"),
    "its address is gone": (lambda _: ["delete NAME A"], "there is a marker and no address"),
    "another address is beside it": (
        lambda _: ["add NAME 300 A 192.0.2.9"],
        "its address was edited by hand",
    ),
    "another key made its marker": (
        lambda ruins: [
            "delete NAME TXT",
            f"add NAME 300 {marked(ruins.owner(), ADDRESS, LOST_KEY)}",
        ],
        "a key that the keyring lacks",
    ),
    "another ownership has it": (
        lambda ruins: ["delete NAME TXT", f"add NAME 300 {marked(ruins.owner('third'))}"],
        "its marker is not that of mine for app",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_hostname_is_not_handed_over_when(
    held: Ruins, giver: Owner, taker: Owner, case: str
) -> None:
    lines, why = REFUSALS[case]
    await held.edit(*(line.replace("NAME", giver.hostname) for line in lines(held)))
    before = await held.in_zone(giver), await held.document(giver)
    with pytest.raises(HandOverRefused, match=why):
        await held.hand_over(giver, taker)
    assert (await held.in_zone(giver), await held.document(giver)) == before


async def test_claimed_hostname_is_not_handed_over(held: Ruins, giver: Owner, taker: Owner) -> None:
    held.lose_redis()
    await held.put(giver, claim={"sinceMs": 1, "note": ""})
    with pytest.raises(HandOverRefused, match="is claimed: take the claim back first"):
        await held.hand_over(giver, taker)
    assert await held.in_zone(giver) == in_zone(giver, ADDRESS)


async def test_hostname_of_a_third_is_not_handed_over(held: Ruins, taker: Owner) -> None:
    words = "is held by mine for app, not by third for app; give --from mine:app."
    with pytest.raises(HandOverRefused, match=words):
        await held.hand_over(held.owner("third"), taker)


@pytest.mark.parametrize("in_between", [False, True])
async def test_intent_of_a_third_gives_way(
    held: Ruins, giver: Owner, taker: Owner, in_between: bool
) -> None:
    """Redis was lost, and the third's call died: it could only have come to a conflict."""
    held.lose_redis()
    await held.make_client("theirs")
    third = held.owner("third")
    intent = {**ADDRESS.to_wire(), "published": False, "edition": "e", "sinceMs": 1}

    async def intend() -> None:
        await held.put(third, holder=holder_of(third), record=intent)

    if in_between:
        held.exchange.after_update.set(intend)
    else:
        await intend()
    await held.hand_over(giver, taker)
    await held.assert_agreed(taker, ADDRESS)


async def test_what_the_policy_forbids_changes_nothing(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    def judge(record: DnsRecord) -> None:
        raise HandOverRefused(f"not {record.value}")

    with pytest.raises(HandOverRefused, match=f"not {ADDRESS.value}"):
        await held.handing_over.hand_over(giver, taker, judge)
    await held.assert_agreed(giver, ADDRESS)


async def test_giver_that_is_the_taker_is_refused(held: Ruins, giver: Owner) -> None:
    with pytest.raises(HandOverRefused, match="the same ownership"):
        await held.hand_over(giver, giver)


async def test_name_in_no_configured_zone_is_refused(
    held: Ruins, giver: Owner, taker: Owner
) -> None:
    held.at(zone_at(held.server.primary, held.server.tsig, "elsewhere.test"))
    with pytest.raises(HandOverRefused, match="No configured zone holds"):
        await held.hand_over(giver, taker)
