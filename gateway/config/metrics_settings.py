"""The settings of the figures for Prometheus: where they are shown, and how often all is counted.

Must not: read files; see `settings`.
"""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from gateway.config.tables import Number, Table, refuse_other_than_text
from gateway.config.values import Address, is_loopback, read_address


class MetricsSettings(Table):
    """Without `listen` nothing is shown, and nothing is counted over all hostnames."""

    allow_beyond_loopback: bool = False  # before `listen`, which it is about
    listen: Address | None = None
    census_seconds: Annotated[int, Number, Field(ge=1, le=86_400)] = 60

    @field_validator("listen", mode="before")
    @classmethod
    def _read_listen(cls, value: object, info: ValidationInfo) -> Address | None:
        if value is None:
            return None
        address = read_address(refuse_other_than_text(value), None)
        if not is_loopback(address.host) and not info.data.get("allow_beyond_loopback", True):
            raise ValueError(
                "must be a loopback address: it is plain HTTP without a token; set "
                "metrics.allow_beyond_loopback = true where others may read it"
            )
        return address
