"""Whose record it is: the three names that the owner marker is bound to."""

from dataclasses import dataclass

from gateway.contract.names import AppId, ClientId, Hostname


@dataclass(frozen=True, slots=True)
class Owner:
    """One ownership (contract, section 3). The client comes from the credential."""

    client_id: ClientId
    app_id: AppId
    hostname: Hostname
