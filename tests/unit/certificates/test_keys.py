"""Keys, requests, and every kind of certificate that is not the one that was asked for."""

import base64
import ipaddress
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, strategies as st

from gateway.certificates.keys import (
    MAX_CHAIN_CERTIFICATES,
    CertificateWrong,
    KeyType,
    Leaf,
    check_certificate,
    csr_for,
    leaf_of,
    new_private_key,
    renewal_id,
)
from tests.unit.certificates.issuing import DAY, NOW, load_key, new_root, pem
from tests.unit.certificates.properties import untimed

HOSTNAME = "relay.cluster-a.example.test"
ROOT = new_root()
INTERMEDIATE = ROOT.below("intermediate")
KEY = new_private_key(KeyType.ECDSA_P256)
RSA_KEY = new_private_key(KeyType.RSA_2048)
NAMES: list[x509.GeneralName] = [x509.DNSName(HOSTNAME)]
LEAF = INTERMEDIATE.issue(KEY, NAMES)


@pytest.mark.parametrize(
    ("key_type", "curve"),
    [(KeyType.ECDSA_P256, ec.SECP256R1), (KeyType.ECDSA_P384, ec.SECP384R1)],
)
def test_ecdsa_key_has_its_curve(key_type: KeyType, curve: type[ec.EllipticCurve]) -> None:
    key = load_key(new_private_key(key_type))
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, curve)


def test_rsa_key_has_its_size() -> None:
    key = load_key(RSA_KEY)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048


def test_key_is_pkcs8() -> None:
    assert KEY.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert RSA_KEY.startswith(b"-----BEGIN PRIVATE KEY-----")


@pytest.mark.parametrize("key_pem", [KEY, RSA_KEY], ids=["ecdsa", "rsa"])
@pytest.mark.parametrize("hostname", [HOSTNAME, ".".join(["a" * 49] * 5)])
def test_request_names_exactly_the_hostname(key_pem: bytes, hostname: str) -> None:
    csr = x509.load_der_x509_csr(csr_for(key_pem, hostname))
    names = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName(hostname)]
    assert not list(csr.subject)
    assert csr.is_signature_valid


def test_request_refuses_a_key_of_another_kind() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(TypeError):
        csr_for(key_pem, HOSTNAME)


@pytest.mark.parametrize("key_pem", [KEY, RSA_KEY], ids=["ecdsa", "rsa"])
def test_good_certificate_passes(key_pem: bytes) -> None:
    leaf = INTERMEDIATE.issue(key_pem, NAMES)
    chain = pem(leaf, INTERMEDIATE.certificate)
    checked = check_certificate(chain, key_pem, HOSTNAME, NOW)
    assert checked.chain_pem == chain
    assert checked.not_before_ms == int((NOW - DAY).timestamp() * 1000)
    assert checked.not_after_ms == int((NOW + 90 * DAY).timestamp() * 1000)
    assert checked.serial_hex == "abc123"
    assert checked.issuer == "CN=intermediate"


def test_own_rsa_key_is_not_proven_once_more() -> None:
    # That takes a second for RSA 4096, in the event loop; a number that is wrong shows it.
    key = load_key(RSA_KEY)
    assert isinstance(key, rsa.RSAPrivateKey)
    whole = key.private_numbers()
    wrong = rsa.RSAPrivateNumbers(
        *(whole.p, whole.q, whole.d, whole.dmp1, whole.dmq1, whole.iqmp + 2),
        public_numbers=whole.public_numbers,
    ).private_key(unsafe_skip_rsa_key_validation=True)
    unproven = wrong.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(ValueError, match="Invalid private key"):
        load_key(unproven)
    chain = pem(INTERMEDIATE.issue(RSA_KEY, NAMES), INTERMEDIATE.certificate)
    check_certificate(chain, unproven, HOSTNAME, NOW)


def test_certificate_passes_with_the_root_at_the_end() -> None:
    chain = pem(LEAF, INTERMEDIATE.certificate, ROOT.certificate)
    assert check_certificate(chain, KEY, HOSTNAME, NOW).chain_pem == chain


def test_certificate_passes_without_an_intermediate() -> None:
    chain = pem(ROOT.issue(KEY, NAMES))
    assert check_certificate(chain, KEY, HOSTNAME, NOW).chain_pem == chain


