"""Questions about renewals beside a CA that does not answer.

The authority is a fake: a real CA that hangs takes its seconds (it is asked in
tests/integration/authorities), and how many questions wait for it shows only here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from gateway.certificates import questions
from gateway.certificates.authorities import Authorities, Listed
from gateway.certificates.keys import KeyType
from gateway.certificates.orders import AuthorityFault, FaultKind, RenewalInfo
from gateway.certificates.questions import Questions
from gateway.certificates.states import StoredCertificate
from tests.unit.certificates.issuing import DAY, NOW, pem

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.authority import Authority
    from gateway.certificates.ledger import Ledger

DIRECTORY = "https://ca.example/directory"
DAY_MS = 86_400_000
WINDOW = RenewalInfo(50 * DAY_MS, 60 * DAY_MS, retry_after_seconds=7200.0)


class FakeAuthority:
    """Answers `answer`, an exception by raising it; counts what it is asked."""

    directory_url = DIRECTORY

    def __init__(self) -> None:
        self.answer: RenewalInfo | Exception | None = WINDOW
        self.directory: bool | Exception = True
        self.is_silent = False
        self.asked = 0
        self.at_once: Counter[str] = Counter()

    async def renewal_info(self, _: str) -> RenewalInfo | None:
        if isinstance(self.directory, Exception):
            raise self.directory
        if not self.directory:
            return None
        self.asked += 1
        self.at_once["now"] += 1
        self.at_once["most"] = max(self.at_once["most"], self.at_once["now"])
        try:
            await asyncio.sleep(3600 if self.is_silent else 0)
        finally:
            self.at_once["now"] -= 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Clock:
    def __init__(self) -> None:
        self.ms = DAY_MS

    def __call__(self) -> int:
        return self.ms


def leaf() -> x509.Certificate:
    """A certificate that can be named to its CA."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    identifier = x509.AuthorityKeyIdentifier(b"issuer", None, None)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1)
    builder = builder.not_valid_before(NOW).not_valid_after(NOW + 90 * DAY)
    return builder.add_extension(identifier, critical=False).sign(key, SHA256())


@pytest.fixture(scope="module")
def held() -> StoredCertificate:
    return StoredCertificate(
        issuance_id="i",
        chain_pem=pem(leaf()),
        sealed_key="sealed",
        valid_from_ms=0,
        valid_until_ms=90 * DAY_MS,
        renew_at_ms=58 * DAY_MS,
        renew_after_ms=64 * DAY_MS,
        share_at_ms=60 * DAY_MS,
        serial="01",
        issuer="ca",
        directory_url=DIRECTORY,
        ask_at_ms=0,
    )


@pytest.fixture
def authority() -> FakeAuthority:
    return FakeAuthority()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def asking(authority: FakeAuthority, clock: Callable[[], int]) -> Questions:
    listed = Listed(
        cast("Authority", authority), cast("Ledger", None), KeyType.ECDSA_P256, renewal_share=0.66
    )
    return Questions(Authorities([listed]), now_ms=clock, jitter=lambda: 0.5)


async def test_window_is_taken_and_the_next_question_follows_the_answer(
    asking: Questions, held: StoredCertificate
) -> None:
    after = await asking.ask(held)
    assert after.window_ms == (WINDOW.window_start_ms, WINDOW.window_end_ms)
    assert after.renew_at_ms == 55 * DAY_MS
    assert after.ask_at_ms == DAY_MS + 7_200_000


REFUSALS = [
    (AuthorityFault(FaultKind.SERVER_ERROR, "no"), DAY_MS // 4),
    (AuthorityFault(FaultKind.RATE_LIMITED, "not now", 3600.0), DAY_MS // 24),
]


@pytest.mark.parametrize(("fault", "pause_ms"), REFUSALS)
async def test_refusal_changes_nothing_but_the_next_question(
    asking: Questions,
    authority: FakeAuthority,
    held: StoredCertificate,
    fault: AuthorityFault,
    pause_ms: int,
) -> None:
    authority.answer = fault
    assert await asking.ask(held) == replace(held, ask_at_ms=DAY_MS + pause_ms)
    # One that answers, however badly, is asked about the next certificate too.
    await asking.ask(held)
    assert authority.asked == 2


async def test_directory_that_is_away_does_not_mean_that_nothing_is_offered(
    asking: Questions, authority: FakeAuthority, held: StoredCertificate
) -> None:
    authority.directory = AuthorityFault(FaultKind.UNREACHABLE, "gone for a while")
    assert await asking.ask(held) == replace(held, ask_at_ms=DAY_MS + DAY_MS // 4)
    authority.directory = False
    assert await asking.ask(held) == replace(held, ask_at_ms=2 * DAY_MS)


@pytest.mark.parametrize("change", [{"directory_url": "elsewhere"}, {"chain_pem": "nameless"}])
async def test_what_cannot_be_asked_is_looked_at_once_a_day(
    asking: Questions, authority: FakeAuthority, held: StoredCertificate, change: dict[str, str]
) -> None:
    changed = replace(held, **change)
    assert await asking.ask(changed) == replace(changed, ask_at_ms=2 * DAY_MS)
    assert authority.asked == 0


async def test_few_questions_are_asked_at_once(
    asking: Questions, authority: FakeAuthority, held: StoredCertificate
) -> None:
    await asyncio.gather(*(asking.ask(held) for _ in range(20)))
    assert authority.asked == 20
    assert authority.at_once["most"] == questions.AT_ONCE


async def test_silent_authority_is_asked_nothing_more_for_a_while(
    asking: Questions,
    authority: FakeAuthority,
    held: StoredCertificate,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(questions, "ANSWER_SECONDS", 0.01)
    authority.is_silent = True
    asked = await asyncio.gather(*(asking.ask(held) for _ in range(20)))
    assert authority.asked == questions.AT_ONCE
    assert set(asked) == {replace(held, ask_at_ms=DAY_MS + DAY_MS // 4)}

    authority.is_silent = False
    await asking.ask(held)
    assert authority.asked == questions.AT_ONCE
    clock.ms += questions.LEFT_ALONE_MS
    assert (await asking.ask(held)).window_ms is not None
