"""The settings of limits: what one client may have, and what nobody may take from the others.

Must not: read files; see `settings`. Everywhere, 0 means no limit.
"""

from typing import NamedTuple

from pydantic import Field, field_validator

from gateway.config.tables import Figure, Table
from gateway.contract.faults import quoted
from gateway.contract.identifiers import client_id_fault


class ClientLimitSettings(Table):
    """What one client may have instead of what all may; None leaves that as it is."""

    calls_per_minute: Figure | None = None
    records: Figure | None = None
    certificates: Figure | None = None


_NOTHING_OF_ITS_OWN = ClientLimitSettings()


class ClientLimits(NamedTuple):
    """What one client may have."""

    calls_per_minute: int
    records: int
    certificates: int


class LimitSettings(Table):
    """The limits; the first three are each client's, over all processes and credentials.

    `clients` has those with limits of their own, by id. The others are one process's.
    """

    calls_per_minute: Figure = 1200
    records: Figure = 0
    certificates: Figure = 0
    clients: dict[str, ClientLimitSettings] = Field(default_factory=dict)
    unauthenticated_per_minute: Figure = 60
    unauthenticated_per_second: Figure = 200
    concurrent_calls: Figure = 512
    concurrent_calls_per_credential: Figure = 64

    @field_validator("clients", mode="after")
    @classmethod
    def _check_ids(cls, value: dict[str, ClientLimitSettings]) -> dict[str, ClientLimitSettings]:
        for client_id in value:
            if client_id_fault(client_id) is not None:
                raise ValueError(f"must have tables by client id, and {quoted(client_id)} is none")
        return value

    def of(self, client_id: str) -> ClientLimits:
        """The limits of one client."""
        own = self.clients.get(client_id, _NOTHING_OF_ITS_OWN)
        return ClientLimits(
            self.calls_per_minute if own.calls_per_minute is None else own.calls_per_minute,
            self.records if own.records is None else own.records,
            self.certificates if own.certificates is None else own.certificates,
        )
