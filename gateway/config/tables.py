"""What the tables of the settings are made of: their base, and values that several of them hold.

Pure. Used by `settings`, `zone_settings` and `authority_settings`.
"""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from gateway.config.values import read_dns_name


def refuse_truth_values(value: object) -> object:
    """Raises ValueError."""
    # pydantic reads `true` as the number 1.
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def refuse_other_than_text(value: object) -> str:
    """Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


Number = BeforeValidator(refuse_truth_values)
Port = Annotated[int, Number, Field(ge=1, le=65535)]
Figure = Annotated[int, Number, Field(ge=0, le=1_000_000)]
DnsName = Annotated[str, AfterValidator(read_dns_name)]


class Table(BaseModel):
    """A table of the file: frozen, and no key but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