def test_certificate_passes_with_its_hostname_as_common_name() -> None:
    leaf = INTERMEDIATE.issue(KEY, NAMES, common_name=HOSTNAME)
    check_certificate(pem(leaf, INTERMEDIATE.certificate), KEY, HOSTNAME, NOW)


def test_certificate_passes_at_the_edges_of_its_validity() -> None:
    chain = pem(LEAF, INTERMEDIATE.certificate)
    check_certificate(chain, KEY, HOSTNAME, NOW - DAY)
    check_certificate(chain, KEY, HOSTNAME, NOW + 90 * DAY - timedelta(seconds=1))


def test_certificate_from_before_every_time_that_can_be_stored_is_valid_from_the_first() -> None:
    leaf = INTERMEDIATE.issue(KEY, NAMES, not_before=datetime(1955, 1, 1, tzinfo=UTC))
    chain = pem(leaf, INTERMEDIATE.certificate)
    assert check_certificate(chain, KEY, HOSTNAME, NOW).not_before_ms == 0


def test_chain_is_written_anew_without_other_text() -> None:
    clean = pem(LEAF, INTERMEDIATE.certificate)
    noisy = "subject=whoever\r\n" + clean.replace("\n", "\r\n") + "\r\n# the end"
    assert check_certificate(noisy, KEY, HOSTNAME, NOW).chain_pem == clean


def _with_names(*names: x509.GeneralName) -> Callable[[], str]:
    return lambda: pem(INTERMEDIATE.issue(KEY, list(names)), INTERMEDIATE.certificate)


WRONG_NAMES: dict[str, Callable[[], str]] = {
    "another name": _with_names(x509.DNSName("other.example.test")),
    "an extra name": _with_names(x509.DNSName(HOSTNAME), x509.DNSName("other.example.test")),
    "the name twice": _with_names(x509.DNSName(HOSTNAME), x509.DNSName(HOSTNAME)),
    "a wildcard": _with_names(x509.DNSName("*.cluster-a.example.test")),
    "an extra address": _with_names(
        x509.DNSName(HOSTNAME), x509.IPAddress(ipaddress.ip_address("192.0.2.1"))
    ),
    "a name of another type": _with_names(x509.RFC822Name(f"who@{HOSTNAME}")),
    "capitals": _with_names(x509.DNSName(HOSTNAME.upper())),
    "a trailing dot": _with_names(x509.DNSName(HOSTNAME + ".")),
}


