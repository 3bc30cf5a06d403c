"""Registered domains: the part of a hostname that somebody registered, by the Public Suffix List.

CAs count certificates for it. The list comes with the library `publicsuffixlist` (a release
whenever the list changes), so nothing is fetched at run time. Its private section counts, as it
does for Let's Encrypt: `a.github.io` is a registered domain of its own.
"""

from __future__ import annotations

from functools import cache

from publicsuffixlist import PublicSuffixList


def registered_domain(hostname: str) -> str:
    """The registered domain of a hostname (lower case, A-labels, no trailing dot).

    A hostname that is a public suffix itself is its own; a top-level domain that the list does not
    know counts as a public suffix, as the list's own rules have it.
    """
    return _public_suffixes().privatesuffix(hostname) or hostname


@cache
def _public_suffixes() -> PublicSuffixList:
    # Reading the list takes tens of milliseconds: once a process.
    return PublicSuffixList()
