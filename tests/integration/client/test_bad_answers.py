"""Answers that break the contract or HTTP: refused with the reason, not repeated, never used.

A liar gives them, since no real gateway does.
"""

import httpx
import pytest

from gateway.client import (
    AnswerInvalid,
    AsyncGatewayClient,
    CallError,
    EnvelopeInvalid,
    Internal,
    MethodUnknown,
    Overloaded,
    RequestInvalid,
    UnknownFailure,
    Unreachable,
)
from tests.integration.client.conftest import RELAY, TOKEN
from tests.lab.liar import (
    Answer,
    Liar,
    Says,
    enveloped,
    failure,
    gzip_bomb,
    response,
    spoiled,
)

MEGABYTE = 1_000_000
HTML = Says(b"<html>Sign in to the hotel</html>", headers={"Content-Type": "text/html"})

BAD: dict[str, tuple[Answer, str]] = {
    "garbage": (b"\0garbage", "not JSON"),
    "nothing": (b"", "not JSON"),
    "a page": (HTML, "is it the gateway's URL"),
    "a list": (b"[]", "must be an object, not a list"),
    "half of it": (lambda envelope: enveloped(envelope)[:-1], "not JSON"),
    "a key twice": (
        lambda envelope: enveloped(envelope).replace(b"{", b'{"method": "x", ', 1),
        '"method" twice',
    ),
    "deep nesting": (lambda envelope: enveloped(envelope, response=_deep()), "nested deeper"),
    "another method": (response({}, method="other"), 'to the method "other"'),
    "another call": (response({}, correlation={"id": "0"}), "to another call"),
    "no response": (response(None), "response must be an object, not null"),
    "a wrong type": (response({"context": "admin"}), "context"),
    "a missing key": (response({}), "context is missing"),
    "an unknown role": (response({"context": {"role": "king"}}), "role"),
    "an error that is none": (response(None, error="no"), "error must be an object"),
    "an error without a code": (response(None, error={"text": "", "data": {}}), "with a code"),
    "a redirect": (Says(status=307, headers={"Location": "/typedrequest"}), "HTTP status 307"),
    "a redirect elsewhere": (
        Says(status=301, headers={"Location": "http://192.0.2.1/"}),
        "HTTP status 301",
    ),
    "an empty success": (Says(status=204), "HTTP status 204"),
    "a page that is not there": (Says(b'{"text": "no"}', status=404), "is it the gateway's URL"),
    "a page of an error": (Says(b"<html>", status=500), "HTTP status 500"),
    "a refusal in HTML": (Says(HTML.body, 400, HTML.headers), "HTTP status 400"),
    "a packed answer": (gzip_bomb(10), "is compressed"),
    "a bomb": (gzip_bomb(100 * MEGABYTE), "is compressed"),
}


def _deep() -> object:
    value: object = []
    for _ in range(40):
        value = [value]
    return value


@pytest.mark.parametrize("what", BAD)
async def test_answer_that_breaks_the_contract_is_refused_with_the_reason(
    liar: Liar, deceived: AsyncGatewayClient, what: str
) -> None:
    answer, reason = BAD[what]
    liar.answers(answer)
    with pytest.raises(AnswerInvalid, match=reason):
        await deceived.get_context()
    assert len(liar.requests) == 1


@pytest.mark.parametrize("has_length", [True, False])
async def test_endless_answer_is_refused_long_before_its_end(
    liar: Liar, deceived: AsyncGatewayClient, has_length: bool
) -> None:
    liar.answers(Says(b" " * MEGABYTE, times=100, has_length=has_length))
    with pytest.raises(AnswerInvalid, match="more than 1048576 bytes"):
        await deceived.get_context()
    assert liar.sent_bytes < 50 * MEGABYTE


