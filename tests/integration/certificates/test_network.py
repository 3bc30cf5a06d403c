"""HTTP with a CA that misbehaves, and what becomes of its nonces."""

import base64
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from itertools import count
from urllib.parse import urlsplit

import pytest

from gateway.certificates.accounts import StoredAccount
from gateway.certificates.authority import Authority
from gateway.certificates.authority.answers import MAX_BODY_BYTES
from gateway.certificates.authority.network import MAX_NONCE_RETRIES, Network, Post
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.signing import load_signer
from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.leases import LeaseOver, guarded_by
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.integration.certificates.issuing import MemoryAccountStore
from tests.integration.certificates.scripted import (
    CUT,
    NEW_NONCE,
    ScriptedCa,
    Seen,
    answer,
    bad_nonce,
    directory,
    scripted_ca,
    scripted_settings,
)
from tests.lab.ports import LOOPBACK
from tests.lab.process import wait_until

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
SIGNER = load_signer(new_private_key(KeyType.ECDSA_P256), "http://ca.example.test/account/1")
READ, WRITE = b"", b'{"identifiers":[]}'


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    network = new_network(time.monotonic)
    yield network
    network.close()


def new_network(monotonic: Callable[[], float]) -> Network:
    return Network(user_agent="gateway-tests/1", ca_bundle=None, connections=1, monotonic=monotonic)


def soon() -> float:
    return time.monotonic() + 30


async def post(network: Network, ca: ScriptedCa, payload: bytes) -> Reply:
    return await network.post(Post(f"{ca.url}/object", payload, SIGNER, f"{ca.url}/nonce"), soon())


def nonces(seen: list[Seen]) -> list[str]:
    """The nonces that signed requests carried, in order."""
    protected = [json.loads(one.body)["protected"] for one in seen if one.method == "POST"]
    return [json.loads(base64.urlsafe_b64decode(f"{one}=="))["nonce"] for one in protected]


async def test_request_says_who_asks_and_what_it_takes(network: Network) -> None:
    with scripted_ca([NEW_NONCE, answer(200, b"{}")]) as ca:
        assert (await post(network, ca, WRITE)).body == b"{}"
    assert [(one.method, one.path) for one in ca.seen] == [("HEAD", "/nonce"), ("POST", "/object")]
    headers = ca.seen[1].headers
    assert headers["user-agent"] == "gateway-tests/1"
    assert headers["content-type"] == "application/jose+json"
    assert headers["accept"] == "application/json"
    assert headers["accept-encoding"] == "identity"


async def test_nonce_of_one_answer_serves_for_the_next_request(network: Network) -> None:
    steps = [NEW_NONCE, answer(200, b"{}", nonce="bm9uY2Ux"), answer(200, b"{}")]
    with scripted_ca(steps) as ca:
        await post(network, ca, WRITE)
        await post(network, ca, WRITE)
    assert nonces(ca.seen) == ["bm9uY2U0", "bm9uY2Ux"]


async def test_rejected_nonce_is_replaced_by_the_one_in_the_error(network: Network) -> None:
    steps = [NEW_NONCE, bad_nonce("AAAA"), bad_nonce("BBBB"), answer(201, b"{}")]
    with scripted_ca(steps) as ca:
        assert (await post(network, ca, WRITE)).status == 201
    assert nonces(ca.seen) == ["bm9uY2U0", "AAAA", "BBBB"]


async def test_rejected_nonce_is_replaced_by_a_new_one_when_the_error_has_none(
    network: Network,
) -> None:
    steps = [NEW_NONCE, bad_nonce(None), answer(204, nonce="CCCC"), answer(200, b"{}")]
    with scripted_ca(steps) as ca:
        await post(network, ca, WRITE)
    assert nonces(ca.seen) == ["bm9uY2U0", "CCCC"]


async def test_request_is_made_fifty_one_times_at_most(network: Network) -> None:
    steps = [NEW_NONCE, *[bad_nonce("AAAA")] * (MAX_NONCE_RETRIES + 1)]
    with scripted_ca(steps) as ca:
        assert (await post(network, ca, WRITE)).status == 400
    assert len(nonces(ca.seen)) == 51


async def test_request_succeeds_the_fifty_first_time(network: Network) -> None:
    steps = [NEW_NONCE, *[bad_nonce("AAAA")] * MAX_NONCE_RETRIES, answer(200, b"{}")]
    with scripted_ca(steps) as ca:
        assert (await post(network, ca, WRITE)).status == 200


@pytest.mark.parametrize("nonce", ["AB", "A", "no nonce", "AAA=", "ÄÄÄÄ"])
async def test_nonce_that_is_not_canonical_base64url_is_not_used(
    network: Network, nonce: str
) -> None:
    odd = answer(200, b"{}").replace(b"\r\n", f"\r\nReplay-Nonce: {nonce}\r\n".encode(), 1)
    with scripted_ca([NEW_NONCE, odd, NEW_NONCE, answer(200, b"{}")]) as ca:
        await post(network, ca, WRITE)
        await post(network, ca, WRITE)
    assert nonces(ca.seen) == ["bm9uY2U0", "bm9uY2U0"]