@pytest.mark.parametrize("chain", WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_certificate_is_refused_when_its_names_are_not_the_hostname(
    chain: Callable[[], str],
) -> None:
    with pytest.raises(CertificateWrong, match="not for exactly the one hostname"):
        check_certificate(chain(), KEY, HOSTNAME, NOW)


def test_certificate_is_refused_when_its_common_name_is_another() -> None:
    leaf = INTERMEDIATE.issue(KEY, NAMES, common_name="other.example.test")
    with pytest.raises(CertificateWrong, match="common name"):
        check_certificate(pem(leaf, INTERMEDIATE.certificate), KEY, HOSTNAME, NOW)


def test_certificate_is_refused_without_alternative_names() -> None:
    leaf = INTERMEDIATE.issue(KEY, None, common_name=HOSTNAME)
    with pytest.raises(CertificateWrong, match="no subject alternative name"):
        check_certificate(pem(leaf, INTERMEDIATE.certificate), KEY, HOSTNAME, NOW)


@pytest.mark.parametrize("other", [new_private_key(KeyType.ECDSA_P256), RSA_KEY])
def test_certificate_is_refused_when_it_is_for_another_key(other: bytes) -> None:
    with pytest.raises(CertificateWrong, match="another key"):
        check_certificate(pem(LEAF, INTERMEDIATE.certificate), other, HOSTNAME, NOW)


def test_certificate_is_refused_when_it_has_expired() -> None:
    chain = pem(LEAF, INTERMEDIATE.certificate)
    with pytest.raises(CertificateWrong, match="expired"):
        check_certificate(chain, KEY, HOSTNAME, NOW + 90 * DAY)


def test_certificate_is_refused_when_it_is_not_valid_yet() -> None:
    chain = pem(LEAF, INTERMEDIATE.certificate)
    with pytest.raises(CertificateWrong, match="not valid yet"):
        check_certificate(chain, KEY, HOSTNAME, NOW - DAY - timedelta(seconds=3))


def test_certificate_may_begin_as_soon_as_clocks_differ() -> None:
    chain = pem(LEAF, INTERMEDIATE.certificate)
    check_certificate(chain, KEY, HOSTNAME, NOW - DAY - timedelta(seconds=2))


def test_certificate_is_refused_when_its_issuer_has_expired() -> None:
    expired = ROOT.below("expired", life=9 * DAY)
    chain = pem(expired.issue(KEY, NAMES), expired.certificate)
    with pytest.raises(CertificateWrong, match="expired"):
        check_certificate(chain, KEY, HOSTNAME, NOW)


@pytest.mark.parametrize("is_ca", [False, None])
def test_certificate_is_refused_when_its_issuer_is_no_ca(is_ca: bool | None) -> None:
    impostor = ROOT.below("impostor", is_ca=is_ca)
    chain = pem(impostor.issue(KEY, NAMES), impostor.certificate)
    with pytest.raises(CertificateWrong, match="not a CA"):
        check_certificate(chain, KEY, HOSTNAME, NOW)


OUT_OF_ORDER = {
    "swapped issuers": pem(LEAF, ROOT.certificate, INTERMEDIATE.certificate),
    "a gap": pem(LEAF, ROOT.certificate),
    "a stranger": pem(LEAF, INTERMEDIATE.certificate, new_root().certificate),
    "a namesake": pem(LEAF, ROOT.below("intermediate").certificate),
    "the leaf twice": pem(LEAF, LEAF, INTERMEDIATE.certificate),
    "something after the root": pem(
        LEAF, INTERMEDIATE.certificate, ROOT.certificate, INTERMEDIATE.certificate
    ),
}


@pytest.mark.parametrize("chain", OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_certificate_is_refused_when_its_chain_is_out_of_order(chain: str) -> None:
    with pytest.raises(CertificateWrong, match="out of order"):
        check_certificate(chain, KEY, HOSTNAME, NOW)


def test_certificate_is_refused_when_the_issuer_comes_first() -> None:
    with pytest.raises(CertificateWrong, match="another key"):
        check_certificate(pem(INTERMEDIATE.certificate, LEAF), KEY, HOSTNAME, NOW)


NOT_A_CHAIN = {
    "empty": "",
    "text": "no certificate at all",
    "a page": "<html>502</html>",
    "bad base64": "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
    "bad DER": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "cut off": pem(LEAF)[:-40],
    "not ASCII": pem(LEAF).replace("M", "Ḿ", 1),
    "a lone surrogate": pem(LEAF).replace("M", "\ud800", 1),
    "too long": pem(LEAF) + " " * 300_000,
    "too many": pem(LEAF, *[INTERMEDIATE.certificate] * MAX_CHAIN_CERTIFICATES),
    "a key in it": pem(LEAF, INTERMEDIATE.certificate) + KEY.decode(),
}


@pytest.mark.parametrize("chain", NOT_A_CHAIN.values(), ids=NOT_A_CHAIN)
def test_certificate_is_refused_when_it_is_not_a_chain(chain: str) -> None:
    with pytest.raises(CertificateWrong, match="chain"):
        check_certificate(chain, KEY, HOSTNAME, NOW)


def _changed(old: bytes, new: bytes) -> str:
    der = LEAF.public_bytes(Encoding.DER)
    assert len(old) == len(new)
    assert der.count(old) == 1
    return pem(x509.load_der_x509_certificate(der.replace(old, new)), INTERMEDIATE.certificate)


# The curve's object identifier becomes one that nobody knows, the name's text no text.
UNREADABLE = {
    "public key": (bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030177")),
    "names": (b"\x82\x1crelay.", b"\x82\x1c\xffelay."),
}


@pytest.mark.parametrize("part", UNREADABLE)
def test_certificate_is_refused_when_a_part_of_it_cannot_be_read(part: str) -> None:
    with pytest.raises(CertificateWrong, match=f"{part} cannot be read"):
        check_certificate(_changed(*UNREADABLE[part]), KEY, HOSTNAME, NOW)


def test_certificate_is_refused_when_its_issuer_cannot_be_read() -> None:
    leaf = ROOT.issue(KEY, NAMES).public_bytes(Encoding.DER)
    # No issuer follows that would have to have signed it; the name's text becomes no text.
    changed = x509.load_der_x509_certificate(leaf.replace(b"\x0c\x04root", b"\x0c\x04\xffoot"))
    with pytest.raises(CertificateWrong, match="issuer cannot be read"):
        check_certificate(pem(changed), KEY, HOSTNAME, NOW)


@untimed
@given(st.data())
@pytest.mark.filterwarnings("ignore")  # `cryptography` warns of what it tolerates
def test_certificate_is_refused_when_any_signed_byte_of_it_was_changed(data: st.DataObject) -> None:
    der = bytearray(LEAF.public_bytes(Encoding.DER))
    signed = LEAF.tbs_certificate_bytes
    place = data.draw(st.integers(0, len(signed) - 1)) + der.index(signed)
    der[place] ^= data.draw(st.integers(1, 255))
    text = base64.encodebytes(der).decode()
    changed = f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"
    with pytest.raises(CertificateWrong):
        check_certificate(changed + pem(INTERMEDIATE.certificate), KEY, HOSTNAME, NOW)


def test_refusal_shows_no_key() -> None:
    with pytest.raises(CertificateWrong) as caught:
        check_certificate(NOT_A_CHAIN["a key in it"], KEY, HOSTNAME, NOW)
    assert "PRIVATE" not in str(caught.value)


def _with_serial(serial: int, key_identifier: bytes | None) -> str:
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(ROOT.certificate.subject)
        .public_key(load_key(KEY).public_key())
        .not_valid_before(NOW)
        .not_valid_after(NOW + DAY)
        .serial_number(serial)
    )
    if key_identifier is not None:
        extension = x509.AuthorityKeyIdentifier(key_identifier or None, None, None)
        builder = builder.add_extension(extension, critical=False)
    return pem(builder.sign(ROOT.key, SHA256()), ROOT.certificate)


# The first is RFC 9773's own example (4.1).
@pytest.mark.parametrize(
    ("serial", "key_identifier", "name"),
    [
        (
            0x8765432121,
            "69885b6b87464041e1b37b847ba0ae2cde01c8d4",
            "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyEh",
        ),
        (
            0x87654321,
            "69885b6b87464041e1b37b847ba0ae2cde01c8d4",
            "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE",
        ),
        (0x7F, "00", "AA.fw"),
        (0x80, "ff", "_w.AIA"),
        (0x100, "00", "AA.AQA"),
        (2**159 - 1, "00", "AA.f_________________________8"),
    ],
)
def test_renewal_name_is_made_of_the_issuers_key_and_the_serial_number(
    serial: int, key_identifier: str, name: str
) -> None:
    assert renewal_id(_with_serial(serial, bytes.fromhex(key_identifier))) == name


@pytest.mark.parametrize("key_identifier", [None, b""])
def test_renewal_name_is_none_without_the_issuers_key(key_identifier: bytes | None) -> None:
    assert renewal_id(_with_serial(1, key_identifier)) is None


@pytest.mark.parametrize("chain", ["", "no certificate", NOT_A_CHAIN["bad DER"]])
def test_renewal_name_is_none_of_what_is_no_certificate(chain: str) -> None:
    assert renewal_id(chain) is None


@untimed
@given(st.integers(1, 2**159 - 1))
def test_renewal_name_has_the_serial_number_as_der_does(serial: int) -> None:
    name = renewal_id(_with_serial(serial, b"key"))
    assert name is not None
    raw = base64.urlsafe_b64decode(name.partition(".")[2] + "==")
    certificate = x509.load_pem_x509_certificate(_with_serial(serial, b"key").encode())
    # INTEGER, its length, its bytes.
    assert bytes([2, len(raw)]) + raw in certificate.public_bytes(Encoding.DER)


def test_person_is_told_the_names_and_the_kind_of_the_key() -> None:
    assert leaf_of(pem(LEAF, INTERMEDIATE.certificate)) == Leaf((HOSTNAME,), "ECDSA P-256")
    address = x509.IPAddress(ipaddress.ip_address("192.0.2.1"))
    rsa_leaf = INTERMEDIATE.issue(RSA_KEY, [*NAMES, address])
    assert leaf_of(pem(rsa_leaf)) == Leaf((HOSTNAME, "192.0.2.1"), "RSA 2048 bits")


def test_person_is_told_nothing_of_what_is_no_certificate_or_names_nothing() -> None:
    assert leaf_of("no certificate") is None
    assert leaf_of(pem(INTERMEDIATE.issue(KEY, None))) is None
