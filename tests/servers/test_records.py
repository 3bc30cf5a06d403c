"""An ownership's one address record on every kind of server, alone and beside other people's."""

from collections.abc import Callable

from gateway.contract import DnsRecord
from gateway.dns.outcome import Outcome, OutcomeKind
from tests.integration.dns.conftest import V4, V4_OTHER, V6, Caller, owner_of, shown
from tests.integration.dns.hand import Hand
from tests.servers.conftest import Tells
from tests.servers.eyes import Eyes, taken

FOREIGN = (
    "A 203.0.113.7",
    "AAAA 2001:db8:bad::1",
    'TXT "v=spf1 -all"',
    "CNAME elsewhere.example.org.",
    "MX 10 mail.example.org.",
    'CAA 0 issue "ca.test"',
    "SRV 0 0 443 host.example.org.",
    "PTR host.example.org.",
    "HTTPS 1 . alpn=h2",
    "DNAME elsewhere.example.org.",
    'TXT "gateway-owner=v1:k1:AAAAAAAAAAAAAAAAAAAAAA"',
)


def kinds(*outcomes: Outcome) -> str:
    return ", ".join(outcome.kind.name.lower() for outcome in outcomes)


async def test_record_is_published_replaced_and_withdrawn(
    caller: Caller, eyes: Eyes, tells: Tells
) -> None:
    outcomes = []
    for record in (V4, V4_OTHER, V6, V4):
        outcomes.append(await caller.publish(record))
        assert eyes.records(caller.hostname) == shown(caller, record)
    outcomes.append(await caller.withdraw())
    assert eyes.records(caller.hostname) == set()
    tells("publish, replace the value, by AAAA, and back, withdraw", kinds(*outcomes))


async def test_replacement_is_one_change(caller: Caller, eyes: Eyes, tells: Tells) -> None:
    await caller.publish(V4)
    serial = eyes.serial()
    await caller.publish(V6)
    tells("A replaced by AAAA", f"serial + {eyes.serial() - serial}")


async def test_same_again_writes_nothing(caller: Caller, eyes: Eyes, tells: Tells) -> None:
    await caller.publish(V4)
    serial = eyes.serial()
    outcomes = [await caller.publish(V4), await caller.inspect()]
    tells("the same again, then a look", f"{kinds(*outcomes)}; serial + {eyes.serial() - serial}")


async def test_withdrawing_again_writes_nothing(caller: Caller, eyes: Eyes, tells: Tells) -> None:
    await caller.publish(V4)
    await caller.withdraw()
    serial = eyes.serial()
    outcome = await caller.withdraw(remembered=V4)
    tells("withdraw again", f"{kinds(outcome)}; serial + {eyes.serial() - serial}")


async def test_other_ttl_alone_is_an_update(caller: Caller, eyes: Eyes, tells: Tells) -> None:
    longer = DnsRecord(type="A", value=V4.value, ttl=3600)
    await caller.publish(V4)
    outcomes = [await caller.publish(longer)]
    assert eyes.records(caller.hostname) == shown(caller, longer)
    outcomes.append(await caller.publish(longer))
    tells("another TTL, and the same again", kinds(*outcomes))


async def test_foreign_records_of_every_type_are_conflicts_and_stay(
    call: Callable[[str], Caller], hand: Hand, eyes: Eyes, tells: Tells, fresh_label: str
) -> None:
    names = {record: f"f{n}.{fresh_label}.example.test" for n, record in enumerate(FOREIGN)}
    hand.add(*(f"{name} 1234 {record}" for record, name in names.items()))
    before = {name: eyes.records(name) for name in names.values()}
    serial = eyes.serial()
    outcomes: set[str] = set()
    for name in names.values():
        caller = call(name)
        outcome = await caller.publish(V4)
        assert [each.ttl for each in outcome.found] == [1234]
        looked, withdrawn = await caller.inspect(), await caller.withdraw(remembered=V4)
        outcomes.add(kinds(outcome, looked, withdrawn))
    assert {name: eyes.records(name) for name in names.values()} == before
    assert eyes.serial() == serial
    tells("a foreign record of any type: publish, look, withdraw", "; ".join(outcomes))


