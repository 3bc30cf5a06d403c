"""The settings of one certificate authority: its account, what is asked of it, and its budget.

Must not: read files; see `settings`.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator

from gateway.config.tables import Figure, Number, Table
from gateway.config.values import (
    read_authority_name,
    read_base64url_secret,
    read_contact,
    read_directory_url,
    read_origin,
)

KeyTypeName = Literal["ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-3072", "rsa-4096"]


class EabSettings(Table):
    """External account binding, RFC 8555 section 7.3.4."""

    key_id: Annotated[str, Field(min_length=1)]
    hidden_hmac_key: Annotated[SecretStr, Field(alias="hmac_key")]

    @field_validator("hidden_hmac_key", mode="after")
    @classmethod
    def _check_hmac_key(cls, value: SecretStr) -> SecretStr:
        read_base64url_secret(value.get_secret_value())
        return value

    @property
    def hmac_key(self) -> str:
        """The key in clear, base64url."""
        return self.hidden_hmac_key.get_secret_value()


class BudgetSettings(Table):
    """What the authority allows one account; 0 means no limit. The defaults are Let's Encrypt's.

    `reserved_for_renewals` and `client_share` are shares of the first two figures: what new names
    leave alone where renewals are counted, and what one client's new names may use of them.
    """

    orders_per_3_hours: Figure = 300
    certificates_per_domain_per_week: Figure = 50
    certificates_per_hostname_per_week: Figure = 5
    failed_validations_per_hour: Figure = 5
    renewals_are_counted: bool = False
    reserved_for_renewals: Annotated[float, Number, Field(ge=0, le=0.9)] = 0.2
    client_share: Annotated[float, Number, Field(gt=0, le=1)] = 0.5


class AcmeSettings(Table):
    """One certificate authority and what is asked of it; `name` is what people call it by.

    `renew_at` is the share of a certificate's lifetime after which its renewal starts, where the
    authority itself names no time. `profile` is one of those that its directory names,
    `preferred_chain` the common name of the root that a chain should lead to, and
    `origins` are those beside the directory's own that its URLs may have.
    """

    name: Annotated[str, AfterValidator(read_authority_name)]
    directory: Annotated[str, AfterValidator(read_directory_url)]
    profile: Annotated[str, Field(min_length=1)] | None = None
    preferred_chain: Annotated[str, Field(min_length=1)] | None = None
    origins: tuple[Annotated[str, AfterValidator(read_origin)], ...] = ()
    ca_bundle: Path | None = None
    contact: tuple[Annotated[str, AfterValidator(read_contact)], ...] = ()
    key_type: KeyTypeName = "ecdsa-p256"
    renew_at: Annotated[float, Number, Field(ge=0.1, le=0.9)] = 0.66
    eab: EabSettings | None = None
    budget: BudgetSettings = BudgetSettings()
