"""Calls of all keepers: how many at once, and who calls while no call can work.

What a call comes to is played by functions: a gateway that fails in a given order is none that a
real one can be made to be. `tests/integration/agent` has the real one.
"""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.agent.clocks import HOUR_MS, Clocks
from gateway.agent.config import GatewaySettings
from gateway.agent.contact import (
    CALLS_AT_ONCE,
    OUT_OF_TIME,
    SUSPECTS,
    CallFailed,
    Contact,
    ContactInvalid,
)
from gateway.agent.rounds import OPERATOR_PAUSE_MS
from gateway.client import (
    AnswerInvalid,
    AsyncGatewayClient,
    DeadlinePassed,
    GatewayError,
    Internal,
    Overloaded,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from gateway.client.errors import NoGateway
from gateway.client.tokens import TokenSource
from gateway.contract import Hostname

AWAY = Unreachable("The gateway cannot be reached.", may_have_arrived=False)
HUNG = DeadlinePassed("No answer within 20 seconds.", may_have_arrived=True)
SUSPICIOUS = [
    HUNG,
    Unreachable("The connection broke.", may_have_arrived=True),
    Unavailable(100),
    Overloaded(100),
    Internal("1f3c"),
    NoGateway("HTTP status 404."),
]
NOW = 1_795_000_000_000
HOST = Hostname("a.example.test")


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.ms = 0

    def clocks(self) -> Clocks:
        return Clocks(lambda: NOW + self.ms, lambda: self.ms, lambda: 0.0)


class Played:
    """What calls come to: each of these in turn, the last again and again; counts them."""

    def __init__(self, *outcomes: GatewayError | str) -> None:
        self.outcomes = list(outcomes)
        self.calls = 0

    async def __call__(self, client: AsyncGatewayClient) -> str:
        del client
        self.calls += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, GatewayError):
            raise outcome
        return outcome