async def test_record_of_an_unknown_type(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    answer = taken(hand, f"{caller.hostname} 300 TYPE65280 \\# 4 0a000001")
    before = eyes.records(caller.hostname)
    outcome = await caller.publish(V4)
    assert before <= eyes.records(caller.hostname)
    tells("a record of an unknown type added; then publish", f"{answer}; {kinds(outcome)}")


async def test_evidence_of_a_conflict_with_many_types(
    caller: Caller, hand: Hand, tells: Tells
) -> None:
    name = caller.hostname
    hand.add(
        f"{name} 60 A 203.0.113.7",
        f"{name} 60 A 203.0.113.8",
        f"{name} 60 AAAA 2001:db8:bad::1",
        f'{name} 60 TXT "x y"',
        f"{name} 60 MX 10 mail.example.org.",
        f'{name} 60 CAA 0 issue "ca.test"',
    )
    outcome = await caller.publish(V4)
    told = ", ".join(dict.fromkeys(each.type for each in outcome.found))
    tells("evidence at a name with A, AAAA, TXT, MX and CAA", f"{kinds(outcome)}: {told}")


async def test_another_owner_gets_a_conflict(caller: Caller, eyes: Eyes, tells: Tells) -> None:
    await caller.publish(V4)
    rival = Caller(caller.publisher, owner_of(caller.hostname, "rival"))
    outcomes = [await rival.publish(V4), await rival.inspect(), await rival.withdraw()]
    assert eyes.records(caller.hostname) == shown(caller, V4)
    tells("another ownership: publish, look, withdraw", kinds(*outcomes))


async def test_records_added_beside_ours_stay(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    hand.add(f'{name} 900 CAA 0 issue "ca.test"', f"{name} 900 AAAA 2001:db8:bad::1")
    beside = {'900 CAA 0 issue "ca.test"', "900 AAAA 2001:db8:bad::1"}
    outcomes = [await caller.publish(V4), await caller.publish(V4_OTHER)]
    assert eyes.records(name) == shown(caller, V4_OTHER) | beside
    outcomes += [await caller.publish(V6), await caller.withdraw()]
    assert eyes.records(name) == beside
    tells(
        "foreign AAAA and CAA beside ours: again, replace, by AAAA, withdraw",
        kinds(*outcomes),
    )


async def test_marker_beside_other_texts_takes_their_ttl(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    await caller.publish(V4)
    hand.add(f'{caller.hostname} 900 TXT "v=spf1 -all"')
    theirs = {'900 TXT "v=spf1 -all"'}
    outcomes = [await caller.publish(V6)]
    assert eyes.records(caller.hostname) == shown(caller, V6, marker_ttl=900) | theirs
    outcomes += [await caller.publish(V6), await caller.withdraw()]
    assert eyes.records(caller.hostname) == theirs
    tells("an SPF text beside the marker: replace, again, withdraw", kinds(*outcomes))


async def test_second_text_with_another_ttl(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    await caller.publish(V4)
    hand.add(f'{caller.hostname} 900 TXT "v=spf1 -all"')
    ttls = {int(each.split()[0]) for each in eyes.records(caller.hostname) if " TXT " in each}
    tells("a text of TTL 900 added to one of TTL 300", f"all {', '.join(map(str, sorted(ttls)))}")


async def test_address_edited_by_hand_is_a_conflict(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    hand.update(f"delete {name} A", f"add {name} 300 A 203.0.113.7")
    outcomes = [
        await caller.publish(V4, remembered=V4),
        await caller.publish(V6, remembered=V4, held=True),
        await caller.withdraw(remembered=V4),
    ]
    assert eyes.records(name) == {"300 A 203.0.113.7"}
    tells("an address edited by hand: publish twice, withdraw", kinds(*outcomes))


async def test_address_removed_by_hand_is_created_again(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    await caller.publish(V4)
    hand.update(f"delete {caller.hostname} A")
    outcome = await caller.publish(V6, remembered=V4)
    assert outcome.kind is OutcomeKind.CREATED
    assert eyes.records(caller.hostname) == shown(caller, V6)
    tells("an address removed by hand", kinds(outcome))


async def test_held_name_gets_its_record_beside_later_texts(
    caller: Caller, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    hand.add(f'{caller.hostname} 900 TXT "v=spf1 -all"', f"{caller.hostname} 900 MX 10 m.test.")
    outcome = await caller.publish(V4, held=True)
    theirs = {'900 TXT "v=spf1 -all"', "900 MX 10 m.test."}
    assert eyes.records(caller.hostname) == shown(caller, V4, marker_ttl=900) | theirs
    tells("a held name with texts and mail: publish", kinds(outcome))


async def test_name_of_253_characters(
    call: Callable[[str], Caller], eyes: Eyes, tells: Tells, fresh_label: str
) -> None:
    suffix = f".{fresh_label}.example.test"
    room = 253 - len(suffix)
    labels = ["a" * 63] * (room // 64)
    name = ".".join(["b" * (room - 64 * len(labels)), *labels]) + suffix
    assert len(name) == 253
    caller = call(name)
    outcomes = [await caller.publish(V4), await caller.publish(V6)]
    assert eyes.records(name) == shown(caller, V6)
    tells("a name of 253 characters: publish, replace", kinds(*outcomes))
