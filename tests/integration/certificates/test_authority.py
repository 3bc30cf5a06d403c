"""The authority against the real Pebble, validating through the real BIND."""

import asyncio
import logging
from pathlib import Path

import pytest
import structlog.testing
from cryptography import x509

from gateway.certificates.authority import Authority
from gateway.certificates.keys import KeyType, csr_for, new_private_key
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.integration.certificates.conftest import MakeAuthority
from tests.integration.certificates.issuing import (
    ZONE,
    MemoryAccountStore,
    issue,
    settings_for,
    until,
    validated_order,
)
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.ports import LOOPBACK, free_port


async def test_certificate_is_issued_twenty_times_in_a_row(
    authority: Authority, bind: BindPair, fresh_label: str
) -> None:
    serials = {
        (await issue(authority, bind, f"n{number}.{fresh_label}.{ZONE}")).serial_hex
        for number in range(20)
    }
    assert len(serials) == 20


async def test_certificates_are_issued_at_once_by_more_callers_than_threads(
    authority: Authority, bind: BindPair, fresh_label: str
) -> None:
    names = [f"n{number}.{fresh_label}.{ZONE}" for number in range(12)]
    issued = await asyncio.gather(*(issue(authority, bind, name) for name in names))
    assert len({one.serial_hex for one in issued}) == 12


@pytest.mark.parametrize("key_type", [KeyType.ECDSA_P384, KeyType.RSA_2048])
async def test_certificate_is_issued_for_a_key_of_another_type(
    authority: Authority, bind: BindPair, hostname: str, key_type: KeyType
) -> None:
    await issue(authority, bind, hostname, key_type)


async def test_certificate_is_issued_for_a_hostname_that_is_too_long_for_a_common_name(
    authority: Authority, bind: BindPair, fresh_label: str
) -> None:
    await issue(authority, bind, f"{'a' * 63}.{'b' * 63}.{fresh_label}.{ZONE}")


async def test_certificate_is_issued_when_half_of_the_nonces_are_rejected(
    tmp_path: Path, bind: BindPair, make_authority: MakeAuthority, fresh_label: str
) -> None:
    pebble = start_pebble(tmp_path, bind.primary, {"PEBBLE_WFE_NONCEREJECT": "50"})
    try:
        authority = make_authority(settings_for(pebble))
        await authority.ensure_account()
        for number in range(3):
            await issue(authority, bind, f"n{number}.{fresh_label}.{ZONE}")
    finally:
        pebble.stop()


async def test_call_fails_as_the_fault_of_the_server_when_every_nonce_is_rejected(
    tmp_path: Path, bind: BindPair, make_authority: MakeAuthority
) -> None:
    pebble = start_pebble(tmp_path, bind.primary, {"PEBBLE_WFE_NONCEREJECT": "100"})
    try:
        store = MemoryAccountStore()
        with pytest.raises(AuthorityFault) as caught:
            await make_authority(settings_for(pebble), store).ensure_account()
        assert caught.value.kind is FaultKind.SERVER_ERROR
        assert store.account is not None
        assert store.account.url is None
    finally:
        pebble.stop()


async def test_order_that_never_was_is_gone(authority: Authority, hostname: str) -> None:
    order = await authority.new_order(hostname)
    for url in (f"{order.url}x", f"{order.finalize_url}x"):
        with pytest.raises(AuthorityFault) as caught:
            await authority.read_order(url)
        assert caught.value.kind is FaultKind.GONE


async def test_order_of_another_account_is_gone(
    authority: Authority, pebble: PebbleProcess, make_authority: MakeAuthority, hostname: str
) -> None:
    order = await authority.new_order(hostname)
    stranger = make_authority(settings_for(pebble))
    await stranger.ensure_account()
    with pytest.raises(AuthorityFault) as caught:
        await stranger.read_order(order.url)
    assert caught.value.kind is FaultKind.GONE


async def test_order_is_not_ready_before_its_validation(
    authority: Authority, hostname: str
) -> None:
    order = await authority.new_order(hostname)
    csr = csr_for(new_private_key(KeyType.ECDSA_P256), hostname)
    with pytest.raises(AuthorityFault) as caught:
        await authority.finalize(order.finalize_url, csr)
    assert caught.value.kind is FaultKind.NOT_READY


async def test_order_is_not_ready_when_it_was_finalized_already(
    authority: Authority, bind: BindPair, hostname: str
) -> None:
    csr = csr_for(new_private_key(KeyType.ECDSA_P256), hostname)
    order = await validated_order(authority, bind, hostname)
    await authority.finalize(order.finalize_url, csr)
    with pytest.raises(AuthorityFault) as caught:
        await authority.finalize(order.finalize_url, csr)
    assert caught.value.kind is FaultKind.NOT_READY


async def test_request_for_another_name_than_the_order_is_not_accepted(
    authority: Authority, bind: BindPair, hostname: str
) -> None:
    order = await validated_order(authority, bind, hostname)
    csr = csr_for(new_private_key(KeyType.ECDSA_P256), f"other.{hostname}")
    with pytest.raises(AuthorityFault) as caught:
        await authority.finalize(order.finalize_url, csr)
    # The protocol leaves open which error it is; Pebble's changed between versions.
    assert caught.value.kind in (FaultKind.BAD_CSR, FaultKind.MALFORMED, FaultKind.GONE)