@pytest.mark.parametrize("payload", [READ, WRITE])
async def test_request_is_sent_again_unchanged_when_the_idle_connection_was_closed(
    network: Network, payload: bytes
) -> None:
    with scripted_ca([NEW_NONCE, CUT, answer(200, b"{}")]) as ca:
        assert (await post(network, ca, payload)).status == 200
    assert ca.seen[1].body == ca.seen[2].body


async def test_read_is_made_anew_when_its_answer_was_lost(network: Network) -> None:
    steps = [NEW_NONCE, CUT, bad_nonce("AAAA"), answer(200, b"{}")]
    with scripted_ca(steps) as ca:
        assert (await post(network, ca, READ)).status == 200


async def test_write_is_not_made_twice_when_its_answer_was_lost(network: Network) -> None:
    with (
        scripted_ca([NEW_NONCE, CUT, bad_nonce("AAAA")]) as ca,
        pytest.raises(AuthorityFault) as caught,
    ):
        await post(network, ca, WRITE)
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert "may have done" in caught.value.detail
    assert ca.seen[1].body == ca.seen[2].body


TRUNCATED = answer(200, b"x" * 100)[:-1]

NO_ANSWER = {
    "nothing": CUT,
    "half of a line": b"HTTP/1.1 20",
    "half of the body": TRUNCATED,
    "half of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
}


@pytest.mark.parametrize("step", NO_ANSWER.values(), ids=NO_ANSWER)
async def test_ca_is_unreachable_when_its_answer_is_not_complete(
    network: Network, step: bytes
) -> None:
    with scripted_ca([step, step]) as ca, pytest.raises(AuthorityFault) as caught:
        await network.get(ca.url, soon())
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert caught.value.detail == "the CA cut the connection off before its answer was complete"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_ca_is_unreachable_when_it_does_not_answer_in_time(
    network: Network, scheme: str
) -> None:
    # The kernel takes the connection; nobody answers.
    with socket.create_server((LOOPBACK, 0)) as listener:
        url = f"{scheme}://{LOOPBACK}:{listener.getsockname()[1]}/dir"
        with pytest.raises(AuthorityFault) as caught:
            await network.get(url, time.monotonic() + 0.05)
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert caught.value.detail.endswith("in time")


async def test_ca_is_unreachable_when_it_does_not_speak_tls(network: Network) -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        greeter = threading.Thread(target=greet, args=[listener])
        greeter.start()
        with pytest.raises(AuthorityFault) as caught:
            await network.get(f"https://{LOOPBACK}:{listener.getsockname()[1]}/dir", soon())
        greeter.join()
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert caught.value.detail.startswith("no TLS connection to the CA")


def greet(listener: socket.socket) -> None:
    """Speak first, as a mail server does."""
    connection, _ = listener.accept()
    with connection:
        connection.sendall(b"220 mail.example.test\r\n")
        connection.recv(65536)


async def test_ca_is_unreachable_when_its_answer_does_not_end() -> None:
    ticks = count()
    network = new_network(lambda: float(next(ticks)))
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * MAX_BODY_BYTES
    with scripted_ca([endless]) as ca, pytest.raises(AuthorityFault) as caught:
        await network.get(ca.url, 4.0)
    network.close()
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert caught.value.detail == "the CA took too long to answer"


async def test_ca_is_unreachable_when_the_time_is_over_before_it_is_asked(network: Network) -> None:
    with scripted_ca([]) as ca, pytest.raises(AuthorityFault) as caught:
        await network.get(ca.url, time.monotonic() - 1)
    assert caught.value.kind is FaultKind.UNREACHABLE


async def test_answer_is_refused_when_it_is_too_long(network: Network) -> None:
    with scripted_ca([answer(200, b"x" * (MAX_BODY_BYTES + 1))]) as ca:
        with pytest.raises(AuthorityFault) as caught:
            await network.get(ca.url, soon())
        network.close()
    assert caught.value.kind is FaultKind.SERVER_ERROR


async def test_answer_may_have_the_greatest_length(network: Network) -> None:
    with scripted_ca([answer(200, b"x" * MAX_BODY_BYTES)]) as ca:
        assert len((await network.get(ca.url, soon())).body) == MAX_BODY_BYTES


async def test_repeated_header_is_kept_whole(network: Network) -> None:
    step = answer(200, link="<a>").replace(b"link: <a>", b"Link: <a>\r\nLINK: <b>")
    with scripted_ca([step]) as ca:
        assert (await network.get(ca.url, soon())).headers["link"] == "<a>, <b>"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_not_followed(network: Network, status: int) -> None:
    with scripted_ca([answer(status, location="/elsewhere")]) as ca:
        assert (await network.get(ca.url, soon())).status == status


