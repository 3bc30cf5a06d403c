"""Alternate chains of the real Pebble, and of a CA that offers what cannot be had."""

import ssl
import urllib.request
from collections.abc import Iterator

import pytest
import structlog.testing
from cryptography import x509
from cryptography.x509.oid import NameOID

from gateway.certificates.accounts import StoredAccount
from gateway.certificates.authority import Authority
from gateway.certificates.keys import KeyType, new_private_key
from tests.integration.certificates.conftest import MakeAuthority
from tests.integration.certificates.issuing import MemoryAccountStore, issue, settings_for
from tests.integration.certificates.scripted import (
    NEW_NONCE,
    ScriptedCa,
    answer,
    directory,
    scripted_ca,
    scripted_settings,
)
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.unit.certificates.issuing import Issuer, new_root, pem

ALTERNATE_ROOTS = 2


@pytest.fixture(scope="module")
def rooted_pebble(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair
) -> Iterator[PebbleProcess]:
    """A Pebble with several roots, each with a chain to it."""
    environ = {"PEBBLE_ALTERNATE_ROOTS": str(ALTERNATE_ROOTS)}
    server = start_pebble(tmp_path_factory.mktemp("rooted-pebble"), bind.primary, environ)
    yield server
    server.stop()


def root(pebble: PebbleProcess, number: int) -> x509.Certificate:
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=pebble.ca_file)),
    )
    with opener.open(f"{pebble.management_url}/roots/{number}", timeout=5) as reply:
        return x509.load_pem_x509_certificate(reply.read())


def common_name(certificate: x509.Certificate) -> str:
    (attribute,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(attribute.value)


async def top_of_chain(
    pebble: PebbleProcess, make: MakeAuthority, bind: BindPair, hostname: str, wanted: str | None
) -> x509.Certificate:
    authority = make(settings_for(pebble, preferred_chain=wanted))
    await authority.ensure_account()
    checked = await issue(authority, bind, hostname)
    return x509.load_pem_x509_certificates(checked.chain_pem.encode())[-1]


@pytest.mark.parametrize("number", range(ALTERNATE_ROOTS + 1))
async def test_chain_is_the_one_to_the_preferred_root(
    rooted_pebble: PebbleProcess,
    make_authority: MakeAuthority,
    bind: BindPair,
    hostname: str,
    number: int,
) -> None:
    preferred = root(rooted_pebble, number)
    with structlog.testing.capture_logs() as lines:
        top = await top_of_chain(
            rooted_pebble, make_authority, bind, hostname, common_name(preferred)
        )
    top.verify_directly_issued_by(preferred)
    # The default chain is read in any case, others only as far as needed.
    fetched = [line for line in lines if line.get("method") == "fetchCertificate"]
    assert 1 <= len(fetched) <= ALTERNATE_ROOTS + 1
    assert (number == 0) == (len(fetched) == 1)
    assert not [line for line in lines if line["log_level"] == "warning"]


async def test_chain_is_the_default_one_without_a_preference(
    rooted_pebble: PebbleProcess, make_authority: MakeAuthority, bind: BindPair, hostname: str
) -> None:
    top = await top_of_chain(rooted_pebble, make_authority, bind, hostname, None)
    top.verify_directly_issued_by(root(rooted_pebble, 0))


async def test_chain_is_the_default_one_when_the_ca_has_none_of_the_preferred_root(
    rooted_pebble: PebbleProcess, make_authority: MakeAuthority, bind: BindPair, hostname: str
) -> None:
    with structlog.testing.capture_logs() as lines:
        top = await top_of_chain(rooted_pebble, make_authority, bind, hostname, "nobody")
    top.verify_directly_issued_by(root(rooted_pebble, 0))
    assert [line["preferred_chain"] for line in lines if line["log_level"] == "warning"] == [
        "nobody"
    ]


def chain_of(issuer: Issuer) -> bytes:
    return pem(issuer.issue(new_private_key(KeyType.ECDSA_P256), None)).encode()


DEFAULT, OTHER = chain_of(new_root("default")), chain_of(new_root("other"))


def new_authority(ca: ScriptedCa, preferred_chain: str) -> Authority:
    account = StoredAccount(new_private_key(KeyType.ECDSA_P256), f"{ca.url}/account/1")
    settings = scripted_settings(ca, preferred_chain=preferred_chain)
    return Authority(settings, MemoryAccountStore(account))


def with_links(*links: str) -> bytes:
    """The default chain with each link in a header line of its own, as CAs send them."""
    lines = "".join(f'\r\nLink: <{link}>;rel="alternate"' for link in links).encode()
    first, _, rest = answer(200, DEFAULT, nonce="AAAA").partition(b"\r\n")
    return first + lines + b"\r\n" + rest


# Scripted: Pebble's alternates can all be had.
@pytest.mark.parametrize("refusal", [answer(500), answer(404, nonce="AAAA"), answer(200, b"none")])
async def test_chain_is_the_default_one_when_an_alternate_cannot_be_had(refusal: bytes) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, with_links("/alternate/1", "/alternate/2"), refusal]
        authority = new_authority(ca, "other")
        assert await authority.fetch_certificate(f"{ca.url}/cert/1") == DEFAULT.decode()
        await authority.close()
    assert ca.seen[-1].path == "/alternate/1"


async def test_chains_are_read_until_the_preferred_one_and_only_a_few() -> None:
    with scripted_ca([]) as ca:
        links = [f"/alternate/{number}" for number in range(50)]
        ca.steps += [directory(ca), NEW_NONCE, with_links(*links)]
        ca.steps += [answer(200, DEFAULT, nonce="AAAA"), answer(200, OTHER, nonce="AAAA")]
        authority = new_authority(ca, "other")
        assert await authority.fetch_certificate(f"{ca.url}/cert/1") == OTHER.decode()
        ca.steps += [with_links(*links), *[answer(200, OTHER, nonce="AAAA")] * 5]
        ca.seen.clear()
        await authority.close()
        authority = new_authority(ca, "nobody")
        ca.steps[:0] = [directory(ca), NEW_NONCE]
        assert await authority.fetch_certificate(f"{ca.url}/cert/1") == DEFAULT.decode()
        await authority.close()
    paths = [one.path for one in ca.seen if one.method == "POST"]
    assert paths == ["/cert/1", *links[:5]]
