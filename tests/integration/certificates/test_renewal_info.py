"""What a CA offers beyond RFC 8555: renewal information, replacement orders, profiles.

At the newer Pebble. Where it cannot be had, the system's is asked, the proxy in front of it says
when to renew, and refuses what only a newer Pebble refuses (`renewing`).
"""

import json
import ssl
from datetime import UTC, datetime

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from structlog.testing import capture_logs

from gateway.certificates.authority import Authority
from gateway.certificates.keys import renewal_id
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.integration.authorities.renewing import RenewingCa
from tests.integration.certificates.conftest import MakeAuthority
from tests.integration.certificates.issuing import MemoryAccountStore, issue, settings_for
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Mood, Refuse, Replace
from tests.lab.bind import BindPair

UNKNOWN = "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE"


@pytest.fixture
async def newer(renewing: RenewingCa, make_authority: MakeAuthority) -> Authority:
    authority = make_authority(settings_for(renewing.proxy))
    await authority.ensure_account()
    return authority


def say_to_renew(ca: RenewingCa, hostname: str, certificate: x509.Certificate, text: str) -> None:
    """Have the CA answer exactly this when it is asked when to renew the certificate."""
    if not ca.is_newer:
        said = Replace("exactly this", lambda answer: answer.with_json(json.loads(text)))
        ca.proxy.on(Operation.RENEWAL_INFO, said, hostname=hostname)
        return
    pem = certificate.public_bytes(Encoding.PEM).decode()
    taken = httpx.post(
        f"{ca.pebble.management_url}/set-renewal-info/",
        json={"certificate": pem, "ariResponse": text},
        verify=ssl.create_default_context(cafile=ca.pebble.ca_file),
        trust_env=False,
    )
    taken.raise_for_status()


def refuse_unless_newer(ca: RenewingCa, hostname: str, refusal: Mood) -> None:
    """Refuse one order for the hostname where the CA would not."""
    if not ca.is_newer:
        ca.proxy.on(Operation.NEW_ORDER, refusal, hostname=hostname)


async def issued(
    authority: Authority, bind: BindPair, hostname: str
) -> tuple[str, x509.Certificate]:
    checked = await issue(authority, bind, hostname)
    name = renewal_id(checked.chain_pem)
    assert name is not None
    return name, x509.load_pem_x509_certificate(checked.chain_pem.encode())


async def test_renewal_info_is_offered_where_the_directory_has_it_only(
    newer: Authority, authority: Authority
) -> None:
    assert await newer.offers_renewal_info()
    assert not await authority.offers_renewal_info()
    assert await authority.renewal_info(UNKNOWN) is None


async def test_renewal_info_needs_no_account(
    newer: Authority,
    renewing: RenewingCa,
    make_authority: MakeAuthority,
    bind: BindPair,
    hostname: str,
) -> None:
    name, certificate = await issued(newer, bind, hostname)
    store = MemoryAccountStore()
    info = await make_authority(settings_for(renewing.proxy), store).renewal_info(name)
    assert store.account is None
    assert info is not None
    start, end = (
        datetime.fromtimestamp(ms / 1000, UTC) for ms in (info.window_start_ms, info.window_end_ms)
    )
    assert certificate.not_valid_before_utc < start < end < certificate.not_valid_after_utc
    assert info.retry_after_seconds == 6 * 3600


async def test_renewal_info_is_what_the_ca_says_now(
    newer: Authority, renewing: RenewingCa, bind: BindPair, hostname: str
) -> None:
    name, certificate = await issued(newer, bind, hostname)
    window = {"start": "2026-11-29T12:00:00.123456789+01:00", "end": "2026-11-29T12:00:00Z"}
    answer = {"suggestedWindow": window, "explanationURL": "https://ca.example.test/why"}
    say_to_renew(renewing, hostname, certificate, json.dumps(answer))
    info = await newer.renewal_info(name)
    assert info is not None
    assert (info.window_start_ms, info.window_end_ms) == (1795950000123, 1795953600000)
    assert info.explanation_url == "https://ca.example.test/why"
    say_to_renew(renewing, hostname, certificate, '{"suggestedWindow":{"start":"soon"}}')
    with pytest.raises(AuthorityFault) as caught:
        await newer.renewal_info(name)
    assert caught.value.kind is FaultKind.SERVER_ERROR


