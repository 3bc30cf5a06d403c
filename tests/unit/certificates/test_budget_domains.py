"""Registered domains, by the list that the installed library brings."""

from __future__ import annotations

import pytest

from gateway.certificates.domains import registered_domain


@pytest.mark.parametrize(
    ("hostname", "domain"),
    [
        ("example.com", "example.com"),
        ("relay.cluster-a.example.com", "example.com"),
        ("relay.a.b.co.uk", "b.co.uk"),
        ("x.xn--55qx5d.cn", "x.xn--55qx5d.cn"),
        ("a.www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.b.c.kawasaki.jp", "b.c.kawasaki.jp"),
    ],
)
def test_registered_domain_is_one_label_below_the_public_suffix(hostname: str, domain: str) -> None:
    assert registered_domain(hostname) == domain


def test_private_section_of_the_list_counts() -> None:
    assert registered_domain("a.someone.github.io") == "someone.github.io"


@pytest.mark.parametrize("hostname", ["com", "co.uk", "github.io", "c.kawasaki.jp"])
def test_public_suffix_itself_is_its_own(hostname: str) -> None:
    assert registered_domain(hostname) == hostname


def test_unknown_top_level_domain_counts_as_a_public_suffix() -> None:
    assert registered_domain("relay.a.b.example") == "b.example"
    assert registered_domain("example") == "example"
