"""Domain names: from the text that the gateway stores to dnspython's labels and back.

Responsible for the one spelling outside this package (no trailing dot) and for walking up from a
name to its zone's apex. Must not judge hostnames: that is the contract's. Used by all of `dns`.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import dns.exception
import dns.name

CHALLENGE_LABEL: Final = "_acme-challenge"
"""The label before a hostname that makes the name of its challenge record (RFC 8555, 8.4)."""


@lru_cache(1024)
def to_name(text: str) -> dns.name.Name:
    """An absolute name from text with or without a trailing dot.

    Raises: ValueError when it is no domain name, e.g. longer than 253 characters.
    """
    try:
        return dns.name.from_text(text, origin=dns.name.root)
    except dns.exception.DNSException as fault:
        raise ValueError(f"not a domain name: {type(fault).__name__}") from fault


def to_text(name: dns.name.Name) -> str:
    """A name in lower case without the trailing dot; odd characters escaped as in zone files."""
    return name.canonicalize().to_text(omit_final_dot=True)


def upwards(name: dns.name.Name, apex: dns.name.Name) -> Iterator[dns.name.Name]:
    """`name`, its parent and so on, up to but without `apex`."""
    while name != apex:
        yield name
        name = name.parent()
