"""Where a hostname's certificate stands and what comes next, as an operator reads it."""

from dataclasses import replace

import pytest

from gateway.certificates import machine
from gateway.certificates.events import Command
from gateway.certificates.moves import Moment
from gateway.certificates.outlook import (
    AT_REST,
    CLEANING_UP,
    STEP_WORDS,
    Next,
    authority_name,
    debt_words,
    outlook,
)
from gateway.certificates.states import Debt, DebtKind, Issuance, Reason, State, StoredCertificate
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.documents import Document, Holder, Lease

NOW_MS = 1_700_000_000_000
LATER_MS = NOW_MS + 3_000
HOUR_MS = 3_600_000
DIRECTORY = "https://ca.example/directory"
NAMES = {DIRECTORY: "ca"}
HOLDER = Holder(ClientId("client"), AppId("app"))

CERTIFICATE = StoredCertificate(
    issuance_id="i",
    chain_pem="chain",
    sealed_key="sealed",
    valid_from_ms=NOW_MS - 9,
    valid_until_ms=NOW_MS + 90_000,
    renew_at_ms=NOW_MS + 60_000,
    renew_after_ms=NOW_MS + 70_000,
    share_at_ms=NOW_MS + 60_000,
    serial="01",
    issuer="issuer",
    directory_url=DIRECTORY,
    ask_at_ms=NOW_MS + 5_000,
)
RECORD = Debt(DebtKind.CHALLENGE_RECORD, zone="example", name="_acme-challenge.a", value="txt")


def issuance(state: State, **changes: object) -> Issuance:
    fresh = replace(
        machine.request("i", Moment(NOW_MS - 1_000, 0)),
        state=state,
        due_at_ms=LATER_MS,
        directory_url=DIRECTORY,
        sealed_key="sealed",
        order_url="order",
        challenge_name="_acme-challenge.a.example",
    )
    return replace(fresh, **changes)  # type: ignore[arg-type]


def document(
    under_way: Issuance | None = None,
    certificate: StoredCertificate | None = None,
    debts: tuple[Debt, ...] = (),
    lease: Lease | None = None,
) -> Document:
    return Document(
        Hostname("a.example"),
        version="1",
        holder=HOLDER,
        issuance=under_way and under_way.to_json(),
        certificate=certificate and certificate.to_json(),
        debts=tuple(debt.to_json() for debt in debts),
        lease=lease,
    )


def following(of: Document) -> Next | None:
    found = outlook(of, NOW_MS, NAMES)
    assert found is not None
    return found.next


WITHOUT_ORDER = {"order_url": None, "directory_url": None, "challenge_name": None}

NEXT = {
    "requested": (issuance(State.REQUESTED, order_url=None), "place an order at ca"),
    "without a key": (
        issuance(State.REQUESTED, order_url=None, sealed_key=None),
        "make a key, then place an order at ca",
    ),
    "ordered": (issuance(State.ORDERED), "ask ca again how the order stands"),
    "published": (
        issuance(State.PUBLISHED),
        "ask the name servers again for the challenge at _acme-challenge.a.example",
    ),
    "validating": (issuance(State.VALIDATING), "ask ca again whether it has validated"),
    "finalizing": (issuance(State.FINALIZING), "ask ca again how the order stands"),
    "waiting": (
        issuance(State.WAITING, resume=State.FINALIZING, reason=Reason.RATE_LIMITED),
        "ask ca again how the order stands",
    ),
    "waiting for an authority": (
        issuance(State.WAITING, resume=State.REQUESTED, **WITHOUT_ORDER),
        "choose an authority, and place a new order there",
    ),
    "held until a time": (
        issuance(
            State.WAITING, resume=State.REQUESTED, told_until_ms=LATER_MS + 9_000, **WITHOUT_ORDER
        ),
        "look again whether there is room for a new order",
    ),
    "told to wait with its order": (
        issuance(State.WAITING, resume=State.FINALIZING, told_until_ms=LATER_MS + 9_000),
        "ask ca again how the order stands",
    ),
    "failed": (
        issuance(State.FAILED, sealed_key=None, **WITHOUT_ORDER),
        "try it all again with a new key: a new order, the challenge in the zone, the validation",
    ),
    "no longer configured": (
        issuance(State.READY, directory_url="https://gone.example/directory"),
        "ask https://gone.example/directory again how the order stands",
    ),
}


