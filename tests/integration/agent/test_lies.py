"""Answers that no gateway gives, and clocks that are wrong: nothing on disk changes.

The gateway is played by a server that lies: a real one cannot be made to answer any of this.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.agent.machine import Machine, MovedClock
from tests.lab.certificates import LabAuthority, new_key
from tests.lab.liar import Answer, Liar, Says, gzip_bomb, ready_with, response

OTHER = "other.example.test"
DAY = timedelta(days=1)
YEAR_MS = 365 * 86_400_000

authority = LabAuthority()


def changed(hostname: str, **fields: object) -> Answer:
    """A good certificate in which some fields are not."""
    return ready_with({**authority.as_certificate(hostname).to_wire(), **fields})


def for_another_name(hostname: str) -> Answer:
    return ready_with(authority.issue(OTHER).as_certificate(hostname))


def with_another_key(hostname: str) -> Answer:
    issued = authority.issue(hostname, key=new_key())
    return changed(hostname, chainPem=issued.chain_pem)


def expired(hostname: str) -> Answer:
    end = datetime.now(UTC) - DAY
    issued = authority.issue(hostname, not_before=end - DAY, not_after=end)
    return ready_with(issued.as_certificate(hostname))


def not_yet_valid(hostname: str) -> Answer:
    issued = authority.issue(hostname, not_before=datetime.now(UTC) + DAY)
    return ready_with(issued.as_certificate(hostname))


def garbage_chain(hostname: str) -> Answer:
    return changed(hostname, chainPem="-----BEGIN CERTIFICATE-----\nnone\n")


def garbage_key(hostname: str) -> Answer:
    return changed(hostname, privateKeyPem="-----BEGIN PRIVATE KEY-----\nnone\n")


def wrong_type(hostname: str) -> Answer:
    return changed(hostname, renewAfter="soon")


def unknown_status(hostname: str) -> Answer:
    del hostname
    return response({"status": "perhaps"})


def hundred_megabytes(hostname: str) -> Answer:
    del hostname
    return Says(b" " * 1_048_576, times=100)


def bomb(hostname: str) -> Answer:
    del hostname
    return gzip_bomb(100 * 1_048_576)


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (for_another_name, f"is for {OTHER}"),
        (with_another_key, "private key does not fit"),
        (expired, "expired on"),
        (not_yet_valid, "not valid before"),
        (garbage_chain, "not PEM of certificates"),
        (garbage_key, "private key is not"),
        (wrong_type, "renewAfter"),
        (unknown_status, "status"),
        (hundred_megabytes, "more than"),
        (bomb, "compressed"),
    ],
)
async def test_answer_that_is_no_good_is_told_and_changes_nothing(
    misled: Machine, liar: Liar, lie: Callable[[str], Answer], reason: str
) -> None:
    misled.configure_certificate()
    liar.ready_with(authority.as_certificate(misled.hostname))
    assert (await misled.once_here()).code == 0
    before = misled.certificates()
    misled.forget()
    liar.answers(lie(misled.hostname))
    ran = await misled.once_here()
    assert ran.code == 1
    assert reason in ran.complaint
    assert "PRIVATE KEY-" not in ran.complaint
    assert misled.certificates() == before
    assert reason in misled.remembered()["certificate_fault"]


async def test_bad_certificate_is_not_installed_where_there_is_none(
    misled: Machine, liar: Liar
) -> None:
    misled.configure_certificate()
    liar.answers(with_another_key(misled.hostname))
    assert (await misled.once_here()).code == 1
    assert misled.certificates() == {}
    assert misled.hooks_run() == []


async def test_certificate_that_ends_sooner_takes_the_place_of_a_good_one(
    misled: Machine, liar: Liar
) -> None:
    misled.configure_certificate()
    liar.ready_with(authority.as_certificate(misled.hostname))
    await misled.once_here()
    shorter = authority.issue(misled.hostname, not_after=datetime.now(UTC) + DAY)
    liar.ready_with(shorter.as_certificate(misled.hostname))
    misled.forget()
    assert (await misled.once_here()).code == 0
    assert misled.served() == (shorter.chain_pem, shorter.private_key_pem)


@pytest.mark.parametrize(
    ("years", "reason"), [(-1, "is not valid before"), (+1, "expired on")], ids=["back", "ahead"]
)
async def test_clock_that_is_wrong_changes_nothing_on_disk(
    misled: Machine, liar: Liar, years: int, reason: str
) -> None:
    misled.configure_certificate()
    liar.ready_with(authority.as_certificate(misled.hostname))
    await misled.once_here()
    before = misled.certificates()
    # A renewal, which the wrong clock would not accept.
    liar.ready_with(authority.as_certificate(misled.hostname))
    ran = await misled.once_here(MovedClock(years * YEAR_MS).clocks)
    assert ran.code == 1
    assert reason in ran.complaint
    assert misled.certificates() == before


async def test_clock_that_is_right_again_takes_the_renewal(misled: Machine, liar: Liar) -> None:
    misled.configure_certificate()
    liar.ready_with(authority.as_certificate(misled.hostname))
    await misled.once_here(MovedClock(-YEAR_MS).clocks)
    assert misled.served() == ("", "")
    assert (await misled.once_here()).code == 0
    assert misled.served() != ("", "")


async def test_certificate_that_expires_on_disk_is_asked_for(misled: Machine, liar: Liar) -> None:
    misled.configure_certificate()
    short = authority.issue(misled.hostname, not_after=datetime.now(UTC) + DAY)
    liar.ready_with(short.as_certificate(misled.hostname))
    await misled.once_here()
    asked = len(liar.methods)
    later = MovedClock(2 * 86_400_000)
    end = datetime.fromtimestamp(time.time(), UTC) + 30 * DAY
    renewed = authority.issue(misled.hostname, not_after=end)
    liar.ready_with(renewed.as_certificate(misled.hostname))
    assert (await misled.once_here(later.clocks)).code == 0
    assert len(liar.methods) == asked + 1
    assert misled.served() == (renewed.chain_pem, renewed.private_key_pem)
