"""Updates of many names in one message, on every kind of server."""

from gateway.dns.exchange import Limits
from gateway.dns.outcome import OutcomeKind
from gateway.dns.zones import Zone
from tests.integration.dns.conftest import V4, V4_OTHER, shown
from tests.integration.dns.hand import Hand
from tests.integration.dns.test_joining import Noting, Taking, callers, publish_all
from tests.integration.dns.test_races import FOREIGN
from tests.servers.conftest import Tells
from tests.servers.eyes import Eyes

PATIENT = Limits(udp_seconds=5.0, tcp_seconds=8.0)
"""A busy machine's: what is asked here is what a server does, not how fast."""


async def test_many_names_at_once(
    zone: Zone, hand: Hand, eyes: Eyes, fresh_label: str, tells: Tells
) -> None:
    exchange = Noting(PATIENT)
    some = callers(exchange, zone, fresh_label)
    created = await publish_all(some)
    replaced = await publish_all(some, V4_OTHER)
    assert all(eyes.records(each.hostname) == shown(each, V4_OTHER) for each in some)
    is_joined = "some in one message" if exchange.joined else "each by itself"
    kinds = {outcome.kind.value for outcome in (*created, *replaced)}
    tells("40 names at once: create, replace", f"{', '.join(sorted(kinds))}, {is_joined}")


async def test_one_of_many_names_taken_after_reading(
    zone: Zone, hand: Hand, eyes: Eyes, fresh_label: str, tells: Tells
) -> None:
    exchange = Taking(hand, PATIENT)
    some = callers(exchange, zone, fresh_label)
    exchange.taken = [some[7].hostname, some[30].hostname]
    outcomes = await publish_all(some)
    for each, outcome in zip(some, outcomes, strict=True):
        is_taken = each.hostname in exchange.taken
        assert outcome.kind is (OutcomeKind.CONFLICT if is_taken else OutcomeKind.CREATED)
        assert eyes.records(each.hostname) == ({FOREIGN} if is_taken else shown(each, V4))
    tells("the same, 2 of them taken after reading", "2 conflicts, 38 created")
