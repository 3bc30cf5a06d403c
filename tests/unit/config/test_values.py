import pytest

from gateway.certificates.authority.settings import origin_of
from gateway.config.values import (
    Address,
    default_authority_name,
    directory_identity,
    is_loopback,
    read_address,
    read_authority_name,
    read_base64_secret,
    read_base64url_secret,
    read_contact,
    read_directory_url,
    read_dns_name,
    read_origin,
    read_redis_url,
    read_token_digest,
)

LONGEST_LABEL = "a" * 63
LONGEST_NAME = ".".join(["a" * 49] * 5 + ["abc"])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", Address("192.0.2.1", 53)),
        ("192.0.2.1:5300", Address("192.0.2.1", 5300)),
        ("ns1.example.test", Address("ns1.example.test", 53)),
        ("ns1.example.test:1", Address("ns1.example.test", 1)),
        ("localhost:65535", Address("localhost", 65535)),
        ("2001:db8::1", Address("2001:db8::1", 53)),
        ("[2001:db8::1]", Address("2001:db8::1", 53)),
        ("[2001:db8::1]:5300", Address("2001:db8::1", 5300)),
    ],
)
def test_address_is_read_in_every_form(text: str, address: Address) -> None:
    assert read_address(text, 53) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":53",
        "a b",
        "host:",
        "host:0",
        "host:65536",
        "host:99999999999",
        "host:-1",
        "host:5 3",
        "host:\u0665",
        "192.0.2.256",
        "192.0.2.256:53",
        "[192.0.2.1]:53",
        "[2001:db8::1",
        "[2001:db8::1]53",
        "[]:53",
        "2001:db8::1:5300:1:2:3:4:5",
        "-host",
        "host..test",
    ],
)
def test_address_is_refused_in_any_other_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        read_address(text, 53)


def test_address_is_refused_without_port_when_there_is_no_default() -> None:
    with pytest.raises(ValueError, match="must end in a port"):
        read_address("127.0.0.1", None)


@pytest.mark.parametrize("text", ["192.0.2.1:53", "[2001:db8::1]:53", "ns1.example.test:53"])
def test_address_is_written_as_it_was_read(text: str) -> None:
    assert str(read_address(text, None)) == text


@pytest.mark.parametrize(
    "name", ["example.test", "test", "_acme.example.test", LONGEST_LABEL, LONGEST_NAME, "a-b.1"]
)
def test_dns_name_is_accepted_in_canonical_form(name: str) -> None:
    assert read_dns_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "Example.test",
        "example.test.",
        "a..b",
        "-a.test",
        "a-.test",
        "a b",
        "*.test",
        "münchen.test",
        f"{LONGEST_LABEL}a",
        f"{LONGEST_NAME}d",
    ],
)
def test_dns_name_is_refused_in_any_other_form(name: str) -> None:
    with pytest.raises(ValueError, match=r"^must be "):
        read_dns_name(name)


def test_tsig_secret_is_decoded() -> None:
    assert read_base64_secret("MDEyMzQ1Njc4OWFiY2RlZg==") == b"0123456789abcdef"


