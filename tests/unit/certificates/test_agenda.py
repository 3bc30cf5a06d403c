"""What the worker does next for a hostname, and the debts it pays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gateway.certificates import debts, machine
from gateway.certificates.agenda import Item, Work, next_item
from gateway.certificates.moves import Moment
from gateway.certificates.states import Debt, DebtKind, Issuance, State, StoredCertificate
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.documents import Document, Holder

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW_MS = 1_700_000_000_000
HOLDER = Holder(ClientId("client"), AppId("app"))
RECORD = Debt(DebtKind.CHALLENGE_RECORD, zone="example", name="_acme-challenge.a", value="txt")
AUTHORIZATION = Debt(DebtKind.AUTHORIZATION, url="authorization", directory_url="directory")


def issuance(state: State = State.REQUESTED, **changes: object) -> Issuance:
    fresh = machine.request("i", Moment(NOW_MS, 0))
    return replace(fresh, state=state, **changes)  # type: ignore[arg-type]


def certificate(renew_at_ms: int, ask_at_ms: int | None = None) -> StoredCertificate:
    return StoredCertificate(
        issuance_id="i",
        chain_pem="chain",
        sealed_key="sealed",
        valid_from_ms=0,
        valid_until_ms=renew_at_ms + 9,
        renew_at_ms=renew_at_ms,
        renew_after_ms=renew_at_ms + 5,
        share_at_ms=renew_at_ms,
        serial="01",
        issuer="ca",
        directory_url="dir",
        ask_at_ms=NOW_MS + 100 if ask_at_ms is None else ask_at_ms,
    )


def document(
    *,
    under_way: Issuance | None = None,
    held: StoredCertificate | None = None,
    owed: Sequence[Debt] = (),
) -> Document:
    return Document(
        Hostname("a.example"),
        version="1",
        holder=HOLDER,
        certificate=held and held.to_json(),
        issuance=under_way and under_way.to_json(),
        debts=debts.as_stored(owed),
    )


ITEMS = [
    (document(), Item(Work.REST)),
    (document(under_way=issuance()), Item(Work.STEP)),
    (
        document(under_way=issuance(due_at_ms=NOW_MS + 5)),
        Item(Work.REST, until_ms=NOW_MS + 5),
    ),
    (document(held=certificate(NOW_MS)), Item(Work.RENEW)),
    (document(held=certificate(NOW_MS + 7)), Item(Work.REST, until_ms=NOW_MS + 7)),
    (document(held=certificate(NOW_MS), under_way=issuance()), Item(Work.STEP)),
    (document(held=certificate(NOW_MS + 7, NOW_MS)), Item(Work.ASK_RENEWAL_INFO)),
    (document(held=certificate(NOW_MS + 7, NOW_MS + 3)), Item(Work.REST, until_ms=NOW_MS + 3)),
    (document(held=certificate(NOW_MS, NOW_MS)), Item(Work.RENEW)),
    (document(held=certificate(NOW_MS + 7, NOW_MS), owed=[RECORD]), Item(Work.PAY, RECORD)),
    (
        document(held=certificate(NOW_MS + 7, NOW_MS), under_way=issuance(due_at_ms=NOW_MS + 900)),
        Item(Work.REST, until_ms=NOW_MS + 900),
    ),
    # Its end is 9 ms after its renewal (RFC 9773, 4.3: never asked about afterwards).
    (document(held=certificate(NOW_MS + 7, NOW_MS + 16)), Item(Work.REST, until_ms=NOW_MS + 7)),
    (document(owed=[RECORD]), Item(Work.PAY, RECORD)),
    (document(owed=[RECORD], under_way=issuance()), Item(Work.STEP)),
    (
        document(owed=[replace(RECORD, due_at_ms=NOW_MS + 3)]),
        Item(Work.REST, until_ms=NOW_MS + 3),
    ),
    (
        document(owed=[AUTHORIZATION], under_way=issuance()),
        Item(Work.PAY, AUTHORIZATION),
    ),
    (
        document(
            owed=[AUTHORIZATION],
            under_way=issuance(State.ORDERED, order_url="o", due_at_ms=NOW_MS + 9),
        ),
        Item(Work.REST, until_ms=NOW_MS + 9),
    ),
    (
        document(
            owed=[RECORD],
            under_way=issuance(
                State.PUBLISHED,
                due_at_ms=NOW_MS + 9,
                challenge_zone="example",
                challenge_name="_acme-challenge.a",
                challenge_value="txt",
            ),
        ),
        Item(Work.REST, until_ms=NOW_MS + 9),
    ),
]


@pytest.mark.parametrize(("known", "item"), ITEMS)
def test_next_item_is_the_most_urgent_one(known: Document, item: Item) -> None:
    assert next_item(known, NOW_MS) == item


def test_expired_certificate_is_looked_at_and_not_asked_about() -> None:
    later = {"renew_at_ms": NOW_MS + 7, "valid_until_ms": NOW_MS}
    expired = replace(certificate(NOW_MS, NOW_MS), **later)
    assert next_item(document(held=expired), NOW_MS) == Item(Work.REST, until_ms=NOW_MS + 7)
    valid = replace(expired, valid_until_ms=NOW_MS + 1)
    assert next_item(document(held=valid), NOW_MS) == Item(Work.ASK_RENEWAL_INFO)


def test_certificate_without_holder_is_not_renewed() -> None:
    orphan = replace(document(held=certificate(NOW_MS)), holder=None)
    assert next_item(orphan, NOW_MS) == Item(Work.REST)


def test_challenge_debt_is_owed_once_its_place_is_known() -> None:
    located = issuance(
        challenge_zone="example", challenge_name="_acme-challenge.a", challenge_value="txt"
    )
    assert debts.challenge_debt(located) == RECORD
    assert debts.challenge_debt(replace(located, challenge_name=None)) is None


def test_debt_is_entered_once_however_often_it_was_tried() -> None:
    tried = debts.put_off(RECORD, NOW_MS)
    assert debts.with_debts([tried], [RECORD]) == (tried,)
    assert debts.with_debts([tried], [AUTHORIZATION]) == (tried, AUTHORIZATION)
    assert debts.with_debts([tried], []) == (tried,)
    assert debts.without_debt([tried, AUTHORIZATION], RECORD) == (AUTHORIZATION,)


def test_unpaid_debt_is_put_off_ever_longer() -> None:
    current, pauses = RECORD, []
    for _ in range(30):
        current = debts.put_off(current, NOW_MS)
        pauses.append(current.due_at_ms - NOW_MS)
    assert pauses[0] == debts.FIRST_RETRY_MS
    assert pauses == sorted(pauses)
    assert pauses[-1] == debts.LONGEST_RETRY_MS
    assert Debt.from_json(current.to_json()) == current


def test_release_leaves_the_authorization_or_else_the_order_to_be_taken_back() -> None:
    assert debts.debts_of_release(issuance()) == ()
    ordered = issuance(order_url="order", directory_url="directory")
    order = Debt(DebtKind.ORDER, url="order", directory_url="directory")
    assert debts.debts_of_release(ordered) == (order,)
    known = replace(ordered, authorization_url="authorization")
    assert debts.debts_of_release(known) == (AUTHORIZATION,)
