"""The account key: signatures that others can verify, and nothing of it on show."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from acme import challenges, jws
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gateway.certificates.authority.signing import (
    ExternalAccountBinding,
    Signer,
    contact_urls,
    key_change,
    load_signer,
    registration,
)
from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.unit.certificates.issuing import load_key

ACCOUNT = "https://ca.example.test/account/1"
NEW_ACCOUNT = "https://ca.example.test/new-account"
TOKEN = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"
KEYS = {one.value: new_private_key(one) for one in KeyType if one is not KeyType.RSA_4096}


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signed(signer: Signer) -> tuple[dict[str, Any], dict[str, Any]]:
    message = json.loads(signer.sign(b"{}", url=f"{ACCOUNT}/orders", nonce=b"\x01\x02\x03"))
    return message, json.loads(decode(message["protected"]))


@pytest.mark.parametrize(
    ("key_type", "algorithm"),
    [("ecdsa-p256", "ES256"), ("ecdsa-p384", "ES384"), ("rsa-2048", "RS256")],
)
def test_request_is_signed_under_the_account_url(key_type: str, algorithm: str) -> None:
    message, protected = signed(load_signer(KEYS[key_type], ACCOUNT))
    assert protected == {
        "alg": algorithm,
        "kid": ACCOUNT,
        "nonce": "AQID",
        "url": f"{ACCOUNT}/orders",
    }
    assert decode(message["payload"]) == b"{}"


def test_request_is_signed_under_the_public_key_without_an_account() -> None:
    _, protected = signed(load_signer(KEYS["ecdsa-p256"], None))
    assert "kid" not in protected
    assert set(protected["jwk"]) == {"kty", "crv", "x", "y"}


def test_signature_verifies() -> None:
    message, _ = signed(load_signer(KEYS["ecdsa-p256"], ACCOUNT))
    raw = decode(message["signature"])
    signature = encode_dss_signature(*(int.from_bytes(half) for half in (raw[:32], raw[32:])))
    key = load_key(KEYS["ecdsa-p256"])
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    text = f"{message['protected']}.{message['payload']}".encode()
    key.public_key().verify(signature, text, ec.ECDSA(SHA256()))


@pytest.mark.parametrize("key_pem", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("payload", [b"", b"{}", "ä".encode() * 1000])
@pytest.mark.parametrize("account_url", [None, ACCOUNT])
def test_request_is_what_others_read_and_verify(
    key_pem: bytes, payload: bytes, account_url: str | None
) -> None:
    signer = load_signer(key_pem, account_url)
    message = jws.JWS.json_loads(signer.sign(payload, url=ACCOUNT, nonce=b"\xff\x00nonce"))
    assert message.verify(signer.key.public_key())
    assert message.payload == payload
    header = message.signature.combined
    assert (header.nonce, header.url, header.kid) == (b"\xff\x00nonce", ACCOUNT, account_url)
    assert (header.jwk is None) is (account_url is not None)


def test_same_key_signs_under_another_url() -> None:
    signer = load_signer(KEYS["ecdsa-p256"], None)
    _, protected = signed(signer.at(ACCOUNT))
    assert protected["kid"] == ACCOUNT
    assert signer.account_url is None


def test_txt_value_is_the_one_that_the_acme_library_computes() -> None:
    signer = load_signer(KEYS["ecdsa-p256"], ACCOUNT)
    challenge = challenges.DNS01(token=decode(TOKEN))
    assert signer.txt_value(TOKEN) == challenge.validation(signer.key)


def test_txt_value_takes_the_token_as_it_is_spelled() -> None:
    signer = load_signer(KEYS["ecdsa-p256"], ACCOUNT)
    # Both spellings decode to the same bytes.
    assert decode(TOKEN[:-1] + "B") == decode(TOKEN)
    assert signer.txt_value(TOKEN[:-1] + "B") != signer.txt_value(TOKEN)


def test_representation_shows_no_key() -> None:
    for key_pem in KEYS.values():
        text = repr(load_signer(key_pem, ACCOUNT))
        assert ACCOUNT in text
        assert "Key" not in text
        assert "JWK" not in text


def test_key_that_acme_cannot_use_is_refused() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(TypeError):
        load_signer(key_pem, None)


def test_registration_agrees_and_names_contacts() -> None:
    signer = load_signer(KEYS["ecdsa-p256"], None)
    contact = ("ops@example.test", "mailto:who@example.test")
    assert json.loads(registration(signer, contact, None, NEW_ACCOUNT)) == {
        "termsOfServiceAgreed": True,
        "contact": ["mailto:ops@example.test", "mailto:who@example.test"],
    }


def test_registration_without_contacts_names_none() -> None:
    signer = load_signer(KEYS["ecdsa-p256"], None)
    assert json.loads(registration(signer, (), None, NEW_ACCOUNT)) == {"termsOfServiceAgreed": True}


def test_binding_is_signed_with_the_secret_of_the_ca() -> None:
    secret = bytes(range(32))
    signer = load_signer(KEYS["ecdsa-p256"], None)
    binding = ExternalAccountBinding("kid-1", base64.urlsafe_b64encode(secret).decode())
    body = json.loads(registration(signer, (), binding, NEW_ACCOUNT))["externalAccountBinding"]
    assert json.loads(decode(body["protected"])) == {
        "alg": "HS256",
        "kid": "kid-1",
        "url": NEW_ACCOUNT,
    }
    text = f"{body['protected']}.{body['payload']}".encode()
    assert decode(body["signature"]) == hmac.digest(secret, text, hashlib.sha256)
    _, protected = signed(signer)
    assert json.loads(decode(body["payload"])) == protected["jwk"]


@pytest.mark.parametrize("secret", ["", "two words", "abc/def+", "ключ", "abcde", "abc\n"])
def test_binding_is_refused_when_its_secret_is_not_base64url(secret: str) -> None:
    signer = load_signer(KEYS["ecdsa-p256"], None)
    with pytest.raises(AuthorityFault) as caught:
        registration(signer, (), ExternalAccountBinding("kid-1", secret), NEW_ACCOUNT)
    assert caught.value.kind is FaultKind.ACCOUNT_REFUSED
    assert not secret or secret not in str(caught.value)


def test_binding_shows_no_secret() -> None:
    assert "c2VjcmV0" not in repr(ExternalAccountBinding("kid-1", "c2VjcmV0"))


KEY_CHANGE = "https://ca.example.test/key-change"


@pytest.mark.parametrize("key_type", ["ecdsa-p256", "ecdsa-p384", "rsa-2048"])
def test_key_change_is_signed_by_the_new_key_over_what_it_replaces(key_type: str) -> None:
    old = load_signer(KEYS["ecdsa-p256"], ACCOUNT)
    new = load_signer(new_private_key(KeyType(key_type)), None)
    body = json.loads(key_change(old, new, KEY_CHANGE))
    assert set(body) == {"protected", "payload", "signature"}
    # As ordinary requests are signed with the keys, whose form other tests show.
    _, by_new = signed(new)
    _, by_old = signed(old.at(None))
    assert json.loads(decode(body["protected"])) == {
        "alg": by_new["alg"],
        "jwk": by_new["jwk"],
        "url": KEY_CHANGE,
    }
    assert json.loads(decode(body["payload"])) == {"account": ACCOUNT, "oldKey": by_old["jwk"]}
    text = f"{body['protected']}.{body['payload']}".encode()
    assert new.algorithm.verify(new.key.public_key().key, text, decode(body["signature"]))
    assert not old.algorithm.verify(old.key.public_key().key, text, decode(body["signature"]))


@pytest.mark.parametrize(
    ("key_type", "told"),
    [
        ("ecdsa-p256", "ecdsa-p256"),
        ("ecdsa-p384", "ecdsa-p384"),
        ("rsa-2048", "rsa"),
        ("rsa-3072", "rsa"),
    ],
)
def test_key_says_of_what_type_it_is(key_type: str, told: str) -> None:
    assert load_signer(KEYS[key_type], None).key_type == told


def test_thumbprint_is_the_one_of_key_authorizations() -> None:
    signer = load_signer(KEYS["ecdsa-p256"], ACCOUNT)
    authorization = f"{TOKEN}.{signer.thumbprint}".encode()
    expected = base64.urlsafe_b64encode(hashlib.sha256(authorization).digest()).rstrip(b"=")
    assert signer.txt_value(TOKEN) == expected.decode()


def test_bare_addresses_become_urls() -> None:
    assert contact_urls(("ops@example.test", "tel:+1")) == ["mailto:ops@example.test", "tel:+1"]
