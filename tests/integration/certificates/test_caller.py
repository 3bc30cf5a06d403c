"""Calls to a CA: its directory, kept and read again, and what a refusal is told as."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from gateway.certificates.authority.caller import AWAY_SECONDS, DIRECTORY_SECONDS, Caller
from gateway.certificates.authority.faults import Operation
from gateway.certificates.authority.network import Network
from gateway.certificates.authority.settings import origin_of
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.integration.certificates.scripted import (
    NEW_NONCE,
    ScriptedCa,
    answer,
    directory,
    scripted_ca,
)
from tests.integration.certificates.test_network import READ, SIGNER, WRITE, new_network
from tests.lab.ports import LOOPBACK

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def timed_network(clock: Clock) -> AsyncIterator[Network]:
    """A network whose time stands still unless the test moves it."""
    network = new_network(clock)
    yield network
    network.close()


def new_caller(network: Network, ca: ScriptedCa, clock: Clock) -> Caller:
    return Caller(network, f"{ca.url}/dir", name="ca", now_utc=lambda: NOW, monotonic=clock)


async def test_directory_is_read_once_an_hour(timed_network: Network, clock: Clock) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, *[answer(200, b"{}", nonce="AAAA")] * 2]
        ca.steps += [directory(ca), answer(200, b"{}")]
        caller = new_caller(timed_network, ca, clock)
        await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)
        clock.seconds = DIRECTORY_SECONDS - 1
        await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)
        clock.seconds = DIRECTORY_SECONDS
        await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)
        paths = [one.path for one in ca.seen]
    assert paths == ["/dir", "/newNonce", "/newOrder", "/newOrder", "/dir", "/newOrder"]


@pytest.mark.parametrize("away", [answer(503, retry_after="9"), answer(200, b"[]"), answer(403)])
async def test_directory_that_could_not_be_read_is_left_alone_for_some_seconds(
    timed_network: Network, clock: Clock, away: bytes
) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [away, directory(ca), NEW_NONCE, answer(200, b"{}")]
        caller = new_caller(timed_network, ca, clock)
        faults = []
        for second in (0, 1, AWAY_SECONDS - 1):
            clock.seconds = second
            with pytest.raises(AuthorityFault) as caught:
                await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)
            faults.append(caught.value)
        assert all(vars(one) == vars(faults[0]) for one in faults)
        assert len(set(map(id, faults))) == len(faults)
        assert len(ca.seen) == 1
        clock.seconds = AWAY_SECONDS
        assert (await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)).is_success


async def test_directory_is_read_for_readiness_however_it_was_a_moment_ago(
    timed_network: Network, clock: Clock
) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [answer(503), directory(ca)]
        caller = new_caller(timed_network, ca, clock)
        with pytest.raises(AuthorityFault):
            await caller.read_directory()
        await caller.read_directory()
        assert await caller.url_of(Operation.NEW_ORDER) == f"{ca.url}/newOrder"


async def test_directory_that_is_away_is_asked_for_once_by_many_calls() -> None:
    network = Network(
        user_agent="gateway-tests/1", ca_bundle=None, connections=8, monotonic=time.monotonic
    )
    with ScriptedListener() as listener:
        caller = Caller(
            network, listener.url, name="ca", now_utc=lambda: NOW, monotonic=time.monotonic
        )
        asked = [asyncio.create_task(caller.url_of(Operation.NEW_ORDER)) for _ in range(8)]
        # Twice, since an idle connection ends like that; then it is the fault of all.
        await asyncio.to_thread(listener.cut_off)
        await asyncio.to_thread(listener.cut_off)
        faults = {str(one) for one in await asyncio.gather(*asked, return_exceptions=True)}
        assert not listener.has_another()
    network.close()
    assert faults == {"the CA cut the connection off before its answer was complete"}


class ScriptedListener:
    """Takes connections one by one, and ends each without an answer."""

    def __enter__(self) -> "ScriptedListener":
        self._listener = socket.create_server((LOOPBACK, 0))
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._listener.getsockname()[1]}/dir"

    def cut_off(self) -> None:
        connection, _ = self._listener.accept()
        connection.close()

    def has_another(self) -> bool:
        self._listener.setblocking(False)
        try:
            self.cut_off()
        except BlockingIOError:
            return False
        return True


@pytest.mark.parametrize("status", [404, 405, 410])
async def test_directory_is_read_again_when_nothing_is_where_it_said(
    timed_network: Network, clock: Clock, status: int
) -> None:
    with scripted_ca([]) as ca:
        moved = directory(ca).replace(b"/newOrder", b"/orderNew")
        ca.steps += [directory(ca), NEW_NONCE, answer(status, b"<h1>moved</h1>", nonce="AAAA")]
        ca.steps += [moved, answer(200, b"{}")]
        caller = new_caller(timed_network, ca, clock)
        with pytest.raises(AuthorityFault) as caught:
            await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)
        assert caught.value.kind is FaultKind.SERVER_ERROR
        assert (await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)).is_success
        assert ca.seen[-1].path == "/orderNew"


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"{}", b'{"newNonce":5}'])
async def test_directory_that_is_none_is_the_fault_of_the_server(
    timed_network: Network, clock: Clock, body: bytes
) -> None:
    with scripted_ca([answer(200, body)]) as ca, pytest.raises(AuthorityFault) as caught:
        await new_caller(timed_network, ca, clock).read_directory()
    assert caught.value.kind is FaultKind.SERVER_ERROR


@pytest.mark.parametrize(
    ("refusal", "kind", "retry_after_seconds"),
    [
        (answer(503, retry_after="Sun, 29 Nov 2026 12:05:00 GMT"), FaultKind.SERVER_ERROR, 300),
        (answer(429, retry_after="9"), FaultKind.RATE_LIMITED, 9),
        (answer(404), FaultKind.SERVER_ERROR, None),
        (answer(200), FaultKind.SERVER_ERROR, None),
    ],
)
async def test_fault_is_that_of_the_nonce_when_the_ca_hands_out_none(
    timed_network: Network,
    clock: Clock,
    refusal: bytes,
    kind: FaultKind,
    retry_after_seconds: float | None,
) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), refusal]
        caller = new_caller(timed_network, ca, clock)
        with pytest.raises(AuthorityFault) as caught:
            await caller.call(Operation.READ_ORDER, f"{ca.url}/order", READ, SIGNER)
    assert (caught.value.kind, caught.value.retry_after_seconds) == (kind, retry_after_seconds)


async def test_conflict_keeps_the_words_of_the_ca(timed_network: Network, clock: Clock) -> None:
    body = b'{"type":"urn:ietf:params:acme:error:alreadyReplaced","detail":"replaced before"}'
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, answer(409, body)]
        caller = new_caller(timed_network, ca, clock)
        with pytest.raises(AuthorityFault) as caught:
            await caller.call(Operation.NEW_ORDER, None, WRITE, SIGNER)
    assert caught.value.kind is FaultKind.MALFORMED
    assert caught.value.detail == "alreadyReplaced: replaced before"
    assert caught.value.problem_type == "alreadyReplaced"


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "https://127.0.0.1:6379/",
        "http://localhost/",
        "//other.example/",
        "file:///etc/passwd",
        "no url",
        "http://[::1",
    ],
)
async def test_url_at_another_origin_is_not_asked(
    timed_network: Network, clock: Clock, url: str
) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca)]
        caller = new_caller(timed_network, ca, clock)
        for ask in (
            lambda: caller.get(Operation.RENEWAL_INFO, url),
            lambda: caller.call(Operation.READ_ORDER, url, READ, SIGNER),
        ):
            with pytest.raises(AuthorityFault, match=r"acme\.origins") as caught:
                await ask()
            assert caught.value.kind is FaultKind.SERVER_ERROR
        assert [seen.path for seen in ca.seen] == ["/dir"]


async def test_url_at_an_origin_that_is_listed_is_asked(
    timed_network: Network, clock: Clock
) -> None:
    with scripted_ca([]) as files, scripted_ca([]) as ca:
        files.steps += [answer(200, b"{}")]
        caller = Caller(
            timed_network,
            f"{ca.url}/dir",
            name="ca",
            origins=[origin_of(files.url)],
            now_utc=lambda: NOW,
            monotonic=clock,
        )
        assert (await caller.get(Operation.RENEWAL_INFO, f"{files.url}/renewal")).is_success