@pytest.mark.parametrize(("under_way", "what"), NEXT.values(), ids=NEXT)
def test_next_step_is_told_as_the_machine_has_it(under_way: Issuance, what: str) -> None:
    assert following(document(under_way)) == Next(what, LATER_MS, under_way.begins_anew)


def test_every_command_has_words() -> None:
    assert STEP_WORDS.keys() == set(Command)


@pytest.mark.parametrize("kind", list(DebtKind))
def test_every_debt_has_words(kind: DebtKind) -> None:
    assert "None" not in debt_words(Debt(kind, name="name", value="value", url="url"))


def test_step_that_is_due_keeps_the_time_it_was_due_at() -> None:
    late = issuance(State.ORDERED, due_at_ms=NOW_MS - 60_000)
    assert following(document(late)) == Next("ask ca again how the order stands", NOW_MS - 60_000)


def test_debt_comes_before_a_step_that_is_later() -> None:
    owed = replace(RECORD, due_at_ms=NOW_MS + 1_000)
    assert following(document(issuance(State.ORDERED), debts=(owed,))) == Next(
        "remove the TXT record txt at _acme-challenge.a", NOW_MS + 1_000
    )


def test_certificate_at_rest_is_asked_about_and_renewed() -> None:
    found = outlook(document(certificate=CERTIFICATE), NOW_MS, NAMES)
    assert found is not None
    assert (found.state, found.since_ms) == (AT_REST, CERTIFICATE.valid_from_ms)
    assert found.next == Next("ask ca when to renew the certificate", NOW_MS + 5_000, is_order=True)
    asked = replace(CERTIFICATE, ask_at_ms=NOW_MS + 80_000)
    assert following(document(certificate=asked)) == Next(
        "renew the certificate", NOW_MS + 60_000, is_order=True
    )


@pytest.mark.parametrize(
    ("window_ms", "ask_in_ms", "expected"),
    [
        (
            None,
            24 * HOUR_MS,
            Next("renew the certificate", NOW_MS + 60 * 24 * HOUR_MS, is_order=True),
        ),
        (
            None,
            HOUR_MS,
            Next("ask ca when to renew the certificate", NOW_MS + HOUR_MS, is_order=True),
        ),
        (
            (NOW_MS, NOW_MS + 1),
            24 * HOUR_MS,
            Next("ask ca when to renew the certificate", NOW_MS + 24 * HOUR_MS, is_order=True),
        ),
    ],
    ids=["no window", "no window, but asked soon", "window"],
)
def test_question_is_told_where_it_may_be_answered(
    window_ms: tuple[int, int] | None, ask_in_ms: int, expected: Next
) -> None:
    certificate = replace(
        CERTIFICATE,
        valid_until_ms=NOW_MS + 90 * 24 * HOUR_MS,
        renew_at_ms=NOW_MS + 60 * 24 * HOUR_MS,
        ask_at_ms=NOW_MS + ask_in_ms,
        window_ms=window_ms,
    )
    assert following(document(certificate=certificate)) == expected


def test_certificate_with_a_debt_is_cleaned_up() -> None:
    found = outlook(document(certificate=CERTIFICATE, debts=(RECORD,)), NOW_MS, NAMES)
    assert found is not None
    assert found.state == CLEANING_UP
    assert found.next == Next("remove the TXT record txt at _acme-challenge.a", NOW_MS)


def test_debt_of_a_released_hostname_is_cleaned_up() -> None:
    left = replace(document(debts=(RECORD,)), holder=None)
    found = outlook(left, NOW_MS, NAMES)
    assert found is not None
    assert (found.state, found.since_ms) == (CLEANING_UP, None)


def test_issuance_tells_its_state_and_since_when() -> None:
    found = outlook(document(issuance(State.VALIDATING), CERTIFICATE), NOW_MS, NAMES)
    assert found is not None
    assert (found.state, found.since_ms) == ("validating", NOW_MS - 1_000)
    assert found.certificate == CERTIFICATE


@pytest.mark.parametrize(("until_ms", "worker"), [(NOW_MS + 1, "worker"), (NOW_MS, None)])
def test_worker_is_who_has_the_lease_now(until_ms: int, worker: str | None) -> None:
    leased = document(issuance(State.ORDERED), lease=Lease("worker", 3, until_ms))
    found = outlook(leased, NOW_MS, NAMES)
    assert found is not None
    assert found.worker == worker


def test_record_alone_has_no_outlook() -> None:
    assert outlook(document(), NOW_MS, NAMES) is None


def test_authority_without_a_directory_is_one_still_to_be_chosen() -> None:
    assert authority_name(None, NAMES) == "the authority"