async def test_validation_fails_in_the_words_of_the_ca_without_a_record(
    authority: Authority, hostname: str
) -> None:
    order = await authority.new_order(hostname)
    (url,) = order.authorization_urls
    pending = await authority.read_authorization(url)
    assert (pending.hostname, pending.status, pending.problem) == (hostname, "pending", None)
    assert pending.challenge_url is not None
    await authority.answer_challenge(pending.challenge_url, pending.key_thumbprint)
    failed = await until(
        lambda: authority.read_authorization(url), lambda view: view.status != "pending"
    )
    assert failed.status == "invalid"
    assert failed.problem is not None
    assert "TXT" in failed.problem
    assert (await authority.read_order(order.url)).status == "invalid"


async def test_authorization_is_deactivated_and_its_order_with_it(
    authority: Authority, hostname: str
) -> None:
    order = await authority.new_order(hostname)
    (url,) = order.authorization_urls
    await authority.deactivate_authorization(url)
    assert (await authority.read_authorization(url)).status == "deactivated"
    assert (await authority.read_order(order.url)).status == "invalid"


async def test_hostname_is_refused_when_the_ca_blocks_it(
    tmp_path: Path, bind: BindPair, make_authority: MakeAuthority
) -> None:
    blocked = {"domainBlocklist": ["blocked.example.test"]}
    pebble = start_pebble(tmp_path, bind.primary, settings=blocked)
    try:
        authority = make_authority(settings_for(pebble))
        await authority.ensure_account()
        with pytest.raises(AuthorityFault) as caught:
            await authority.new_order("relay.blocked.example.test")
        assert caught.value.kind is FaultKind.REFUSED
        assert "rejectedIdentifier" in caught.value.detail
    finally:
        pebble.stop()


async def test_probe_passes_without_an_account(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    store = MemoryAccountStore()
    await make_authority(settings_for(pebble), store).probe()
    assert store.account is None


async def test_ca_is_unreachable_when_nothing_listens(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    url = f"https://{LOOPBACK}:{free_port()}/dir"
    with pytest.raises(AuthorityFault) as caught:
        await make_authority(settings_for(pebble, directory_url=url)).probe()
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert caught.value.detail == "no connection to the CA: Connection refused"


async def test_ca_is_unreachable_when_its_name_does_not_exist(
    pebble: PebbleProcess, make_authority: MakeAuthority
) -> None:
    settings = settings_for(pebble, directory_url="https://ca.invalid/dir")
    with pytest.raises(AuthorityFault) as caught:
        await make_authority(settings).probe()
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert caught.value.detail == "the CA's host name cannot be resolved"


@pytest.mark.parametrize("is_public", [True, False])
async def test_ca_is_unreachable_when_its_certificate_is_not_trusted(
    pebble: PebbleProcess, make_authority: MakeAuthority, is_public: bool
) -> None:
    bundle = None if is_public else pebble.root_file
    with pytest.raises(AuthorityFault) as caught:
        await make_authority(settings_for(pebble, ca_bundle=bundle)).probe()
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert "acme.ca_bundle" in caught.value.detail


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_authority_is_not_made_with_a_bundle_that_cannot_be_used(
    tmp_path: Path, pebble: PebbleProcess, content: bytes | None
) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_bytes(content)
    with pytest.raises(ValueError, match=r"acme\.ca_bundle"):
        Authority(settings_for(pebble, ca_bundle=bundle), MemoryAccountStore())


async def test_cancelled_callers_leave_the_authority_as_good_as_before(
    authority: Authority, bind: BindPair, fresh_label: str
) -> None:
    order = await authority.new_order(f"first.{fresh_label}.{ZONE}")
    for _ in range(10):
        calls = [asyncio.ensure_future(authority.read_order(order.url)) for _ in range(8)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    await issue(authority, bind, f"second.{fresh_label}.{ZONE}")


async def test_log_has_a_line_for_each_call_and_no_secret(
    pebble: PebbleProcess,
    bind: BindPair,
    make_authority: MakeAuthority,
    hostname: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    store = MemoryAccountStore()
    authority = make_authority(settings_for(pebble), store)
    with structlog.testing.capture_logs() as lines:
        await authority.ensure_account()
        await issue(authority, bind, hostname)
    methods = [line["method"] for line in lines]
    assert {"directory", "newAccount", "newOrder", "finalize", "fetchCertificate"} <= set(methods)
    assert all(line["log_level"] == "debug" and line["outcome"] == "ok" for line in lines)
    assert all(isinstance(line["ms"], int) for line in lines)
    everything = caplog.text + repr(lines)
    assert store.account is not None
    assert "PRIVATE KEY" not in everything
    for part in ("nonce", "signature", "payload", "protected", hostname):
        assert part not in everything.lower().replace("nonce-plz", "")


async def test_certificate_comes_with_its_intermediate(
    authority: Authority, bind: BindPair, pebble: PebbleProcess, hostname: str
) -> None:
    checked = await issue(authority, bind, hostname)
    chain = x509.load_pem_x509_certificates(checked.chain_pem.encode())
    root = x509.load_pem_x509_certificate(pebble.root_file.read_bytes())
    assert len(chain) == 2
    chain[-1].verify_directly_issued_by(root)
    assert checked.issuer == chain[1].subject.rfc4514_string()
