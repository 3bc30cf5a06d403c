"""The chains that a CA offers for one certificate, and which of them is wanted.

Pure: headers and PEM in, an answer out (RFC 8555, 7.4.2). What can't be read is no match.

Called by `client`.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin

from cryptography import x509
from cryptography.x509.oid import NameOID

from gateway.certificates.authority.reading import is_url
from gateway.certificates.authority.replies import Reply

MAX_ALTERNATES: Final = 5

# One link: its target and, up to the next comma outside of quotes, its parameters (RFC 8288, 3).
_LINK: Final = re.compile(r'<([^<>]*)>((?:[^,"<>]|"(?:[^"\\]|\\.)*")*)')
_PARAMETER: Final = re.compile(r';\s*([^\s=;"]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+)))?')


def alternate_urls(reply: Reply, url: str) -> list[str]:
    """Answer where the other chains are of the certificate that `url` answered; a few at most."""
    found = dict.fromkeys(_alternates(reply.headers.get("link", ""), url))
    return [one for one in found if one != url][:MAX_ALTERNATES]


def leads_to(chain_pem: str, common_name: str) -> bool:
    """Answer whether the chain's topmost certificate was issued under `common_name`."""
    try:
        top = x509.load_pem_x509_certificates(chain_pem.encode())[-1]
        names = top.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    except (ValueError, TypeError):
        return False
    return any(name.value == common_name for name in names)


def _alternates(header: str, base: str) -> Iterator[str]:
    for target, parameters in _LINK.findall(header):
        named = {name.lower(): one + two for name, one, two in _PARAMETER.findall(parameters)}
        if "alternate" not in named.get("rel", "").lower().split():
            continue
        try:
            url = urljoin(base, target)
        except ValueError:
            continue
        if is_url(url):
            yield url
