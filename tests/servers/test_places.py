"""Where a name lies, as each kind of server tells it: wildcards, cuts, DNAMEs, other zones."""

from collections.abc import Callable

from gateway.dns.outcome import OutcomeKind
from gateway.dns.zones import Zone
from tests.integration.dns.conftest import V4, Caller, marker_of
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import Meddling
from tests.servers.conftest import Tells
from tests.servers.eyes import Eyes, taken
from tests.servers.test_records import kinds

WILD = ("A 203.0.113.7", 'TXT "wild"', "CNAME elsewhere.example.org.", "MX 10 mail.test.")


async def test_names_under_a_wildcard_are_free(
    call: Callable[[str], Caller], hand: Hand, eyes: Eyes, tells: Tells, fresh_label: str
) -> None:
    told: set[str] = set()
    for n, record in enumerate(WILD):
        hand.add(f"*.w{n}.{fresh_label}.example.test 300 {record}")
        caller = call(f"relay.w{n}.{fresh_label}.example.test")
        outcomes = [await caller.inspect(), await caller.publish(V4)]
        ours = {f"300 A {V4.value}", f"300 {marker_of(caller.owner, V4)}"}
        assert eyes.records(caller.hostname) == ours
        outcomes += [await caller.publish(V4), await caller.withdraw()]
        assert eyes.records(caller.hostname) == set()
        told.add(kinds(*outcomes))
    tells("below a wildcard of any type: look, publish, again, withdraw", "; ".join(told))


async def test_name_under_a_wildcard_with_the_same_data_is_a_conflict(
    call: Callable[[str], Caller], hand: Hand, tells: Tells, fresh_label: str
) -> None:
    name = f"relay.{fresh_label}.example.test"
    hand.add(f"*.{fresh_label}.example.test 300 A 203.0.113.7", f"{name} 300 A 203.0.113.7")
    outcomes = [await call(name).publish(V4), await call(name).inspect()]
    tells("below a wildcard, a foreign record with the wildcard's data", kinds(*outcomes))


async def test_empty_non_terminal_is_free(
    call: Callable[[str], Caller], hand: Hand, eyes: Eyes, tells: Tells, hostname: str
) -> None:
    hand.add(f"below.{hostname} 300 A 203.0.113.7")
    caller = call(hostname)
    outcomes = [await caller.inspect(), await caller.publish(V4), await caller.withdraw()]
    assert eyes.records(f"below.{hostname}") == {"300 A 203.0.113.7"}
    tells("an empty non-terminal: look, publish, withdraw", kinds(*outcomes))


async def test_name_at_the_apex_is_a_conflict(
    call: Callable[[str], Caller], eyes: Eyes, tells: Tells
) -> None:
    before = eyes.records("example.test")
    outcomes = [await call("example.test").publish(V4), await call("example.test").inspect()]
    assert eyes.records("example.test") == before
    tells("the zone's apex: publish, look", kinds(*outcomes))


async def test_names_at_and_below_a_delegation_are_unavailable(
    call: Callable[[str], Caller], hand: Hand, eyes: Eyes, tells: Tells, fresh_label: str
) -> None:
    cut = f"{fresh_label}.example.test"
    hand.add(f"{cut} 300 NS ns.elsewhere.example.org.")
    serial = eyes.serial()
    outcomes = [await call(cut).publish(V4), await call(f"a.b.{cut}").publish(V4, held=True)]
    assert {outcome.retry_after_seconds for outcome in outcomes} == {None}
    assert all(cut in outcome.detail for outcome in outcomes)
    assert eyes.serial() == serial
    tells("at and below a delegation: publish", kinds(*outcomes))


async def test_name_below_a_dname_is_unavailable(
    call: Callable[[str], Caller], hand: Hand, eyes: Eyes, tells: Tells, fresh_label: str
) -> None:
    hand.add(f"{fresh_label}.example.test 300 DNAME elsewhere.example.org.")
    serial = eyes.serial()
    outcome = await call(f"relay.{fresh_label}.example.test").publish(V4)
    assert outcome.kind is OutcomeKind.UNAVAILABLE
    assert outcome.retry_after_seconds is None
    assert eyes.serial() == serial
    by = "the prerequisites" if "delegation or" in outcome.detail else "the answer"
    tells("below a DNAME: publish", f"{kinds(outcome)}, by {by}")


async def test_cut_that_appears_after_reading_is_noticed(
    call: Callable[[str], Caller],
    hand: Hand,
    eyes: Eyes,
    tells: Tells,
    fresh_label: str,
    zone: Zone,
) -> None:
    told = []
    for n, record in enumerate(["NS ns.elsewhere.example.org.", "DNAME elsewhere.example.org."]):
        above = f"c{n}.{fresh_label}.example.test"

        def cut(_n: int, line: str = f"{above} 300 {record}") -> None:
            hand.add(line)

        below = call(f"relay.{above}")
        told.append(await below.through(zone, Meddling(cut)).publish(V4))
        assert told[-1].retry_after_seconds is None
        assert eyes.records(below.hostname) == set()
    tells("a delegation, a DNAME made above after reading: publish", kinds(*told))


async def test_zone_below_ours_on_the_same_server_is_left_alone(
    call: Callable[[str], Caller], hand: Hand, eyes: Eyes, tells: Tells, fresh_label: str
) -> None:
    alias = f"alias.{fresh_label}.child.example.test"
    hand.add(f"{alias} 300 CNAME ns1.example.test.")
    serials = eyes.serial(), eyes.serial("child.example.test")
    names = (f"{fresh_label}.child.example.test", "ns1.child.example.test", "child.example.test")
    outcomes = [await call(name).publish(V4) for name in (*names, alias)]
    assert all("child.example.test" in outcome.detail for outcome in outcomes)
    assert (eyes.serial(), eyes.serial("child.example.test")) == serials
    told = sorted({kinds(outcome) for outcome in outcomes})
    tells("in a zone below ours, without a delegation: publish", ", ".join(told))


async def test_alias_into_another_zone_of_the_server_is_a_conflict(
    caller: Caller, hand: Hand, tells: Tells, fresh_label: str
) -> None:
    hand.add(f"{fresh_label}.example.net.test 300 A 203.0.113.7")
    hand.add(f"{caller.hostname} 300 CNAME {fresh_label}.example.net.test.")
    outcome = await caller.publish(V4)
    found = [(each.type, each.value) for each in outcome.found]
    assert found == [("CNAME", f"{fresh_label}.example.net.test.")]
    tells("an alias into another zone of the server: publish", kinds(outcome))


async def test_alias_added_beside_an_address(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    await caller.publish(V4)
    before, serial = eyes.records(caller.hostname), eyes.serial()
    answer = taken(hand, f"{caller.hostname} 300 CNAME elsewhere.example.org.")
    assert (eyes.records(caller.hostname), eyes.serial()) == (before, serial)
    tells("a CNAME added beside an address changes nothing; the answer", answer)


async def test_address_added_beside_an_alias(
    hostname: str, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    hand.add(f"{hostname} 300 CNAME elsewhere.example.org.")
    serial = eyes.serial()
    answer = taken(hand, f"{hostname} 300 A 203.0.113.7")
    assert eyes.records(hostname) == {"300 CNAME elsewhere.example.org."}
    assert eyes.serial() == serial
    tells("an address added beside a CNAME changes nothing; the answer", answer)
