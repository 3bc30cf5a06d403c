"""Which CA, and who we are there.

Called by the wiring, which makes it of the configuration.
"""

from dataclasses import dataclass, field
from pathlib import Path

from gateway.certificates.authority.signing import ExternalAccountBinding


@dataclass(frozen=True, slots=True)
class AuthoritySettings:
    """Which CA, and who we are there; `eab_hmac_key` is base64url, as CAs hand it out.

    `name` is what the operator calls it. `profile` is sent with every order; `preferred_chain` is
    the common name of the issuer at the top of the chain that is wanted where the CA offers
    several.
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

    @property
    def binding(self) -> ExternalAccountBinding | None:
        """The external account binding, None when it isn't configured."""
        if self.eab_key_id is None or self.eab_hmac_key is None:
            return None
        return ExternalAccountBinding(self.eab_key_id, self.eab_hmac_key)
