"""Challenge records that are owed: paid by exact value where they were put, else put off and kept.

That none is left after a crash at any point of an issuance is `tests/faults/test_kill_walk.py`.
"""

from gateway.certificates.authorities import Authorities
from gateway.certificates.cleanup import Cleaner, Payment
from gateway.certificates.states import Debt, DebtKind
from gateway.contract.names import Hostname
from gateway.dns.challenges import Challenges
from gateway.dns.exchange import Exchange
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import zone_at
from tests.integration.dns.hand import Hand
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port

VALUE = "value-of-one-issuance"


def debt_at(name: str) -> Debt:
    return Debt(DebtKind.CHALLENGE_RECORD, zone="example.test", name=name, value=VALUE)


async def pay(debt: Debt, *zones: Zone) -> Payment:
    cleaner = Cleaner(Authorities([]), Challenges(Zones(zones), Exchange()))
    return await cleaner.pay(debt, Hostname("relay.example.test"))


async def test_record_in_a_zone_that_left_the_configuration_is_owed_until_it_is_back(
    bind: BindPair, fresh_label: str
) -> None:
    name, hand = f"_acme-challenge.{fresh_label}.example.test", Hand.at(bind)
    hand.add(f'{name} 60 TXT "{VALUE}"', f'{name} 60 TXT "of another issuance"')
    debt = debt_at(name)
    assert not (await pay(debt, zone_at(bind.primary, bind.tsig, "example.net.test"))).paid
    assert len(hand.records(name)) == 2
    assert (await pay(debt, zone_at(bind.primary, bind.tsig))).paid
    assert hand.records(name) == {'60 TXT "of another issuance"'}


async def test_record_at_a_dead_primary_is_owed_and_says_when_to_try_again(
    bind: BindPair, fresh_label: str
) -> None:
    dead = zone_at(Endpoint(LOOPBACK, free_port()), bind.tsig)
    payment = await pay(debt_at(f"_acme-challenge.{fresh_label}.example.test"), dead)
    assert not payment.paid
    assert payment.retry_after_seconds is not None


async def test_record_that_is_gone_already_is_paid(bind: BindPair, fresh_label: str) -> None:
    name = f"_acme-challenge.{fresh_label}.example.test"
    assert (await pay(debt_at(name), zone_at(bind.primary, bind.tsig))).paid