@pytest.mark.parametrize(
    "text", ["", "MDEyMzQ1Njc4OWFiY2Rl", "MDEyMzQ1Njc4OWFiY2RlZg", "MDEy MzQ1", "ü" * 24, "-_" * 12]
)
def test_tsig_secret_is_refused_when_short_or_no_base64(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be ") as caught:
        read_base64_secret(text)
    assert not text or text not in str(caught.value)


@pytest.mark.parametrize("text", ["MDEyMzQ1Njc4OWFiY2RlZg", "MDEyMzQ1Njc4OWFiY2RlZg==", "_-" * 12])
def test_hmac_key_is_accepted_with_and_without_padding(text: str) -> None:
    assert read_base64url_secret(text) == text


@pytest.mark.parametrize("text", ["", "MDEyMzQ1", "+/" * 12, "MDEyMzQ1Njc4OWFiY2RlZ", "a=b"])
def test_hmac_key_is_refused_when_short_or_no_base64url(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be "):
        read_base64url_secret(text)


def test_token_digest_is_refused_when_it_is_the_token() -> None:
    with pytest.raises(ValueError, match="is a token itself"):
        read_token_digest(f"gwa_{'a' * 43}")


@pytest.mark.parametrize("text", ["", "ab" * 31, "AB" * 32, "zz" * 32])
def test_token_digest_is_refused_in_any_other_form(text: str) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        read_token_digest(text)


@pytest.mark.parametrize(
    "url",
    [
        "embedded",
        "redis://127.0.0.1",
        "redis://user:password@redis.example.test:6379/3",
        "rediss://[2001:db8::1]:6380/0?ssl_ca_certs=/etc/ca.pem",
        "unix:///run/redis/redis.sock?db=1",
    ],
)
def test_redis_url_is_accepted(url: str) -> None:
    assert read_redis_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "Embedded",
        "127.0.0.1:6379",
        "http://h",
        "redis://",
        "redis://:pw@",
        "redis://h:0",
        "redis://h:x",
        "redis://h:65536",
        "redis://[::1",
        "unix:",
    ],
)
def test_redis_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        read_redis_url(url)


@pytest.mark.parametrize("url", ["http://ca.test/dir", "https://", "ca.test/dir", "https://h:x/"])
def test_directory_is_refused_unless_https(url: str) -> None:
    with pytest.raises(ValueError, match="must be an https:// URL"):
        read_directory_url(url)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://ca.test/dir", "https://CA.test:443/dir", True),
        ("https://ca.test", "https://ca.test/", True),
        ("https://ca.test/dir", "https://ca.test/Dir", False),
        ("https://ca.test/dir", "https://ca.test:444/dir", False),
        ("https://ca.test/dir", "https://ca.test/dir?a", False),
        ("https://ca.test:x/", "https://ca.test:y/", False),
    ],
)
def test_directory_is_known_in_other_forms_of_its_url(one: str, other: str, *, same: bool) -> None:
    assert (directory_identity(one) == directory_identity(other)) is same


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://CA.test:14000/dir", "ca.test"),
        ("https://192.0.2.1/dir", "192.0.2.1"),
        ("https://[2001:db8::1]/dir", None),
        (f"https://{'a' * 64}/", "a" * 64),
        (f"https://{'a' * 65}/", None),
    ],
)
def test_authority_is_called_by_its_host(url: str, name: str | None) -> None:
    assert default_authority_name(url) == name


@pytest.mark.parametrize("name", ["a", "9", "Let-s_Encrypt.2", "a" * 64])
def test_authority_name_is_accepted_when_it_is_one_plain_word(name: str) -> None:
    assert read_authority_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "a\n", "é", "\u0661", "a" * 65])
def test_authority_name_is_refused_in_any_other_form(name: str) -> None:
    with pytest.raises(ValueError, match=r"^must be 1 to 64 "):
        read_authority_name(name)


@pytest.mark.parametrize(
    "contact", ["ops@example.test", "mailto:", "mailto:a@b?x=y", "mailto:a@b,c@d"]
)
def test_contact_is_refused_unless_one_mail_address(contact: str) -> None:
    with pytest.raises(ValueError, match="must be mailto:"):
        read_contact(contact)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "gateway.test"])  # noqa: S104
def test_other_hosts_are_no_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://ca.example", "https://ca.example:443"),
        ("https://CA.example:8443/", "https://ca.example:8443"),
        ("https://[2001:db8::1]", "https://[2001:db8::1]:443"),
    ],
)
def test_origin_is_read_as_it_is_compared(text: str, origin: str) -> None:
    assert read_origin(text) == origin
    assert origin_of(f"{text.rstrip('/')}/order/1") == origin


@pytest.mark.parametrize(
    "text", ["http://ca.example", "https://ca.example/x", "https://u@ca.example", "https://", "ca"]
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="https:// and a host"):
        read_origin(text)
