"""Certificates that must not be used, and chains among which to choose."""

import base64
import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import Replace
from tests.lab.bind import BindPair
from tests.moods.moodlab import MoodLab, gateway_at, management, pebble_and_proxy

ALTERNATE_ROOTS = 2
PublicKey = ec.EllipticCurvePublicKey


def request_of(moody: MoodLab, mine: Ownership) -> x509.CertificateSigningRequest:
    """The certificate request that the CA got last."""
    payload = moody.proxy.done(Operation.FINALIZE, mine.hostname)[-1].payload
    assert payload is not None
    text = payload["csr"]
    return x509.load_der_x509_csr(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def forged(public_key: object, hostname: str) -> bytes:
    """A chain in right order from an authority that was made up for it."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "made up")])
    now = datetime.datetime.now(datetime.UTC)

    def signed(subject: x509.Name, key: PublicKey, *more: x509.ExtensionType) -> bytes:
        builder = x509.CertificateBuilder(name, subject, key, x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=30))
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM)

    assert isinstance(public_key, PublicKey)
    names = x509.SubjectAlternativeName([x509.DNSName(hostname)])
    leaf = signed(x509.Name([]), public_key, names)
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    return leaf + signed(name, ca_key.public_key(), constraints)


def blocks(chain: bytes) -> list[bytes]:
    end = b"-----END CERTIFICATE-----\n"
    return [block + end for block in chain.split(end) if block.strip()]


@dataclass(frozen=True)
class Wrong:
    """A wrong answer to give for the right one, and the word that its refusal goes by."""

    name: str
    word: str
    make: Callable[[MoodLab, Ownership, bytes], bytes]


WRONG = [
    Wrong(
        "another key",
        "another key",
        lambda _, mine, __: forged(
            ec.generate_private_key(ec.SECP256R1()).public_key(), mine.hostname
        ),
    ),
    Wrong(
        "another name",
        "hostname",
        lambda moody, mine, _: forged(request_of(moody, mine).public_key(), "other.example.test"),
    ),
    Wrong("issuer first", "another key", lambda _, __, chain: b"".join(reversed(blocks(chain)))),
    Wrong(
        "another issuer after the leaf",
        "out of order",
        lambda moody, mine, chain: (
            blocks(chain)[0]
            + blocks(forged(request_of(moody, mine).public_key(), mine.hostname))[1]
        ),
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_wrong_certificate_is_never_served_and_followed_by_another_order(
    moody: MoodLab, mine: Ownership, wrong: Wrong
) -> None:
    def instead(answer: Answer) -> Answer:
        return replace(answer, body=wrong.make(moody, mine, answer.body))

    moody.on(mine, Operation.CERTIFICATE, Replace(wrong.name, instead))
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
    assert wrong.word in answer["message"]
    assert answer["retryAfterMs"] > 10_000
    assert "certificate" not in moody.stored(mine.hostname)
    first = request_of(moody, mine)
    moody.hurry(mine.hostname)
    moody.issued(mine)
    assert len(moody.orders(mine)) == 2
    assert request_of(moody, mine).public_key() != first.public_key()


def top_issuer(chain_pem: str) -> str:
    return common_name(x509.load_pem_x509_certificates(chain_pem.encode())[-1].issuer)


def common_name(name: x509.Name) -> str:
    return str(name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


@pytest.mark.parametrize("wanted", [0, 1, 2, None], ids=["default", "first", "last", "unknown"])
def test_preferred_chain_is_chosen_by_its_topmost_issuer(
    tmp_path: Path, bind: BindPair, wanted: int | None
) -> None:
    environ = {"PEBBLE_ALTERNATE_ROOTS": str(ALTERNATE_ROOTS)}
    with pebble_and_proxy(tmp_path, bind, environ) as (pebble, proxy):
        roots = [
            common_name(x509.load_pem_x509_certificate(management(pebble, f"roots/{n}")).subject)
            for n in range(1 + ALTERNATE_ROOTS)
        ]
        assert len(set(roots)) == len(roots)
        line = f'preferred_chain = "{"No Such Root" if wanted is None else roots[wanted]}"'
        with gateway_at(tmp_path, bind, pebble, proxy, [line]) as lab:
            told = lab.issued(lab.world.ownership())
            assert told.reasons == set()
            assert top_issuer(told.certificate["chainPem"]) == roots[wanted or 0]


def test_alternate_chains_change_nothing_without_a_preference(
    tmp_path: Path, bind: BindPair
) -> None:
    environ = {"PEBBLE_ALTERNATE_ROOTS": str(ALTERNATE_ROOTS)}
    with pebble_and_proxy(tmp_path, bind, environ) as (pebble, proxy):
        default = x509.load_pem_x509_certificate(management(pebble, "roots/0"))
        with gateway_at(tmp_path, bind, pebble, proxy) as lab:
            mine = lab.world.ownership()
            chain = lab.issued(mine).certificate["chainPem"]
            assert top_issuer(chain) == common_name(default.subject)
            assert len(lab.proxy.seen(Operation.CERTIFICATE, mine.hostname)) == 1
