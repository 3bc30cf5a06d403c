"""The settings of the audit trail.

Must not: read files; see `settings`.
"""

from typing import Annotated

from pydantic import Field

from gateway.config.tables import Number, Table


class AuditSettings(Table):
    """How much of the audit trail is kept: about so many entries, none is kept with 0."""

    entries: Annotated[int, Number, Field(ge=0, le=10_000_000)] = 100_000