async def test_explanation_of_a_window_is_told_to_the_operator_once(
    newer: Authority, renewing: RenewingCa, bind: BindPair, hostname: str
) -> None:
    name, certificate = await issued(newer, bind, hostname)
    window = {"start": "2026-11-29T12:00:00Z", "end": "2026-11-30T12:00:00Z"}
    explanation = f"https://ca.example.test/why/{hostname}"
    answer = json.dumps({"suggestedWindow": window, "explanationURL": explanation})
    with capture_logs() as lines:
        for _ in range(2):
            say_to_renew(renewing, hostname, certificate, answer)
            assert await newer.renewal_info(name) is not None
    told = [line for line in lines if line.get("explanation") == explanation]
    assert [(line["log_level"], line["renewal_id"]) for line in told] == [("info", name)]


async def test_renewal_info_of_a_certificate_that_never_was_is_a_fault(newer: Authority) -> None:
    with pytest.raises(AuthorityFault) as caught:
        await newer.renewal_info(UNKNOWN)
    assert caught.value.kind in (FaultKind.GONE, FaultKind.MALFORMED)


async def test_certificate_is_replaced_once_and_its_name_may_be_ordered_without_that(
    newer: Authority, renewing: RenewingCa, bind: BindPair, hostname: str
) -> None:
    name, _ = await issued(newer, bind, hostname)
    await issue(newer, bind, hostname, replaces=name)
    refuse_unless_newer(renewing, hostname, Refuse(409, "alreadyReplaced"))
    with pytest.raises(AuthorityFault) as caught:
        await newer.new_order(hostname, replaces=name)
    assert caught.value.kind is FaultKind.MALFORMED
    assert caught.value.problem_type == "alreadyReplaced"
    assert caught.value.detail.startswith("alreadyReplaced: ")
    assert (await newer.new_order(hostname)).hostnames == (hostname,)


async def test_replacement_of_what_the_ca_does_not_know_is_a_fault(
    newer: Authority, renewing: RenewingCa, hostname: str
) -> None:
    refuse_unless_newer(renewing, hostname, Refuse(500, "serverInternal"))
    with pytest.raises(AuthorityFault):
        await newer.new_order(hostname, replaces=UNKNOWN)
    await newer.new_order(hostname)


async def test_certificate_has_the_profile_that_was_asked_for(
    renewing: RenewingCa, make_authority: MakeAuthority, bind: BindPair, hostname: str
) -> None:
    authority = make_authority(settings_for(renewing.proxy, profile="shortlived"))
    await authority.ensure_account()
    checked = await issue(authority, bind, hostname)
    (order,) = renewing.made_orders(hostname)
    assert order.payload is not None
    assert order.payload["profile"] == "shortlived"
    if renewing.is_newer:
        days = (checked.not_after_ms - checked.not_before_ms) / 86_400_000
        assert days == pytest.approx(6, abs=0.1)


async def test_profile_that_the_ca_does_not_know_is_refused(
    renewing: RenewingCa, make_authority: MakeAuthority, hostname: str
) -> None:
    authority = make_authority(settings_for(renewing.proxy, profile="wishful"))
    await authority.ensure_account()
    refuse_unless_newer(renewing, hostname, Refuse(400, "invalidProfile"))
    with pytest.raises(AuthorityFault) as caught:
        await authority.new_order(hostname)
    assert caught.value.kind is FaultKind.REFUSED
    assert caught.value.problem_type == "invalidProfile"
