"""Who a hostname is asked for: `{ appId, hostname }`.

Responsible for the object; the client that completes an ownership comes from the credential, never
from the request. Used by the requests and by clients.
"""

from typing import Annotated

from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import app_id_fault
from gateway.contract.names import AppId, Hostname
from gateway.contract.schema import WireModel, exactly, violations


class Ownership(WireModel):
    """The part of an ownership that a client states."""

    app_id: Annotated[AppId, exactly(app_id_fault)]
    hostname: Annotated[Hostname, exactly(hostname_fault)]


def validate_gateway_client_hostname_ownership(value: object, path: str = "ownership") -> list[str]:
    """Every violation of an ownership, each beginning with its path; none means it is valid."""
    return violations(Ownership, value, path)
