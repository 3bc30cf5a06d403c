"""What the environment of a program says about its connections: whom to trust, which proxy.

Responsible for refusing what cannot be used before anything is connected to, in one sentence that
names what is at fault. Must not: show a proxy's address, which may hold a password. Used by
`exchange`.
"""

import os
import re
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.request import getproxies

import httpx

_KINDS: Final = ("https", "all", "http")
"""The kinds of proxies that httpx takes from the environment, those for a gateway first."""

_HOST: Final = re.compile(rb"[A-Za-z0-9._-]+|[A-Za-z0-9.%]*:[A-Za-z0-9.:%]+")
"""A name or an address, as httpx has it; it escapes whatever else is given for one."""

_CA_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_KEY_LOG: Final = "SSLKEYLOGFILE"


def trust(ca_file: Path | str | None) -> ssl.SSLContext:
    """The system's certificate authorities, or those of a file.

    Raises:
        ValueError: the file is none of authorities, or a variable breaks the TLS library.

    """
    if ca_file == "":  # which ssl takes for the system's
        raise ValueError("The CA file must have a name: leave it out for the system's authorities.")
    try:
        if ca_file is not None:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca_file)
    except OSError as error:  # ssl's own errors are among them
        raise ValueError(
            f"The CA file {ca_file} cannot be used: {error.strerror or error}."
        ) from None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        reason = error.strerror or error
        if os.environ.get(_KEY_LOG):
            raise ValueError(
                f"The file in ${_KEY_LOG} cannot be written: {reason}; unset that variable, or"
                " name another file."
            ) from None
        raise ValueError(f"The system's TLS library cannot be used: {reason}.") from None


def trusted_by() -> str:
    """Which variables replace the system's authorities, in a sentence; empty if none does."""
    return _listed(key for key in _CA_VARIABLES if os.environ.get(key))


def check_proxies() -> None:
    """Refuse a proxy that no call could ever go through.

    Raises:
        ValueError: one that is set is no HTTP proxy.

    """
    for kind, value in _proxies().items():
        if not _is_http_proxy(value):
            raise ValueError(
                f"The proxy in {_named(kind)} cannot be used: it must be an HTTP proxy, such as"
                " http://proxy.example.com:3128."
            )


def proxy_settings() -> str:
    """The variables about proxies, in a sentence."""
    kinds = (*_KINDS, "no")
    return _listed(key for key in os.environ if key.lower() in {f"{kind}_proxy" for kind in kinds})


def proxy_in_use() -> str:
    """The variable with the proxy for https, unless the gateway is excepted; empty if none."""
    proxies = _proxies()
    return next((_named(kind) for kind in _KINDS[:2] if kind in proxies), "")


def _proxies() -> dict[str, str]:
    """The proxies that httpx would take, by their kinds."""
    told = getproxies()
    if "*" in [each.strip() for each in told.get("no", "").split(",")]:
        return {}
    return {kind: told[kind] for kind in _KINDS if told.get(kind)}


def _is_http_proxy(value: str) -> bool:
    try:
        url = httpx.URL(value if "://" in value else f"http://{value}")
        is_host = bool(url.host) and _HOST.fullmatch(url.raw_host) is not None
    except (httpx.InvalidURL, UnicodeError):  # the latter for a name that no IDN is
        return False
    is_port = url.port is None or 0 < url.port < 65_536
    return url.scheme in ("http", "https") and is_host and is_port


def _named(kind: str) -> str:
    # In small letters it counts before the other one, as everywhere.
    names = sorted((key for key in os.environ if key.lower() == f"{kind}_proxy"), reverse=True)
    return f"${names[0]}"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"${name}" for name in names)
