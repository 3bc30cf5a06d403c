"""Waiting for a certificate: at a real gateway, and through answers that only a liar gives."""

from datetime import UTC, datetime

import pytest

from gateway.client import (
    AnswerInvalid,
    AsyncGatewayClient,
    DeadlinePassed,
    IssuanceRefused,
    Pending,
    Progress,
    Refused,
    RequestInvalid,
    Unavailable,
    judge_certificate,
)
from tests.integration.client.conftest import RELAY, TOKEN
from tests.integration.service.calling import Ownership as Mine
from tests.lab.certificates import LabAuthority
from tests.lab.liar import CUT, Liar, failure, ready_with, response

AUTHORITY = LabAuthority()
PENDING = response({"status": "pending", "retryAfterMs": 10})


def refused(retry_after_ms: int | None) -> dict[str, object]:
    return {
        "status": "refused",
        "reason": "rate-limited",
        "message": "No more orders.",
        "retryAfterMs": retry_after_ms,
    }


async def test_real_certificate_comes_after_progress_was_told(
    client: AsyncGatewayClient, mine: Mine
) -> None:
    told: list[Progress] = []
    certificate = await client.wait_for_certificate(mine.wire, 60.0, told.append)
    assert certificate.hostname == mine.hostname
    assert told
    assert all(isinstance(progress.answer, Pending) for progress in told)
    assert all(0 < progress.next_in_seconds < progress.left_seconds <= 60 for progress in told)
    assert [p.waited_seconds for p in told] == sorted(p.waited_seconds for p in told)


async def test_certificate_that_is_there_is_answered_without_progress(
    client: AsyncGatewayClient, mine: Mine
) -> None:
    first = await client.wait_for_certificate(mine.wire)
    told: list[Progress] = []
    assert await client.wait_for_certificate(mine.wire, 1.0, told.append) == first
    assert not told


async def test_answers_are_waited_through_in_their_order(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    certificate = AUTHORITY.as_certificate(RELAY.hostname)
    liar.answers(PENDING, response(refused(10)), PENDING, ready_with(certificate))
    told: list[Progress] = []
    assert await deceived.wait_for_certificate(RELAY, 30.0, told.append) == certificate
    assert [type(progress.answer) for progress in told] == [Pending, Refused, Pending]
    assert len(liar.requests) == 4


async def test_connections_that_break_meanwhile_are_waited_through(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(CUT, PENDING, CUT, ready_with(AUTHORITY.as_certificate(RELAY.hostname)))
    assert await deceived.wait_for_certificate(RELAY)


async def test_failure_that_passes_is_told_and_waited_through(liar: Liar) -> None:
    liar.answers(
        # Longer than a call may last, so that this call ends with it.
        failure("unavailable", retryAfterMs=2_000),
        ready_with(AUTHORITY.as_certificate(RELAY.hostname)),
    )
    told: list[Progress] = []
    async with AsyncGatewayClient(liar.url, TOKEN, deadline=2.0) as client:
        assert await client.wait_for_certificate(RELAY, 30.0, told.append)
    assert [type(progress.answer) for progress in told] == [Unavailable]


async def test_certificate_that_never_comes_ends_with_the_last_answer(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(response({"status": "pending", "retryAfterMs": 60_000}))
    with pytest.raises(
        DeadlinePassed, match=r"for relay\.example\.test after \d\.\d seconds; .*: it is pending\."
    ):
        await deceived.wait_for_certificate(RELAY, 1.5)


async def test_timeout_of_nothing_asks_once(liar: Liar, deceived: AsyncGatewayClient) -> None:
    liar.answers(PENDING)
    with pytest.raises(DeadlinePassed, match="it is pending"):
        await deceived.wait_for_certificate(RELAY, 0)
    assert len(liar.requests) == 1


@pytest.mark.parametrize("seconds", [-1, float("nan")])
async def test_timeout_that_is_none_is_refused(
    liar: Liar, deceived: AsyncGatewayClient, seconds: float
) -> None:
    with pytest.raises(ValueError, match=f"must be 0 seconds or more, not {seconds}"):
        await deceived.wait_for_certificate(RELAY, seconds)
    assert not liar.connections


async def test_refusal_without_an_end_is_raised_at_once(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(response(refused(None)))
    with pytest.raises(IssuanceRefused, match="No more orders") as raised:
        await deceived.wait_for_certificate(RELAY)
    assert (raised.value.reason, raised.value.retry_after_ms) == ("rate-limited", None)
    assert len(liar.requests) == 1


async def test_certificate_for_another_name_is_raised_at_once(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.ready_with(AUTHORITY.issue("other.example.test").as_certificate(RELAY.hostname))
    with pytest.raises(AnswerInvalid, match=r"is for other\.example\.test"):
        await deceived.wait_for_certificate(RELAY)
    assert len(liar.requests) == 1


async def test_ownership_is_judged_before_the_waiting_begins(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    with pytest.raises(RequestInvalid, match=r"ownership\.hostname"):
        await deceived.wait_for_certificate({"appId": "relay", "hostname": "Relay.example.test"})
    assert not liar.connections


async def test_answered_certificate_becomes_a_bundle(
    client: AsyncGatewayClient, mine: Mine
) -> None:
    certificate = await client.wait_for_certificate(mine.wire)
    bundle = judge_certificate(certificate, mine.hostname, datetime.now(UTC))
    assert bundle.chain_pem == certificate.chain_pem
    assert bundle.private_key_pem == certificate.private_key_pem
    assert bundle.chain_pem.startswith(bundle.leaf_pem)
