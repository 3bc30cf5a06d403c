"""The blocking client: the same calls, from threads, and what ends it early."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from gateway.client import (
    AdminContext,
    AnswerInvalid,
    ClientContext,
    DeadlinePassed,
    GatewayClient,
    HostnameForbidden,
    Pending,
    Progress,
    Ready,
    RequestInvalid,
    Unreachable,
    judge_certificate,
)
from tests.integration.client.conftest import RELAY, TOKEN
from tests.integration.service.calling import Ownership as Mine, spec
from tests.lab.lab import Lab
from tests.lab.liar import HANG, Liar, response, spoiled
from tests.lab.process import wait_until

ADDRESS = {"type": "A", "value": "198.51.100.5", "ttl": 60}
RELEASED = response({"status": "released"})


@pytest.fixture
def operator(lab: Lab) -> Iterator[GatewayClient]:
    with GatewayClient(lab.config.url, lab.config.admin_token) as client:
        yield client


def test_relay_is_published_served_and_given_up(blocking: GatewayClient, mine: Mine) -> None:
    assert blocking.get_capabilities().certificates.exact_issuance
    assert isinstance(blocking.get_context(), ClientContext)
    assert blocking.sync_dns_record(mine.wire, ADDRESS).status == "managed-created"
    assert isinstance(blocking.get_certificate(mine.wire), Pending)
    told: list[Progress] = []
    certificate = blocking.wait_for_certificate(mine.wire, 60.0, told.append)
    assert judge_certificate(certificate, mine.hostname, datetime.now(UTC))
    assert told
    assert isinstance(blocking.get_certificate(mine.wire), Ready)
    assert blocking.release_certificate(mine.wire).status == "released"
    assert blocking.delete_dns_record(mine.wire).status == "managed-deleted"


def test_client_is_made_rotated_revoked_and_removed(
    operator: GatewayClient, new_client_id: str
) -> None:
    assert operator.get_context() == AdminContext()
    made = operator.ensure_client(spec(new_client_id, "a.example.test"))
    rotated = operator.rotate_credential(new_client_id, overlap_seconds=60)
    assert made.api_token not in (None, rotated.api_token)
    assert operator.revoke_credentials(new_client_id).credential is None
    assert operator.remove_client(new_client_id).client.client_id == new_client_id


def test_errors_are_those_of_the_asynchronous_client(blocking: GatewayClient, liar: Liar) -> None:
    with pytest.raises(HostnameForbidden):
        blocking.release_certificate(RELAY)
    with pytest.raises(RequestInvalid):
        blocking.release_certificate({})
    liar.answers(b"garbage")
    with GatewayClient(liar.url, TOKEN) as deceived, pytest.raises(AnswerInvalid):
        deceived.release_certificate(RELAY)


def test_plain_http_to_another_machine_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="unencrypted"):
        GatewayClient("http://gateway.example.com", TOKEN)


def test_client_shows_its_url_and_never_its_token() -> None:
    with GatewayClient("https://gateway.example.com", TOKEN) as client:
        assert repr(client) == "GatewayClient('https://gateway.example.com/typedrequest')"


def test_threads_share_one_client(blocking: GatewayClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        contexts = list(pool.map(lambda _: blocking.get_context(), range(40)))
    assert all(context == contexts[0] for context in contexts)


def test_deadline_holds_for_an_answer_that_trickles(liar: Liar) -> None:
    liar.answers(spoiled(RELEASED, seconds_per_byte=0.02))
    with GatewayClient(liar.url, TOKEN, deadline=0.3) as client, pytest.raises(DeadlinePassed):
        client.release_certificate(RELAY)


def test_lost_answer_is_asked_for_again(liar: Liar) -> None:
    liar.answers(spoiled(RELEASED, cut_after=100), RELEASED)
    with GatewayClient(liar.url, TOKEN) as client:
        assert client.release_certificate(RELAY).status == "released"


def test_closing_twice_is_closing_once(liar: Liar) -> None:
    liar.answers(RELEASED)
    with GatewayClient(liar.url, TOKEN) as client:
        client.release_certificate(RELAY)
        client.close()
    wait_until(lambda: not liar.open_connections, "the connection is closed")


def test_thread_of_the_client_ends_with_it(liar: Liar) -> None:
    before = set(threading.enumerate())
    with GatewayClient(liar.url, TOKEN):
        assert set(threading.enumerate()) > before
    assert set(threading.enumerate()) == before


def test_closing_ends_the_calls_of_other_threads(liar: Liar) -> None:
    liar.answers(HANG)
    with ThreadPoolExecutor(1) as pool, GatewayClient(liar.url, TOKEN) as client:
        call = pool.submit(client.release_certificate, RELAY)
        wait_until(lambda: bool(liar.requests), "the call has arrived")
        client.close()
        with pytest.raises(Unreachable, match="closed before the answer came") as raised:
            call.result()
    assert raised.value.may_have_arrived
    assert len(liar.requests) == 1


def test_closed_client_says_that_it_is(liar: Liar) -> None:
    with GatewayClient(liar.url, TOKEN) as client:
        pass
    with pytest.raises(RuntimeError, match="This client is closed"):
        client.release_certificate(RELAY)


@pytest.mark.parametrize("what", ["close", "call"])
def test_callback_that_would_wait_for_itself_is_told_so_and_ends_the_call(
    liar: Liar, what: str
) -> None:
    liar.answers(response({"status": "pending", "retryAfterMs": 1}))
    with GatewayClient(liar.url, TOKEN) as client:

        def tell(_: Progress) -> None:
            client.close() if what == "close" else client.get_context()

        with pytest.raises(RuntimeError, match="client's own thread, which runs its callbacks"):
            client.wait_for_certificate(RELAY, on_progress=tell)
        liar.answers(RELEASED)
        assert client.release_certificate(RELAY).status == "released"


def test_client_with_another_token_shares_the_thread_and_the_connection(liar: Liar) -> None:
    liar.answers(RELEASED)
    with GatewayClient(liar.url, TOKEN) as client:
        threads = threading.active_count()
        with client.with_token("gwc_other") as other:
            other.release_certificate(RELAY)
        client.release_certificate(RELAY)
        assert threading.active_count() == threads
    tokens = [request.envelope["request"]["apiToken"] for request in liar.requests]
    assert tokens == ["gwc_other", TOKEN]
    assert liar.connections == 1


@pytest.fixture
def interruptible() -> Iterator[None]:
    """^C is a KeyboardInterrupt in this thread, whatever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_call_is_given_up_and_the_client_goes_on(liar: Liar) -> None:
    liar.answers(HANG, RELEASED)

    def interrupt_once_asked() -> None:
        wait_until(lambda: bool(liar.requests), "it has asked")
        os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as pool, GatewayClient(liar.url, TOKEN) as client:
        pool.submit(interrupt_once_asked)
        with pytest.raises(KeyboardInterrupt):
            client.release_certificate(RELAY)
        # Well before the client itself would have given the answer up.
        wait_until(lambda: not liar.open_connections, "the connection is closed", 10.0)
        assert client.release_certificate(RELAY).status == "released"
