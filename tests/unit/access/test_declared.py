"""A file of clients and claims: read exactly, or every fault of it told with its place."""

import pytest
from hypothesis import given, strategies as st

from gateway.access.declared import read_declared
from gateway.contract.names import Hostname

GOOD = """
[[clients]]
id = "a"
type = "cloudly"
patterns = ["relay.*.example.com"]
allow = ["198.51.100.0/24"]
capabilities = ["syncDnsRecords"]

[[clients]]
id = "b"
type = "t"
patterns = []
capabilities = []

[[claims]]
hostname = "www.example.com"
note = "theirs"

[[claims]]
hostname = "ftp.example.com"
"""


def test_file_declares_what_it_says() -> None:
    declared, faults = read_declared(GOOD)
    assert faults == []
    assert declared.clients is not None
    assert declared.claims is not None
    first, second = declared.clients
    assert (first.client_id, first.client_type) == ("a", "cloudly")
    assert first.hostname_patterns == ("relay.*.example.com",)
    assert first.allowed_dns_record_addresses == ("198.51.100.0/24",)
    assert first.capabilities == {"syncDnsRecords"}
    assert second.allowed_dns_record_addresses == ()
    assert [(claim.hostname, claim.note) for claim in declared.claims] == [
        (Hostname("www.example.com"), "theirs"),
        (Hostname("ftp.example.com"), ""),
    ]


def test_table_that_is_left_out_is_not_an_empty_one() -> None:
    declared, faults = read_declared("clients = []\n")
    assert faults == []
    assert (declared.clients, declared.claims) == ((), None)


def test_every_fault_is_told_at_once_with_its_place() -> None:
    _, faults = read_declared(
        """
        client = 1
        [[clients]]
        id = "a"
        type = "ü"
        patterns = ["ok.example.com", "*"]
        allow = ["198.51.100.1/24"]
        capabilities = ["fly"]
        [[clients]]
        id = "a"
        xyz = "t"
        pattern = []
        patterns = []
        capabilities = []
        [[clients]]
        id = "b"
        type = "t"
        patterns = []
        capabilities = []
        [[clients]]
        id = "b"
        type = "t"
        patterns = []
        capabilities = []
        [[claims]]
        hostname = "WWW.example.com"
        [[claims]]
        hostname = "www.example.com"
        note = 7
        [[claims]]
        note = "n"
        [[claims]]
        hostname = "x.example.com"
        [[claims]]
        hostname = "x.example.com"
        """
    )
    starts = [
        '"client" is not known here; did you mean clients?',
        'clients[0] ("a"): type must be',
        'clients[0] ("a"): patterns[1] must',
        'clients[0] ("a"): allow[0] must',
        'clients[0] ("a"): capabilities[0] must',
        'clients[1] ("a"): "xyz" is not known here; known are id, type, patterns, allow,',
        'clients[1] ("a"): "pattern" is not known here; did you mean patterns?',
        'clients[1] ("a"): type is missing',
        'clients[3] ("b"): id is that of clients[2] already',
        'claims[0]: hostname must be spelled "www.example.com"',
        "claims[1]: note must be text, not the number 7",
        "claims[2]: hostname is missing",
        "claims[4]: hostname is that of claims[3] already",
    ]
    assert len(faults) == len(starts), faults
    for fault, start in zip(faults, starts, strict=True):
        assert fault.startswith(start)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clients = 7", "clients must be a list of tables ([[clients]]), not the number 7"),
        ("claims = [1]", "claims[0] must be a table, not the number 1"),
        ("[[clients]\n", "is not TOML: "),
        ("clients = [{id = 1979-05-27}]", "clients[0]: id must be text"),
    ],
)
def test_wrong_shape_is_named(text: str, told: str) -> None:
    assert any(fault.startswith(told) for fault in read_declared(text)[1])


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    declared, faults = read_declared(text)
    assert faults or (not declared.clients and not declared.claims)
