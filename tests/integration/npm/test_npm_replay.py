"""No body is ever answered to another call by the ecosystem's own client.

That client keeps the last body per URL and answers it to whatever call fails to connect later, be
it another caller's: `Cache-Control: no-store` is all that prevents it. One client process makes all
calls of a test, so that it could.

That it would, cannot be shown with a gateway, which always sends the header. A relay that leaves
out this one header shows it first, so the tests after it can fail.
"""

from pathlib import Path

import pytest

from tests.integration.npm.calls import (
    CONTEXT,
    GET_CERTIFICATE,
    METHODS,
    Caller,
    OwnGateway,
    answer_of,
    certificate_of,
)
from tests.lab.http_relay import Fault, HttpRelay
from tests.lab.npm_client import NpmClient, Outcome
from tests.lab.process import wait_until


def client_id_of(client: NpmClient, url: str, caller: Caller) -> str:
    """Whom the gateway takes the caller for."""
    context = answer_of(client.call(url, CONTEXT, caller.asks()))["context"]
    return str(context["clientId"])


def has_unread_bytes(port: int) -> bool:
    """Whether something was sent to a server on loopback that it has not read."""
    # Fields of a line: sl, local_address, rem_address, st, tx_queue:rx_queue, …; numbers in hex.
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(
        fields[1].endswith(f":{port:04X}") and fields[3] == "01" and int(fields[4][9:], 16) > 0
        for fields in lines
    )


@pytest.mark.parametrize("fault", Fault)
def test_client_hands_a_private_key_to_another_caller_without_no_store(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller], fault: Fault
) -> None:
    first, second = callers
    with HttpRelay(alive.port, keeps_cache_control=False) as relay:
        certificate = certificate_of(client, relay.url, first)
        relay.break_with(fault)
        outcome = client.call(relay.url, GET_CERTIFICATE, second.asks_own())
    assert answer_of(outcome)["certificate"] == certificate


@pytest.mark.parametrize("fault", Fault)
def test_call_fails_when_its_connection_breaks(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller], fault: Fault
) -> None:
    first, second = callers
    with HttpRelay(alive.port, keeps_cache_control=True) as relay:
        certificate_of(client, relay.url, first)
        relay.break_with(fault)
        outcome = client.call(relay.url, GET_CERTIFICATE, second.asks_own())
    assert outcome == Outcome(thrown=outcome.thrown)
    assert outcome.thrown


def test_every_method_fails_after_the_gateway_was_killed(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    first, second = callers
    certificate_of(client, alive.url, first)
    alive.gateway.kill()
    outcomes = [client.call(alive.url, method, second.asks_own()) for method in METHODS]
    assert outcomes == [Outcome(thrown="TypeError: fetch failed")] * len(METHODS)


def test_call_fails_when_the_gateway_is_killed_in_the_middle_of_it(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    first, second = callers
    certificate_of(client, alive.url, first)
    alive.gateway.process.pause()
    client.begin(alive.url, GET_CERTIFICATE, second.asks_own())
    wait_until(lambda: has_unread_bytes(alive.port), "the call has come to the gateway")
    alive.gateway.kill()
    assert client.outcome() == Outcome(thrown="TypeError: fetch failed")


def test_error_is_not_answered_again_after_a_kill(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    refused = client.call(alive.url, CONTEXT, {"apiToken": "gwc_nobody_nothing"})
    assert refused.error_data == {"code": "unauthorized"}
    alive.gateway.kill()
    outcome = client.call(alive.url, CONTEXT, callers[0].asks())
    assert outcome == Outcome(thrown="TypeError: fetch failed")


def test_each_caller_gets_its_own_answers_after_a_restart(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    certificates = [certificate_of(client, alive.url, caller) for caller in callers]
    alive.gateway.kill()
    assert client.call(alive.url, CONTEXT, callers[1].asks()).thrown
    alive.gateway.start()
    assert [certificate_of(client, alive.url, caller) for caller in callers] == certificates
    ids = [client_id_of(client, alive.url, caller) for caller in callers]
    assert ids == [caller.client_id for caller in callers]


def test_answer_is_the_callers_own_when_the_client_is_told_to_use_its_cache(
    client: NpmClient, alive: OwnGateway, callers: tuple[Caller, Caller]
) -> None:
    ids = []
    for caller in callers:
        outcome = client.call(alive.url, CONTEXT, caller.asks(), use_cache=True)
        ids.append(answer_of(outcome)["context"]["clientId"])
    assert ids == [caller.client_id for caller in callers]