async def test_good_answer_after_a_bad_one_is_read(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    liar.answers(b"garbage", response({"status": "released"}))
    with pytest.raises(AnswerInvalid):
        await deceived.release_certificate(RELAY)
    assert (await deceived.release_certificate(RELAY)).status == "released"


@pytest.mark.parametrize(
    "answer",
    [
        Says(raw=b"HTTP/1.1 200 OK\r\n" + b"Many: headers\r\n" * 20_000),
        Says(raw=b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
        Says(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    ],
    ids=["endless headers", "a negative length", "broken chunks"],
)
async def test_http_that_cannot_be_read_is_a_broken_connection(
    liar: Liar, deceived: AsyncGatewayClient, answer: Answer
) -> None:
    liar.answers(answer)
    # A call that is not repeated.
    with pytest.raises(Unreachable, match="broke before an answer"):
        await deceived.rotate_credential("cluster-a")


NO_HTTP: dict[str, bytes] = {
    "garbage": b"\0garbage\r\n\r\n",
    "another version": b"HTTP/2 200 OK\r\n\r\n",
    "another protocol": b"ICY 200 OK\r\n\r\n",
    "an alert of TLS": b"\x15\x03\x01\x00\x02\x02\x46",
    "another protocol from now on": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
    b"Connection: upgrade\r\n\r\n",
    "a status that is none": b"HTTP/1.1 007 OK\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("what", NO_HTTP)
async def test_what_speaks_no_http_is_no_gateway_and_told_at_once(
    liar: Liar, deceived: AsyncGatewayClient, what: str
) -> None:
    liar.answers(Says(raw=NO_HTTP[what]))
    with pytest.raises(AnswerInvalid, match=r"speaks no HTTP .* is it the gateway's URL"):
        await deceived.get_context()
    assert len(liar.requests) == 1


@pytest.mark.parametrize(
    "location",
    [
        *("mailto:x", "http://xn--/", "/\x01", "http://[", "//", "http://a:99999/", "\u00fc"),
        *("http://\u00fc/", "x" * 70_000),
    ],
    ids=range(9),
)
async def test_redirect_is_not_looked_at_wherever_it_leads(
    liar: Liar, deceived: AsyncGatewayClient, location: str
) -> None:
    liar.answers(Says(status=302, headers={"Location": location}))
    with pytest.raises(AnswerInvalid, match="HTTP status 302"):
        await deceived.get_context()
    assert len(liar.requests) == 1


@pytest.mark.parametrize("cookie", ["a=b", "a=\u00fc", "a=b; Domain=127.0.0.1; Path=/", "=\x7f;"])
async def test_no_cookie_is_kept_and_the_next_call_is_as_the_first(
    liar: Liar, deceived: AsyncGatewayClient, cookie: str
) -> None:
    released = response({"status": "released"})
    liar.answers(spoiled(released, headers={"Set-Cookie": cookie}))
    for _ in range(3):
        assert (await deceived.release_certificate(RELAY)).status == "released"
    assert not any("cookie" in request.headers for request in liar.requests)


@pytest.mark.parametrize(
    "error", [httpx.InvalidURL("odd"), httpx.StreamClosed(), UnicodeError("odd")]
)
async def test_what_httpx_makes_of_an_odd_answer_is_an_answer_that_is_none(
    error: Exception,
) -> None:
    def odd(_: httpx.Request) -> httpx.Response:
        raise error

    async with AsyncGatewayClient(
        "http://127.0.0.1", TOKEN, transport=httpx.MockTransport(odd)
    ) as client:
        with pytest.raises(AnswerInvalid, match=f"cannot be read .{type(error).__name__}"):
            await client.get_context()


FAILED: list[tuple[Answer, type[CallError]]] = [
    (failure("internal", incidentId="4711"), Internal),
    (failure("method-unknown"), MethodUnknown),
    (failure("overloaded", retryAfterMs=3_600_000), Overloaded),
    (failure("request-invalid", violations=["spec.new is missing"]), RequestInvalid),
    (failure("of-a-newer-gateway", more=[1]), UnknownFailure),
    *(
        (spoiled(failure("envelope-invalid"), status=status), EnvelopeInvalid)
        for status in (400, 405, 408, 413, 415)
    ),
]


@pytest.mark.parametrize(("answer", "error"), FAILED)
async def test_error_of_the_contract_is_its_exception_with_its_own_words(
    liar: Liar, deceived: AsyncGatewayClient, answer: Answer, error: type[CallError]
) -> None:
    liar.answers(answer)
    with pytest.raises(error, match=r"^Told to fail\.$"):
        await deceived.get_context()
    assert len(liar.requests) == 1


@pytest.mark.parametrize(
    ("status", "said"), [(429, "takes no more calls right now"), (503, "does not reach it")]
)
async def test_wait_that_a_proxy_names_is_kept(
    liar: Liar, deceived: AsyncGatewayClient, status: int, said: str
) -> None:
    liar.answers(Says(b"later", status=status, headers={"Retry-After": "3600"}))
    with pytest.raises(Unreachable, match=f"HTTP status {status}: .* {said}") as raised:
        await deceived.release_certificate(RELAY)
    assert raised.value.retry_after_ms == 3_600_000
    assert len(liar.requests) == 1


async def test_wait_that_a_proxy_names_as_a_date_is_held_against_its_own_clock(
    liar: Liar, deceived: AsyncGatewayClient
) -> None:
    dates = {
        "Date": "Mon, 02 Nov 2026 10:00:00 GMT",
        "Retry-After": "Mon, 02 Nov 2026 11:00:00 GMT",
    }
    liar.answers(Says(status=503, headers=dates))
    with pytest.raises(Unreachable) as raised:
        await deceived.release_certificate(RELAY)
    assert raised.value.retry_after_ms == 3_600_000
    assert len(liar.requests) == 1


@pytest.mark.parametrize("wait", ["Mon, 02 Nov", "-1", "²", "9" * 5_000])
async def test_wait_that_cannot_be_read_is_none(
    liar: Liar, deceived: AsyncGatewayClient, wait: str
) -> None:
    said = Says(status=503, headers={"Retry-After": wait})
    liar.answers(said, response({"status": "released"}))
    assert (await deceived.release_certificate(RELAY)).status == "released"
