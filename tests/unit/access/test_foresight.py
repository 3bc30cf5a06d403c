"""Whose call is foreseen, and which clients may ask."""

import dataclasses

from gateway.access.clients import Client, Credential
from gateway.access.foresight import ANY_APP, choose_asker, covering
from gateway.contract.names import AppId, ClientId, CredentialId, Hostname
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.store.documents import Holder

HOSTNAME = Hostname("relay.example.test")
HOLDER = Holder(ClientId("b"), AppId("app:one"))


def client(client_id: str, *patterns: str) -> Client:
    return Client(ClientId(client_id), "test", patterns, (), frozenset(), 1)


CLIENTS = [
    client("a", "*.elsewhere.test"),
    client("b", "*.example.test", "relay.example.test"),
    client("c", "**.example.test"),
]


def test_clients_that_may_ask_come_with_the_patterns_that_match() -> None:
    found = covering(CLIENTS, HOSTNAME)
    assert [(each.client.client_id, each.patterns) for each in found] == [
        ("b", ("*.example.test", "relay.example.test")),
        ("c", ("**.example.test",)),
    ]


def test_named_client_asks_whoever_holds_the_hostname() -> None:
    asker = choose_asker(HOSTNAME, HOLDER, CLIENTS, ClientId("c"), AppId("x"))
    assert (asker.client_id, asker.app_id, asker.client) == ("c", "x", CLIENTS[2])


def test_named_client_without_an_app_id_asks_as_the_holder_it_is() -> None:
    assert choose_asker(HOSTNAME, HOLDER, CLIENTS, ClientId("b")).app_id == HOLDER.app_id
    assert choose_asker(HOSTNAME, HOLDER, CLIENTS, ClientId("c")).app_id == ANY_APP


def test_holder_asks_when_nobody_is_named() -> None:
    asker = choose_asker(HOSTNAME, HOLDER, CLIENTS)
    assert (asker.client_id, asker.app_id, asker.is_real) == ("b", "app:one", True)


def test_client_that_may_asks_where_the_gateway_itself_holds_the_hostname() -> None:
    asker = choose_asker(HOSTNAME, THE_GATEWAY, CLIENTS)
    assert (asker.client_id, asker.client) == ("b", CLIENTS[1])


def test_first_client_that_may_asks_for_a_free_hostname() -> None:
    asker = choose_asker(HOSTNAME, None, CLIENTS)
    assert (asker.client_id, asker.app_id, asker.client) == ("b", ANY_APP, CLIENTS[1])


def test_client_without_a_token_asks_only_where_no_other_may() -> None:
    called = dataclasses.replace(
        CLIENTS[2], credentials=(Credential(CredentialId("1"), "digest", 0),)
    )
    asker = choose_asker(HOSTNAME, None, [*CLIENTS[:2], called])
    assert (asker.client_id, asker.why) == ("c", "the first with a token whose patterns match")
    assert choose_asker(HOSTNAME, None, CLIENTS).client_id == "b"


def test_client_is_made_up_where_none_may_ask() -> None:
    asker = choose_asker(HOSTNAME, None, CLIENTS[:1])
    assert not asker.is_real
    assert asker.client is not None
    assert covering([asker.client], HOSTNAME)


def test_named_client_that_is_not_there_is_not_made_up() -> None:
    asker = choose_asker(HOSTNAME, HOLDER, CLIENTS, ClientId("z"))
    assert (asker.client, asker.is_real) == (None, True)
