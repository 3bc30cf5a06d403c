"""Whom a CA's refusal concerns, by the words that CAs use."""

from __future__ import annotations

import pytest

from gateway.certificates.ca_limits import Reach, Scope, ancestry, scope_of

HOSTNAME = "relay.a.example.com"
SEE = ": see https://letsencrypt.org/docs/rate-limits/#new-orders"
WITHIN = "in the last 168h0m0s, retry after 2026-12-01 10:00:00 UTC"

ACCOUNT = Scope(Reach.ACCOUNT)
ONLY_THIS = Scope(Reach.HOSTNAME, HOSTNAME)
UNDER_DOMAIN = Scope(Reach.UNDER, "example.com")


@pytest.mark.parametrize(
    ("words", "scope"),
    [
        (f'too many certificates (50) already issued for "example.com" {WITHIN}', UNDER_DOMAIN),
        ("too many certificates already issued for: example.com" + SEE, UNDER_DOMAIN),
        (
            f"too many certificates (5) already issued for this exact set of identifiers {WITHIN}",
            ONLY_THIS,
        ),
        (
            f"too many certificates (5) already issued for this exact set of domains {WITHIN}"
            f": {HOSTNAME}" + SEE,
            ONLY_THIS,
        ),
        (f'too many failed authorizations (5) for "{HOSTNAME}" in the last 1h0m0s', ONLY_THIS),
        (f"Validation of _acme-challenge.{HOSTNAME} failed too often", ONLY_THIS),
        (
            "Your account is temporarily prevented from requesting certificates for"
            f" {HOSTNAME} and possibly others. Please visit: https://portal.example/unpause",
            ONLY_THIS,
        ),
        ("too many new orders (300) from this account in the last 3h0m0s" + SEE, ACCOUNT),
        ("too many new registrations (10) from this IP address in the last 3h0m0s", ACCOUNT),
        ("too many currently pending authorizations", ACCOUNT),
        ("too many failed authorizations recently" + SEE, ACCOUNT),
        (f"Your account has ordered {HOSTNAME} and more too often", ACCOUNT),
        (f"too many new orders recently, the last one for {HOSTNAME}", ACCOUNT),
        (f"quota of account 1234 exceeded: {HOSTNAME}", ACCOUNT),
        (f"{HOSTNAME}: too many currently pending authorizations", ACCOUNT),
        ("slow down", ACCOUNT),
        ("Service busy; retry later.", ACCOUNT),
        ("", ACCOUNT),
    ],
)
def test_scope_is_what_the_words_name(words: str, scope: Scope) -> None:
    assert scope_of(words, HOSTNAME) == scope


def test_widest_of_several_names_counts() -> None:
    words = f'certificates for "{HOSTNAME}", limited by "a.example.com", in zone "example.com"'
    assert scope_of(words, HOSTNAME) == UNDER_DOMAIN


@pytest.mark.parametrize(
    "words",
    [
        'too many failed authorizations (5) for "other.example.com"',
        'too many certificates (50) already issued for "example.org"',
        'too many certificates (50) already issued for "my-example.com"',
        'too many certificates (50) already issued for "le.com"',
        f"see https://{HOSTNAME}/limits",
    ],
)
def test_names_of_others_and_addresses_say_nothing(words: str) -> None:
    assert scope_of(words, HOSTNAME) == ACCOUNT


def test_label_of_a_hostname_says_nothing_of_the_account() -> None:
    hostname = "account.service.example.com"
    words = f'too many failed authorizations (5) for "{hostname}" in the last 1h0m0s'
    assert scope_of(words, hostname) == Scope(Reach.HOSTNAME, hostname)


def test_certificates_of_a_registered_domain_concern_all_below_it() -> None:
    words = 'too many certificates (50) already issued for "example.com" in the last 168h0m0s'
    assert scope_of(words, "example.com") == UNDER_DOMAIN


def test_failures_of_a_registered_domain_concern_it_alone() -> None:
    words = 'too many failed authorizations (5) for "example.com" in the last 1h0m0s'
    assert scope_of(words, "example.com") == Scope(Reach.HOSTNAME, "example.com")


def test_suffix_that_the_ca_takes_for_a_registered_domain_is_believed() -> None:
    words = 'too many certificates already issued for "co.uk"'
    assert scope_of(words, "relay.b.co.uk") == Scope(Reach.UNDER, "co.uk")


def test_ancestry_leads_up_to_the_top() -> None:
    assert ancestry("a.b.com") == ["a.b.com", "b.com", "com"]
