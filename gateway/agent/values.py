"""The values of `agent.toml` that the wire does not know: what keeps each from being used.

Each check takes any value and answers a phrase that goes on after the key ("must be …"), or None.
Pure: nothing is looked up. A URL is read by httpx, as the client will read it.

Called by `gateway.agent.config`.
"""

from __future__ import annotations

import re
from typing import Final

import httpx

from gateway.client.exchange import PATH, is_loopback
from gateway.contract.faults import described, quoted

_MAX_ID: Final = 2**32 - 2  # the one after it means "leave it as it is" to the kernel
_DIGITS: Final = re.compile(r"[0-9]+")
_INTERFACE: Final = re.compile(r"[!-.0-~]{1,15}")
_PORTS: Final = 65_536
# What stands before an @ may be a password, so the value is never shown.
_URL_FORM: Final = "must be https://HOST or https://HOST:PORT"


def text_fault(value: object) -> str | None:
    """What keeps a value from being text with something in it."""
    if not isinstance(value, str):
        return f"must be text, not {described(value)}"
    if "\0" in value:
        return "must not hold a NUL"
    return None if value.strip() else "must not be empty"


def words_fault(value: object) -> str | None:
    """What keeps a value from being a command as a list: its program, then its arguments."""
    if not isinstance(value, list):
        return f"must be a list: the program, then its arguments, not {described(value)}"
    if not value:
        return "must not be empty"
    for word in value:
        if not isinstance(word, str) or "\0" in word:
            return f"must be a list of texts, and one of them is {described(word)}"
    return None if value[0].strip() else "must begin with a program"


def url_fault(value: object, *, allow_plain_http: bool) -> str | None:
    """What keeps a value from being the gateway's URL."""
    if (fault := text_fault(value)) is not None:
        return fault
    if "@" in str(value) or not str(value).isprintable() or " " in str(value):
        return _URL_FORM
    try:
        url = httpx.URL(str(value))
        port = 1 if url.port is None else url.port
        is_whole = url.scheme in ("https", "http") and bool(url.host) and 0 < port < _PORTS
    except (httpx.InvalidURL, ValueError):  # idna's own errors, for `xn--`, are the latter
        return _URL_FORM
    if not is_whole or url.query or url.fragment:
        return _URL_FORM
    if url.path not in ("", "/", PATH):
        return f"{_URL_FORM}, without the path {quoted(url.path)}"
    if url.scheme == "http" and not (allow_plain_http or is_loopback(url.host)):
        return "must begin with https://: a token is sent in clear unless allow_plain_http is true"
    return None


def credential_fault(value: object) -> str | None:
    """What keeps a value from being the name of a systemd credential, which is a file's."""
    fault = text_fault(value)
    if fault is None and ("/" in str(value) or str(value) in (".", "..")):
        return f"must be the name of a systemd credential, not {described(value)}"
    return fault


def interface_fault(value: object) -> str | None:
    """What keeps a value from being a network interface's name; whether it exists can change."""
    fault = text_fault(value)
    if fault is None and _INTERFACE.fullmatch(str(value)) is None:
        return f"must be the name of a network interface, not {described(value)}"
    return fault


def textfile_fault(value: object) -> str | None:
    """What keeps a value from being the path of a textfile: node-exporter goes by its ending."""
    fault = text_fault(value)
    if fault is None and not str(value).endswith(".prom"):
        return f"must end in .prom, or node-exporter passes it by, not {described(value)}"
    return fault


def principal_fault(value: object, kind: str) -> str | None:
    """What keeps a value from being the name or number of a `kind`: a user or a group."""
    if type(value) is int or (type(value) is str and _DIGITS.fullmatch(value)):
        # As the number is written, so that nothing with too many digits is made a number of.
        written = str(value) if type(value) is str else described(value).removeprefix("the number ")
        if len(written) <= len(str(_MAX_ID)) and written.isdigit() and int(written) <= _MAX_ID:
            return None
        return f"must be a {kind}'s number, from 0 to {_MAX_ID}, not {described(value)}"
    fault = text_fault(value)
    return None if fault is None else f"must be the name or number of a {kind}: {fault}"
