"""Floods of calls that nobody vouches for: who is shut out, and who gets through all the same."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.limits.conftest import SHY, Start
from tests.integration.service.calling import CONTEXT, NO_TLS, PROVISION, Caller, World
from tests.lab.gateway import GatewayConfig, GatewayProcess

PROXY = "127.0.9.1"
NOBODYS = f"gwc_{'0' * 36}_{'A' * 43}"


class From(Caller):
    """A caller at one of this machine's loopback addresses, perhaps behind a proxy."""

    def __init__(self, url: str, token: str | None, source: str, forwarded: str = "") -> None:
        super().__init__(url, token)
        self._source = source
        self._headers = {"X-Forwarded-For": forwarded} if forwarded else {}

    def post(self, body: object) -> httpx.Response:
        return self._posted(json.dumps(body).encode(), "application/json")

    def send(self, content: bytes, kind: str) -> dict[str, Any]:
        """The envelope of the answer to any bytes, said to be of some kind."""
        answer: dict[str, Any] = self._posted(content, kind).json()
        return answer

    def code(self) -> str:
        code: str = self.refused(CONTEXT)["code"]
        return code

    def _posted(self, content: bytes, kind: str) -> httpx.Response:
        transport = httpx.HTTPTransport(local_address=self._source, verify=NO_TLS)
        headers = {"Content-Type": kind, **self._headers}
        with httpx.Client(transport=transport, trust_env=False, timeout=30) as http:
            return http.post(self.url, content=content, headers=headers)


@pytest.fixture(scope="module")
def shy_world(config: GatewayConfig, shy: GatewayProcess) -> World:
    return World(shy.url, config.admin_token)


def test_address_is_shut_out_after_its_refusals_and_told_for_how_long(shy_world: World) -> None:
    stranger = From(shy_world.url, "nonsense", "127.0.1.1")
    assert stranger.code() == "unauthorized"
    shut_out = stranger.refused(CONTEXT)
    assert shut_out["code"] == "overloaded"
    assert 0 < shut_out["retryAfterMs"] <= 60_000
    assert From(shy_world.url, "nonsense", "127.0.1.2").code() == "unauthorized"


@pytest.mark.parametrize(
    ("source", "content", "kind", "code"),
    [
        ("127.0.2.1", b'{"method": "noSuchMethod"}', "application/json", "method-unknown"),
        ("127.0.2.2", b"{", "application/json", "envelope-invalid"),
        ("127.0.2.3", b"<call/>", "text/xml", "envelope-invalid"),
    ],
)
def test_what_is_no_call_counts_too_and_is_not_read_any_more(
    shy_world: World, source: str, content: bytes, kind: str, code: str
) -> None:
    stranger = From(shy_world.url, None, source)
    answers = [stranger.send(content, kind) for _ in range(2)]
    assert [each["error"]["data"]["code"] for each in answers] == [code, "overloaded"]
    assert (answers[1]["method"], answers[1]["correlation"]) == (None, None)


def test_log_has_no_line_for_each_call_that_was_shut_out(start: Start) -> None:
    alone = start(SHY)
    stranger = From(alone.url, "nonsense", "127.0.6.1")
    assert [stranger.code() for _ in range(3)] == ["unauthorized", "overloaded", "overloaded"]
    lines = alone.process.log_file.read_text().splitlines()
    refused = [line for line in lines if "call refused" in line and "=127.0.6.1 " in line]
    assert len(refused) == 1
    assert len([line for line in lines if "calls shut out" in line]) == 1


def shut_out_beside(world: World, token: str, source: str) -> From:
    """A caller with a token that is known, at an address that was shut out meanwhile."""
    good = From(world.url, token, source)
    assert good.call(CONTEXT)
    stranger = From(world.url, "nonsense", source)
    assert [stranger.code() for _ in range(2)] == ["unauthorized", "overloaded"]
    return good


def test_good_token_does_not_let_its_holder_guess_others(shy_world: World) -> None:
    good = shut_out_beside(shy_world, str(shy_world.client().token), "127.0.7.1")
    assert good.refused(CONTEXT, apiToken=NOBODYS, beside=good.token)["code"] == "overloaded"
    assert good.code() == "overloaded"  # that was the one refusal that it may let in
    assert From(shy_world.url, good.token, "127.0.7.2").call(CONTEXT)
    assert good.code() == "overloaded"


def test_good_token_does_not_let_its_holder_call_what_there_is_not(shy_world: World) -> None:
    good = shut_out_beside(shy_world, str(shy_world.client().token), "127.0.8.1")
    codes = [good.refused("noSuchMethod")["code"] for _ in range(2)]
    assert codes == ["method-unknown", "overloaded"]


def test_good_caller_behind_the_same_address_goes_on(shy_world: World) -> None:
    good = From(shy_world.url, shy_world.client().token, "127.0.3.1")
    unknown = From(shy_world.url, shy_world.client().token, "127.0.3.1")
    assert good.call(CONTEXT)
    stranger = From(shy_world.url, "nonsense", "127.0.3.1")
    assert [stranger.code() for _ in range(3)] == ["unauthorized", "overloaded", "overloaded"]
    assert good.call(CONTEXT)
    # Nobody can tell yet that this one is good, but from elsewhere it is seen to be.
    assert unknown.code() == "overloaded"
    assert From(shy_world.url, unknown.token, "127.0.3.2").call(CONTEXT)
    assert unknown.call(CONTEXT)


def test_revoked_token_is_refused_at_once_though_it_was_known(shy_world: World) -> None:
    client = shy_world.client()
    caller = From(shy_world.url, client.token, "127.0.4.1")
    client_id = caller.call(CONTEXT)["context"]["clientId"]
    stranger = From(shy_world.url, "nonsense", "127.0.4.1")
    assert [stranger.code() for _ in range(2)] == ["unauthorized", "overloaded"]
    shy_world.admin.call(PROVISION, action="revoke", spec={"clientId": client_id})
    assert [caller.code() for _ in range(2)] == ["unauthorized", "overloaded"]


def test_clients_of_a_trusted_proxy_are_told_apart_by_what_it_says(shy_world: World) -> None:
    behind = {
        address: From(shy_world.url, "nonsense", PROXY, f"198.51.100.1, {address}")
        for address in ("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")
    }
    assert [caller.code() for caller in behind.values()] == [
        *("unauthorized", "unauthorized"),
        *("unauthorized", "overloaded"),  # one network of 64 bits
    ]
    assert behind["192.0.2.1"].code() == "overloaded"


def test_nobody_else_can_say_that_he_is_another(shy_world: World) -> None:
    said = [
        From(shy_world.url, "nonsense", "127.0.5.1", f"192.0.2.{number}") for number in (70, 71)
    ]
    assert [caller.code() for caller in said] == ["unauthorized", "overloaded"]
    assert From(shy_world.url, "nonsense", PROXY, "192.0.2.71").code() == "unauthorized"
