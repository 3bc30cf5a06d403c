"""Who a hostname is asked for: `{ appId, hostname }`.

Responsible for the object; the client that completes an ownership comes from the credential, never
from the request. Used by the requests and by clients.
"""

from typing import Annotated, Self

from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import app_id_fault
from gateway.contract.names import AppId, Hostname
from gateway.contract.schema import WireModel, exactly, read_request, violations


class Ownership(WireModel):
    """The part of an ownership that a client states."""

    app_id: Annotated[AppId, exactly(app_id_fault)]
    hostname: Annotated[Hostname, exactly(hostname_fault)]

    @classmethod
    def of(cls, app_id: str, hostname: str) -> Self:
        """The ownership of these two; raises `RequestInvalid` with every violation."""
        return read_request(cls, {"appId": app_id, "hostname": hostname})


def validate_gateway_client_hostname_ownership(value: object, path: str = "ownership") -> list[str]:
    """Every violation of an ownership, each beginning with its path; none means it is valid."""
    return violations(Ownership, value, path)
