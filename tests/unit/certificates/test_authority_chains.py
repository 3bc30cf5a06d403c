"""Which of several chains is wanted, whatever a CA writes into its headers."""

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.authority.chains import MAX_ALTERNATES, alternate_urls, leads_to
from gateway.certificates.authority.replies import Reply
from gateway.certificates.keys import KeyType, new_private_key
from tests.unit.certificates.issuing import new_root, pem
from tests.unit.certificates.properties import untimed

URL = "https://ca.example.test/cert/1"
ROOT = new_root("top of the chain")
INTERMEDIATE = ROOT.below("in between")
LEAF = INTERMEDIATE.issue(new_private_key(KeyType.ECDSA_P256), None)


def alternates(link: str | None) -> list[str]:
    return alternate_urls(Reply(200, {} if link is None else {"link": link}, b""), URL)


@pytest.mark.parametrize(
    ("link", "found"),
    [
        (None, []),
        ("", []),
        (f'<{URL}/1>;rel="alternate"', [f"{URL}/1"]),
        (f"<{URL}/1>; rel=alternate", [f"{URL}/1"]),
        (f'<{URL}/1> ; title="a, b; rel=up" ; REL = "up Alternate"', [f"{URL}/1"]),
        (f'<{URL}/1>;rel="alternate", <{URL}/2>;rel="alternate"', [f"{URL}/1", f"{URL}/2"]),
        (f'<{URL}/dir>;rel="index",<{URL}/1>;rel=alternate', [f"{URL}/1"]),
        (f'<{URL}/1>;rel="up"', []),
        (f"<{URL}/1>", []),
        (f'<{URL}>;rel="alternate"', []),
        (f'<{URL}/1>;rel="alternate",<{URL}/1>;rel="alternate"', [f"{URL}/1"]),
        ('<1/alternate>;rel="alternate"', ["https://ca.example.test/cert/1/alternate"]),
        ('</x>;rel="alternate"', ["https://ca.example.test/x"]),
        ('<ftp://ca.example.test/1>;rel="alternate"', []),
        ('<https://[::>;rel="alternate"', []),
        ('<https://ca.example.test/a b>;rel="alternate"', []),
        (f'{URL}/1;rel="alternate"', []),
        (f'<{URL}/1;rel="alternate', []),
    ],
)
def test_alternates_are_those_of_the_link_header(link: str | None, found: list[str]) -> None:
    assert alternates(link) == found


def test_alternates_are_few() -> None:
    link = ",".join(f'<{URL}/{number}>;rel="alternate"' for number in range(100))
    assert alternates(link) == [f"{URL}/{number}" for number in range(MAX_ALTERNATES)]


@untimed
@given(st.text(st.sampled_from('<>;,"\\ \t/:alternate=rel[]'), max_size=200))
def test_alternates_never_raise(link: str) -> None:
    assert len(alternates(link)) <= MAX_ALTERNATES


@pytest.mark.parametrize(
    ("chain_pem", "common_name", "is_wanted"),
    [
        (pem(LEAF, INTERMEDIATE.certificate), "top of the chain", True),
        (pem(LEAF, INTERMEDIATE.certificate, ROOT.certificate), "top of the chain", True),
        (pem(LEAF, INTERMEDIATE.certificate), "in between", False),
        (pem(LEAF), "in between", True),
        (pem(LEAF, INTERMEDIATE.certificate), "Top Of The Chain", False),
        (pem(LEAF, INTERMEDIATE.certificate), "top", False),
        ("no chain", "top of the chain", False),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x", False),
    ],
)
def test_chain_leads_to_the_issuer_of_its_topmost_certificate(
    chain_pem: str, common_name: str, is_wanted: bool
) -> None:
    assert leads_to(chain_pem, common_name) is is_wanted