@pytest.mark.parametrize("status", [429, 503])
async def test_request_is_not_repeated_when_the_ca_says_later(
    network: Network, status: int
) -> None:
    with scripted_ca([answer(status, retry_after="0")]) as ca:
        assert (await network.get(ca.url, soon())).status == status


async def test_environment_has_no_say(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:1")
    with scripted_ca([answer(200, b"{}")]) as ca:
        assert (await network.get(ca.url, soon())).status == 200


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://"])
async def test_url_of_another_kind_is_not_asked(network: Network, url: str) -> None:
    with pytest.raises(AuthorityFault) as caught:
        await network.get(url, soon())
    assert caught.value.kind is FaultKind.UNREACHABLE


class Lapsed(LeaseOver):
    """What the guard of these tests raises."""


def lapse() -> None:
    raise Lapsed


@pytest.mark.parametrize("known_nonces", [0, 1])
async def test_nothing_is_sent_when_the_lease_is_over(network: Network, known_nonces: int) -> None:
    steps = [NEW_NONCE, answer(200, b"{}", nonce="AAAA")] * known_nonces
    with scripted_ca(steps) as ca:
        for _ in range(known_nonces):
            await post(network, ca, WRITE)
        before = len(ca.seen)
        with guarded_by(lapse), pytest.raises(Lapsed):
            await post(network, ca, WRITE)
        assert len(ca.seen) == before


async def test_request_is_not_sent_again_when_the_lease_ran_out_meanwhile(network: Network) -> None:
    calls: list[None] = []

    def lapse_at_the_third() -> None:
        calls.append(None)
        if len(calls) == 3:
            raise Lapsed

    with scripted_ca([NEW_NONCE, bad_nonce("AAAA")]) as ca:
        with guarded_by(lapse_at_the_third), pytest.raises(Lapsed):
            await post(network, ca, WRITE)
        assert len(nonces(ca.seen)) == 1


async def test_lease_is_looked_at_by_an_authority() -> None:
    with scripted_ca([]) as ca:
        authority = Authority(scripted_settings(ca), MemoryAccountStore())
        with guarded_by(lapse), pytest.raises(Lapsed):
            await authority.ensure_account()
        await authority.close()
        assert ca.seen == []


async def test_account_is_refused_when_it_was_deactivated() -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE]
        ca.steps += [answer(200, b'{"status":"deactivated"}', location=f"{ca.url}/account/1")]
        store = MemoryAccountStore()
        authority = Authority(scripted_settings(ca), store)
        with pytest.raises(AuthorityFault) as caught:
            await authority.ensure_account()
        await authority.close()
    assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
    assert store.urls == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"-----BEGIN CERTIFICATE-----\n\xff"])
async def test_certificate_that_is_not_pem_is_the_fault_of_the_server(body: bytes) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, answer(200, body)]
        account = StoredAccount(new_private_key(KeyType.ECDSA_P256), f"{ca.url}/account/1")
        authority = Authority(scripted_settings(ca), MemoryAccountStore(account))
        with pytest.raises(AuthorityFault) as caught:
            await authority.fetch_certificate(f"{ca.url}/certificate/1")
        await authority.close()
    assert caught.value.kind is FaultKind.SERVER_ERROR
    assert ca.seen[-1].headers["accept"] == "application/pem-certificate-chain"


async def test_fault_says_that_nothing_was_asked_where_no_connection_was_made(
    network: Network,
) -> None:
    with scripted_ca([NEW_NONCE, answer(200, b"{}", nonce="AAAA")]) as ca:
        await post(network, ca, WRITE)
        object_url, nonce_url = f"{ca.url}/object", f"{ca.url}/nonce"
    wait_until(lambda: not _takes(object_url), "it is away")
    for _ in range(2):  # with a nonce at hand, and without
        with pytest.raises(AuthorityFault) as caught:
            await network.post(Post(object_url, WRITE, SIGNER, nonce_url), soon())
        assert (caught.value.kind, caught.value.may_be_done) == (FaultKind.UNREACHABLE, False)


def _takes(url: str) -> bool:
    parts = urlsplit(url)
    with contextlib.suppress(OSError), socket.create_connection((parts.hostname, parts.port)):
        return True
    return False


@pytest.mark.parametrize("steps", [[CUT, CUT], [bad_nonce("AAAA"), CUT, CUT]])
async def test_fault_says_that_it_may_have_been_done_where_an_answer_was_lost(
    network: Network, steps: list[bytes]
) -> None:
    with scripted_ca([NEW_NONCE, *steps]) as ca, pytest.raises(AuthorityFault) as caught:
        await post(network, ca, WRITE)
    assert caught.value.may_be_done


async def test_fault_says_that_nothing_was_asked_where_the_nonce_did_not_come(
    network: Network,
) -> None:
    with scripted_ca([CUT, CUT]) as ca, pytest.raises(AuthorityFault) as caught:
        await post(network, ca, WRITE)
    assert not caught.value.may_be_done
