"""Domain names: from the text that the gateway stores to dnspython's labels and back.

Responsible for the one spelling outside this package (no trailing dot) and for walking up from a
name to its zone's apex. Must not judge hostnames: that is the contract's. Used by all of `dns`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import dns.exception
import dns.name

CHALLENGE_LABEL: Final = "_acme-challenge"
"""The label before a hostname that makes the name of its challenge record (RFC 8555, 8.4)."""


_PLAIN: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")
_MOST_CHARACTERS: Final = 253


def is_plain(text: str) -> bool:
    """Is it a name as hostnames and zones are: small letters, digits, hyphens, no trailing dot?

    Such a one is read and written without dnspython's look at each character, a fifth of the time.
    """
    return len(text) <= _MOST_CHARACTERS and _PLAIN.fullmatch(text) is not None


@lru_cache(1024)
def to_name(text: str) -> dns.name.Name:
    """An absolute name from text with or without a trailing dot.

    Raises: ValueError when it is no domain name, e.g. longer than 253 characters.
    """
    if is_plain(text):
        return dns.name.Name((*text.encode("ascii").split(b"."), b""))
    try:
        return dns.name.from_text(text, origin=dns.name.root)
    except dns.exception.DNSException as fault:
        raise ValueError(f"not a domain name: {type(fault).__name__}") from fault


def to_text(name: dns.name.Name) -> str:
    """A name in lower case without the trailing dot; odd characters escaped as in zone files."""
    labels = name.labels
    text = b".".join(labels[:-1]).decode("latin-1").lower()
    # A dot within a label must not pass for one between two.
    if labels and not labels[-1] and text.count(".") == len(labels) - 2 and is_plain(text):
        return text
    return name.canonicalize().to_text(omit_final_dot=True)


def upwards(name: dns.name.Name, apex: dns.name.Name) -> Iterator[dns.name.Name]:
    """`name`, its parent and so on, up to but without `apex`, which it lies below."""
    labels = name.labels
    for first in range(len(labels) - len(apex.labels)):
        yield _name_of(labels[first:]) if first else name


@lru_cache(1024)
def _name_of(labels: tuple[bytes, ...]) -> dns.name.Name:
    """Names above hostnames are few, and a name takes time to be made."""
    return dns.name.Name(labels)
