"""`gateway holdings forget`: what a zone that is configured no more would wait for for ever."""

import pytest

from gateway.holdings.forgetting import ForgetRefused
from tests.integration.dns.conftest import zone_at
from tests.integration.holdings.ruins import (
    ADDRESS,
    ZONE,
    Ruins,
    challenge_debt,
    debts_as_stored,
    holder_of,
    in_zone,
    issuance,
)

ELSEWHERE = "elsewhere.test"


@pytest.fixture
async def held(ruins: Ruins) -> Ruins:
    """A record in a zone that is configured."""
    await ruins.make_client()
    await ruins.publish(ruins.owner())
    return ruins


@pytest.fixture
def given_up(held: Ruins) -> Ruins:
    """The same, and the zone is configured no more."""
    held.at(zone_at(held.server.primary, held.server.tsig, ELSEWHERE))
    return held


async def test_record_is_forgotten_and_stays_in_its_zone(given_up: Ruins) -> None:
    owner = given_up.owner()
    assert (await given_up.records.withdraw(owner)).status == "zone-unavailable"
    forgotten = await given_up.forgetting.forget(owner.hostname, holder_of(owner))
    assert (forgotten.record, forgotten.keeps_certificate) == (ADDRESS, False)
    assert (await given_up.document(owner)).version == ""
    assert await given_up.in_zone(owner) == in_zone(owner, ADDRESS)
    assert await given_up.clients.drop(owner.client_id)


async def test_certificate_and_other_debts_stay(given_up: Ruins) -> None:
    owner = given_up.owner()
    lost, owed = (challenge_debt(zone, owner.hostname) for zone in (ZONE, ELSEWHERE))
    certificate = {"sealed_key": "k"}
    await given_up.put(owner, certificate=certificate, debts=debts_as_stored(lost, owed))
    forgotten = await given_up.forgetting.forget(owner.hostname, holder_of(owner))
    assert (forgotten.challenges, forgotten.keeps_certificate) == ((lost,), True)
    document = await given_up.document(owner)
    assert (document.holder, document.record) == (holder_of(owner), None)
    assert document.certificate == certificate
    assert document.debts == debts_as_stored(owed)
    assert await given_up.is_indexed(owner)


async def test_challenge_in_a_lost_zone_is_forgotten_and_the_record_elsewhere_stays(
    held: Ruins,
) -> None:
    """As with an alias of the challenge name into another zone."""
    owner = held.owner()
    await held.put(owner, debts=debts_as_stored(challenge_debt(ELSEWHERE, owner.hostname)))
    forgotten = await held.forgetting.forget(owner.hostname, holder_of(owner))
    assert (forgotten.record, len(forgotten.challenges)) == (None, 1)
    await held.assert_agreed(owner, ADDRESS)


async def test_debt_that_nobody_holds_is_forgotten(given_up: Ruins) -> None:
    owner = given_up.owner(first="debtor")
    await given_up.put(owner, debts=debts_as_stored(challenge_debt(ZONE, owner.hostname)))
    assert len((await given_up.forgetting.forget(owner.hostname, None)).challenges) == 1
    assert (await given_up.document(owner)).version == ""


async def test_challenge_that_an_issuance_goes_on_with_stays(given_up: Ruins) -> None:
    owner = given_up.owner(first="busy")
    debt = challenge_debt(ZONE, owner.hostname)
    running = issuance(challenge_zone=ZONE, challenge_name=debt.name, challenge_value=debt.value)
    await given_up.put(
        owner, holder=holder_of(owner), issuance=running.to_json(), debts=debts_as_stored(debt)
    )
    with pytest.raises(ForgetRefused, match="holds nothing of busy"):
        await given_up.forgetting.forget(owner.hostname, holder_of(owner))


async def test_record_in_a_configured_zone_is_not_forgotten(held: Ruins) -> None:
    owner = held.owner()
    with pytest.raises(ForgetRefused, match=f"lies in the zone {ZONE}, which is configured"):
        await held.forgetting.forget(owner.hostname, holder_of(owner))
    await held.assert_agreed(owner, ADDRESS)


async def test_record_in_a_child_zone_that_its_parent_delegates_away_is_forgotten(
    held: Ruins,
) -> None:
    """The child was configured; now only the parent is, and it answers for neither name."""
    owner = held.owner()
    debt = challenge_debt(ZONE, owner.hostname)
    await held.put(owner, debts=debts_as_stored(debt))
    await held.edit(f"add {held.label}.{ZONE} 300 NS ns.elsewhere.example.")
    assert (await held.records.withdraw(owner)).status == "zone-unavailable"
    forgotten = await held.forgetting.forget(owner.hostname, holder_of(owner))
    assert (forgotten.record, forgotten.challenges) == (ADDRESS, (debt,))
    assert (await held.document(owner)).version == ""
    assert await held.clients.drop(owner.client_id)


async def test_record_is_not_forgotten_while_its_zone_cannot_be_asked(held: Ruins) -> None:
    owner = held.owner()
    held.exchange.before.set(held.exchange.silence)
    with pytest.raises(ForgetRefused, match="which is configured"):
        await held.forgetting.forget(owner.hostname, holder_of(owner))


async def test_document_of_a_newer_release_is_not_forgotten(given_up: Ruins) -> None:
    owner = given_up.owner()
    await given_up.put(owner, debts=({"kind": "unheard-of"},))
    with pytest.raises(ForgetRefused, match="not readable by this release"):
        await given_up.forgetting.forget(owner.hostname, holder_of(owner))


@pytest.mark.parametrize(
    ("named", "held_by", "why"),
    [
        ("other", "mine", "is held by mine for app; give --from mine:app."),
        (None, "mine", "is held by mine for app; give --from mine:app."),
        ("mine", None, "Nobody holds"),
    ],
)
async def test_another_holder_than_the_one_that_is_named_is_refused(
    given_up: Ruins, named: str | None, held_by: str | None, why: str
) -> None:
    owner = given_up.owner(first="whose")
    holder = None if held_by is None else holder_of(given_up.owner(held_by))
    debts = debts_as_stored(challenge_debt(ZONE, owner.hostname))
    await given_up.put(owner, holder=holder, debts=debts)
    given = None if named is None else holder_of(given_up.owner(named))
    with pytest.raises(ForgetRefused, match=why):
        await given_up.forgetting.forget(owner.hostname, given)
    assert (await given_up.document(owner)).debts == debts
