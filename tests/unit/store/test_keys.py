"""Redis keys: one hash tag for all of a hostname, another for all of a client."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from gateway.store import keys

HOSTNAMES = st.from_regex(r"[a-z0-9]{1,20}\.[a-z]{2,6}", fullmatch=True)


def tag_of(key: str) -> str:
    found = re.search(r"\{([^}]+)\}", key)
    assert found is not None
    return found[1]


@given(HOSTNAMES)
def test_document_and_lists_of_a_hostnames_bucket_share_one_hash_tag(hostname: str) -> None:
    bucket = keys.bucket_of(hostname)
    assert 0 <= bucket < keys.BUCKETS
    assert tag_of(keys.host_key(hostname)) == tag_of(keys.due_key(bucket))
    assert tag_of(keys.host_key(hostname)) == tag_of(keys.names_key(bucket))


def test_bucket_of_a_hostname_never_changes() -> None:
    assert [keys.bucket_of(name) for name in ("a.example", "relay.b.example")] == [76, 110]


def test_document_and_holdings_of_a_client_share_one_hash_tag() -> None:
    mark = keys.fingerprint("cluster-a")
    assert tag_of(keys.client_key(mark)) == tag_of(keys.client_holdings_key(mark))
    assert tag_of(keys.client_key(mark)) == tag_of(keys.client_uses_key(mark))


def test_trail_and_what_is_kept_beside_it_share_one_hash_tag() -> None:
    streams = [keys.NOTABLE_KEY, keys.CONFLICTS_KEY]
    beside = [*streams, keys.audit_day_key("2027-01-15"), keys.audit_writer_key("w")]
    assert {tag_of(key) for key in beside} == {tag_of(keys.AUDIT_KEY)}
