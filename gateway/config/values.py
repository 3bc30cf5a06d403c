"""The values of a configuration: one reader for each kind, from the text in the file.

Each reader takes what a person wrote and returns the value or raises ValueError with a phrase that
goes on after the key: "must be …". The phrase never repeats the value: `config.faults` appends it
where it may be shown. No I/O. Called by the models in `config.settings`.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from gateway.store.places import read_place

MIN_SECRET_BYTES = 16
EMBEDDED = "embedded"

_MAX_NAME_LENGTH = 253
_MAX_PORT = 65535
_MAPPED_LENGTH = 96
_HTTPS_PORT = 443
_SHA256_HEX = re.compile(r"[0-9a-f]{64}")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_AUTHORITY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAILBOX = re.compile(r"mailto:[^@?,\s]+@[^@?,\s]+")
_BRACKETED = re.compile(r"\[(?P<host>[^\]]*)\](:(?P<port>.*))?", re.DOTALL)


class Address(NamedTuple):
    """Where a server is: an IP literal (IPv6 without brackets) or a name, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def read_address(text: str, default_port: int | None) -> Address:
    """Read `host:port`, `[v6]:port`, `host` or a bare IPv6 literal.

    Without a default the port must be there.
    """
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        host, port = bracketed["host"], bracketed["port"]
        if not _is_ip(host, version=6):
            raise ValueError("must have an IPv6 address in its brackets")
    elif _is_ip(text, version=6):
        host, port = text, None
    else:
        host, separator, digits = text.partition(":")
        port = digits if separator else None
        if not _is_host(host):
            raise ValueError("must be host:port or [IPv6 address]:port")
    if port is None:
        if default_port is None:
            raise ValueError("must end in a port, such as :8053")
        return Address(host, default_port)
    return Address(host, _read_port(port))


def read_dns_name(text: str) -> str:
    """Read the name of a zone or of a TSIG key: lower case, no trailing dot, `_` allowed."""
    if text != text.lower() or (text.endswith(".") and text != "."):
        raise ValueError("must be in lower case and without a trailing dot")
    if not _is_name(text):
        raise ValueError("must be a DNS name")
    return text


def read_base64_secret(text: str) -> bytes:
    """Read a TSIG secret: standard base64 of at least MIN_SECRET_BYTES bytes."""
    try:
        secret = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(
            "must be the base64 secret alone: what tsig-keygen prints between quotes"
        ) from None
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError(f"must be at least {MIN_SECRET_BYTES} bytes long; these are {len(secret)}")
    return secret


def read_base64url_secret(text: str) -> str:
    """Check an EAB HMAC key: base64url with or without padding. Returned as it was written."""
    if re.fullmatch(r"[A-Za-z0-9_-]+={0,2}", text) is None:
        raise ValueError("must be base64url, as the certificate authority gave it")
    try:
        key = base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except binascii.Error:
        raise ValueError("must be base64url, as the certificate authority gave it") from None
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError(f"must be at least {MIN_SECRET_BYTES} bytes long; these are {len(key)}")
    return text


def read_token_digest(text: str) -> str:
    """Read the SHA-256 of an admin token: 64 lower-case hex digits."""
    if text.startswith("gwa_"):
        raise ValueError("is a token itself: only its SHA-256 belongs here, in hex")
    if _SHA256_HEX.fullmatch(text) is None:
        raise ValueError("must be a SHA-256 as 64 lower-case hex digits")
    return text


def read_redis_url(text: str) -> str:
    """Read `embedded`, or a URL in one of the forms of `store.places`."""
    if text != EMBEDDED:
        read_place(text)
    return text


def read_directory_url(text: str) -> str:
    """Read the URL of an ACME directory. RFC 8555 section 6.1 wants HTTPS."""
    try:
        url = urlsplit(text)
        is_usable = url.scheme == "https" and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError("must be an https:// URL")
    return text


def read_origin(text: str) -> str:
    """Read an origin as `https://host:port`, from a URL without a path."""
    try:
        url = urlsplit(text)
        port, host = url.port or _HTTPS_PORT, url.hostname
        is_usable = url.scheme == "https" and bool(host) and url.path in ("", "/")
        is_usable = is_usable and not (url.query or url.fragment or url.username)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError("must be https:// and a host, such as https://files.ca.example.org")
    return f"https://[{host}]:{port}" if ":" in str(host) else f"https://{host}:{port}"


def read_collector_url(text: str) -> str:
    """Read the base URL of an OTLP collector, without a slash at its end."""
    try:
        url = urlsplit(text)
        is_usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        is_usable = is_usable and not (url.query or url.fragment or url.username)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError("must be a URL, such as http://127.0.0.1:4318")
    if url.path.rstrip("/").endswith("/v1/traces"):
        raise ValueError("must be without /v1/traces, which is added")
    return text.rstrip("/")


def directory_identity(url: str) -> str:
    """What two URLs of one ACME directory have in common (RFC 3986 section 6.2): to compare by."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port in (None, _HTTPS_PORT) else f":{parts.port}"
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path or '/'}?{parts.query}"


def default_authority_name(directory_url: str) -> str | None:
    """What an authority is called that has no name: the host of its directory, in lower case.

    None when that cannot be a name: an IPv6 address, a very long one.
    """
    host = urlsplit(read_directory_url(directory_url)).hostname or ""
    return host if _AUTHORITY_NAME.fullmatch(host) else None


def read_authority_name(text: str) -> str:
    """Read what an authority is called: a word for command lines and for the parts of `/readyz`."""
    if _AUTHORITY_NAME.fullmatch(text) is None:
        raise ValueError(
            "must be 1 to 64 of the characters A-Z a-z 0-9 . _ - and begin with a letter or digit"
        )
    return text


def read_contact(text: str) -> str:
    """Read a contact of an ACME account: `mailto:` and one address."""
    if _MAILBOX.fullmatch(text) is None:
        raise ValueError("must be mailto: and one address, such as mailto:ops@example.org")
    return text


def read_prefix(value: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Read a prefix of addresses, or one address: `10.0.0.0/8`, `2001:db8::1`."""
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text")
    _, slash, length = value.partition("/")
    try:
        if slash and not (length.isascii() and length.isdigit()):
            raise ValueError("a netmask")  # which of two kinds, nobody can tell for all of them
        network = ipaddress.ip_network(value)
    except ValueError:
        raise ValueError(
            "must be an address, or a prefix without bits behind its length, such as 10.0.0.0/8"
        ) from None
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= _MAPPED_LENGTH:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:  # callers' addresses are never in this spelling
            return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_LENGTH))
    return network


def is_loopback(host: str) -> bool:
    """Whether a listener at this host is reached from this machine only."""
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def _read_port(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:6]) <= _MAX_PORT):
        raise ValueError(f"must have a port from 1 to {_MAX_PORT}")
    return int(digits)


def _is_ip(text: str, version: int | None = None) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return version is None or address.version == version


def _is_host(text: str) -> bool:
    # A name whose last label is all digits is a mistyped IPv4 address.
    return _is_ip(text) or (_is_name(text) and not text.rpartition(".")[2].isdigit())


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_NAME_LENGTH and all(map(_LABEL.fullmatch, text.split(".")))
