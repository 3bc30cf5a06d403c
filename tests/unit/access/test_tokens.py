"""Tokens: form, digest, and that nothing shows them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, strategies as st

from gateway.access.tokens import (
    digest_of,
    new_client_token,
    parse_admin_token,
    parse_client_token,
)


def test_new_token_parses_to_its_credential_and_digest() -> None:
    made = new_client_token("cluster-a")
    read = parse_client_token(made.token)
    assert read is not None
    assert (read.credential_id, read.digest) == (made.credential_id, made.digest)
    assert made.credential_id.startswith(read.client_fingerprint)


def test_tokens_of_one_client_differ_but_name_it_alike() -> None:
    one, other = new_client_token("cluster-a"), new_client_token("cluster-a")
    assert one.token != other.token
    assert one.credential_id != other.credential_id
    assert one.credential_id[:24] == other.credential_id[:24]


def test_new_token_holds_256_random_bits() -> None:
    secret = new_client_token("cluster-a").token.split("_", 2)[2]
    assert len(base64.urlsafe_b64decode(secret + "=")) == 32


def test_representation_shows_no_token() -> None:
    made = new_client_token("cluster-a")
    assert made.token not in repr(made)


@pytest.mark.parametrize("token", [None, 5, "", "gwc_", "gwc_" + "0" * 36 + "_short", ["gwc_"]])
def test_malformed_token_is_none(token: object) -> None:
    assert parse_client_token(token) is None
    assert parse_admin_token(token) is None


@given(st.text())
def test_any_text_parses_or_is_none(text: str) -> None:
    assert parse_client_token(text) is None


def test_admin_token_parses_to_its_digest() -> None:
    token = "gwa_" + "A" * 43
    assert parse_admin_token(token) == digest_of(token)
    assert parse_admin_token(token + "=") is None