class Token:
    """The file that holds the token."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def write(self, token: str) -> None:
        self.file.write_text(token)

    def remove(self) -> None:
        self.file.unlink()


@pytest.fixture
def token(tmp_path: Path) -> Token:
    made = Token(tmp_path / "token")
    made.write("gwc_first")
    return made


@pytest.fixture
def time() -> Time:
    return Time()


def opened(
    token: Token,
    time: Time,
    url: str = "http://127.0.0.1:9",
    limit_seconds: float | None = None,
) -> Contact:
    source = TokenSource("file", str(token.file), {})
    settings = GatewaySettings(url, source, ca_file=None, allow_plain_http=False)
    outlook = "the certificate is good until May"
    return Contact(settings, time.clocks(), lambda: outlook, limit_seconds)


async def failed(
    contact: Contact, work: Played, failures: int = 0, hostname: Hostname = HOST
) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        await contact.call(hostname, work, failures)
    return raised.value


async def test_call_answers_what_it_came_to(token: Token, time: Time) -> None:
    async with opened(token, time) as contact:
        assert await contact.call(HOST, Played("published"), 0) == "published"


def test_url_that_would_show_the_token_is_refused(token: Token, time: Time) -> None:
    with pytest.raises(ContactInvalid, match="unencrypted"):
        opened(token, time, "http://192.0.2.1")


async def test_few_calls_are_made_at_once_however_many_there_are(token: Token, time: Time) -> None:
    under_way, most = 0, 0

    async def work(client: AsyncGatewayClient) -> None:
        nonlocal under_way, most
        del client
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    async with opened(token, time) as contact:
        await asyncio.gather(*(contact.call(HOST, work, 0) for _ in range(500)))
    assert most == CALLS_AT_ONCE


async def test_absent_gateway_is_called_once_for_all(token: Token, time: Time) -> None:
    work = Played(AWAY)
    async with opened(token, time) as contact:
        failures = [await failed(contact, work) for _ in range(500)]
        assert work.calls == 1
        assert {each.fault.sentence for each in failures} == {"The gateway cannot be reached."}
        assert {each.pause_ms for each in failures} == {1_000}


async def test_one_tries_for_all_when_the_pause_is_over(token: Token, time: Time) -> None:
    work = Played(AWAY, AWAY, "back")
    async with opened(token, time) as contact:
        await failed(contact, work)
        time.ms += 1_000
        assert (await failed(contact, work)).pause_ms == 2_000
        time.ms += 2_000
        assert await contact.call(HOST, work, 0) == "back"
        assert await contact.call(HOST, work, 0) == "back"


async def test_those_that_wait_are_woken_when_the_gateway_is_back(token: Token, time: Time) -> None:
    async with opened(token, time) as contact:
        await failed(contact, Played(AWAY))
        waiting = asyncio.create_task(contact.opened())
        await asyncio.sleep(0)
        assert not waiting.done()
        time.ms += 1_000
        await contact.call(HOST, Played("back"), 0)
        await waiting
        assert contact.fault is None


async def test_call_that_is_given_up_leaves_the_try_to_another(token: Token, time: Time) -> None:
    async def hangs(client: AsyncGatewayClient) -> None:
        del client
        await asyncio.Event().wait()

    async with opened(token, time) as contact:
        await failed(contact, Played(AWAY))
        time.ms += 1_000
        trying = asyncio.create_task(contact.call(HOST, hangs, 0))
        await asyncio.sleep(0)
        assert (await failed(contact, Played("back"))).fault.is_shared
        trying.cancel()
        await asyncio.wait({trying})
        assert await contact.call(HOST, Played("back"), 0) == "back"


async def test_broken_answer_for_one_keeps_nobody_else_away(token: Token, time: Time) -> None:
    async with opened(token, time) as contact:
        broken = await failed(contact, Played(AnswerInvalid("The answer is no JSON.")), 2)
        assert (broken.pause_ms, broken.fault.is_shared) == (4_000, False)
        assert await contact.call(HOST, Played("published"), 0) == "published"


@pytest.mark.parametrize("error", SUSPICIOUS, ids=lambda each: type(each).__name__)
async def test_call_that_fails_for_one_hostname_keeps_nobody_else_away(
    token: Token, time: Time, error: GatewayError
) -> None:
    async with opened(token, time) as contact:
        pauses = [(await failed(contact, Played(error), failures)) for failures in range(4)]
        assert [each.fault.is_shared for each in pauses] == [False] * 4
        assert [each.pause_ms for each in pauses] == [1_000, 2_000, 4_000, 8_000]
        assert await contact.call(Hostname("b.example.test"), Played("published"), 0) == "published"


@pytest.mark.parametrize("error", SUSPICIOUS, ids=lambda each: type(each).__name__)
async def test_several_hostnames_in_a_row_that_fail_are_the_gateway_s_fault(
    token: Token, time: Time, error: GatewayError
) -> None:
    work = Played(error)
    async with opened(token, time) as contact:
        for number in range(500):
            last = await failed(contact, work, hostname=Hostname(f"h{number}.example.test"))
        assert work.calls == SUSPECTS
        assert last.fault.is_shared
        assert not last.was_made


async def test_success_between_them_clears_those_that_fail(token: Token, time: Time) -> None:
    async with opened(token, time) as contact:
        for number in range(2 * SUSPECTS):
            name = Hostname(f"h{number}.example.test")
            assert not (await failed(contact, Played(HUNG), hostname=name)).fault.is_shared
            await contact.call(HOST, Played("published"), 0)


async def test_hostname_that_hangs_makes_no_lines_for_all(token: Token, time: Time) -> None:
    async with opened(token, time) as contact:
        with capture_logs() as lines:
            for failures in range(10):
                await failed(contact, Played(HUNG), failures)
                await contact.call(Hostname("b.example.test"), Played("published"), 0)
    assert lines == []


async def test_gateway_s_own_wait_holds_for_all(token: Token, time: Time) -> None:
    work = Played(Unavailable(90_000))
    async with opened(token, time) as contact:
        for number in range(SUSPECTS):
            last = await failed(contact, work, hostname=Hostname(f"h{number}.example.test"))
        assert last.pause_ms == 90_000


async def test_incident_is_told_and_makes_no_other_fault(token: Token, time: Time) -> None:
    async with opened(token, time) as contact:
        first = (await failed(contact, Played(Internal("1f3c")))).fault
        second = (await failed(contact, Played(Internal("2a4d")))).fault
    assert first == second
    assert "1f3c" in str(first)
    assert "2a4d" in str(second)


async def test_failed_try_counts_for_the_one_that_tried(token: Token, time: Time) -> None:
    async with opened(token, time) as contact:
        assert (await failed(contact, Played(AWAY))).was_made
        assert not (await failed(contact, Played(AWAY))).was_made


async def test_call_that_outlasts_the_time_there_is_is_given_up(token: Token, time: Time) -> None:
    async def hangs(client: AsyncGatewayClient) -> None:
        del client
        await asyncio.Event().wait()

    async with opened(token, time, limit_seconds=0.01) as contact:
        with pytest.raises(CallFailed) as raised:
            await contact.call(HOST, hangs, 0)
    assert raised.value.fault == OUT_OF_TIME


async def test_refused_token_is_tried_again_slowly(token: Token, time: Time) -> None:
    work = Played(Unauthorized())
    async with opened(token, time) as contact:
        assert (await failed(contact, work)).pause_ms == OPERATOR_PAUSE_MS
        time.ms += OPERATOR_PAUSE_MS - 1
        await failed(contact, work)
        assert work.calls == 1


async def test_token_that_is_replaced_is_tried_at_once(token: Token, time: Time) -> None:
    work = Played(Unauthorized(), "published")
    async with opened(token, time) as contact:
        await failed(contact, work)
        token.write("gwc_second")
        assert await contact.call(HOST, work, 0) == "published"


async def test_missing_token_is_told_and_taken_when_it_is_there(token: Token, time: Time) -> None:
    work = Played("published")
    token.remove()
    async with opened(token, time) as contact:
        missing = await failed(contact, work)
        assert (missing.fault.mends, missing.pause_ms) == (False, OPERATOR_PAUSE_MS)
        assert str(token.file) in missing.fault.sentence
        assert work.calls == 0
        token.write("gwc_second")
        assert await contact.call(HOST, work, 0) == "published"


async def test_gateway_that_is_away_is_logged_when_it_begins_hourly_and_when_it_ends(
    token: Token, time: Time
) -> None:
    work = Played(AWAY)
    async with opened(token, time) as contact:
        with capture_logs() as lines:
            while time.ms < 3 * HOUR_MS:
                time.ms += (await failed(contact, work)).pause_ms
            await contact.call(HOST, Played("back"), 0)
    assert [line["event"] for line in lines] == [
        "the gateway cannot be used",
        *["no gateway still"] * 2,
        "the gateway can be used again",
    ]
    assert {line["meanwhile"] for line in lines[:-1]} == {"the certificate is good until May"}
    assert lines[1]["since"] == lines[-1]["was_away_since"] == "2026-11-18 11:06:40 UTC"


async def test_client_that_holds_as_much_as_it_may_is_no_gateway_that_is_away(
    token: Token, time: Time
) -> None:
    full = Played(Overloaded(3_600_000))
    async with opened(token, time) as contact:
        for number in range(5):
            failure = await failed(contact, full, hostname=Hostname(f"h{number}.example.test"))
            assert not failure.fault.is_shared
            assert failure.pause_ms == 3_600_000
        assert contact.fault is None
        assert await contact.call(HOST, Played("published"), 0) == "published"
