"""Which CA, and who we are there.

Called by the wiring, which makes it of the configuration.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway.certificates.authority.signing import ExternalAccountBinding

_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class AuthoritySettings:
    """Which CA, and who we are there; `eab_hmac_key` is base64url, as CAs hand it out.

    `name` is what the operator calls it. `profile` is sent with every order; `preferred_chain` is
    the common name of the issuer at the top of the chain that is wanted where the CA offers
    several. `origins` are others than the directory's that the CA's URLs may have.
    """

    directory_url: str
    ca_bundle: Path | None
    contact: tuple[str, ...]
    eab_key_id: str | None
    eab_hmac_key: str | None = field(repr=False)
    user_agent: str
    name: str
    profile: str | None = None
    preferred_chain: str | None = None
    origins: tuple[str, ...] = ()

    @property
    def binding(self) -> ExternalAccountBinding | None:
        """The external account binding, None when it isn't configured."""
        if self.eab_key_id is None or self.eab_hmac_key is None:
            return None
        return ExternalAccountBinding(self.eab_key_id, self.eab_hmac_key)


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL (RFC 6454, section 4), as one text to compare by.

    Of what is no URL, the text itself, which is no origin.
    """
    end = url.find("/", url.find("//") + 2)
    return _origin_of(url if end < 0 else url[:end])


@lru_cache(maxsize=64)
def _origin_of(beginning: str) -> str:
    """The same of a URL without its path: a CA's many URLs have few of those."""
    try:
        parts = urlsplit(beginning)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return beginning
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"
