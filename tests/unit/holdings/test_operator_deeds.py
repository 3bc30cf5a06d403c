"""Whose hostname an operator's deed may touch."""

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.owner import Owner
from gateway.holdings.operator_deeds import why_not
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.store.documents import Document, Holder

NAME = Hostname("a.example.test")
OWNER = Owner(ClientId("relay"), AppId("app"), NAME)


def held_by(holder: Holder | None) -> Document:
    return Document(NAME, version="1", holder=holder)


def test_ownership_that_holds_it_or_that_nobody_stands_against_may_be_given_up() -> None:
    assert why_not(held_by(Holder(OWNER.client_id, OWNER.app_id)), OWNER) is None
    assert why_not(held_by(None), OWNER) is None


def test_another_holder_is_named() -> None:
    assert why_not(held_by(Holder(OWNER.client_id, AppId("other"))), OWNER) == (
        "a.example.test is held by relay for other, not by relay for app."
    )


def test_gateways_own_names_the_command_that_gives_it_up() -> None:
    told = (
        "a.example.test is the gateway's own: `gateway holdings give-up a.example.test` gives it"
        " up once it is http.tls_hostname no more."
    )
    itself = Owner(THE_GATEWAY.client_id, THE_GATEWAY.app_id, NAME)
    assert why_not(held_by(THE_GATEWAY), OWNER) == told
    assert why_not(held_by(THE_GATEWAY), itself) == told
