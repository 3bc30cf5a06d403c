"""Who a hostname is asked for: `{ appId, hostname }`.

Responsible for the object; the client that completes an ownership comes from the credential, never
from the request. Used by the requests and by clients.
"""

from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, Self

from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.hostnames import hostname_fault
from gateway.contract.identifiers import app_id_fault
from gateway.contract.names import AppId, Hostname
from gateway.contract.schema import WireModel, exactly, read_request, violations

_LONGEST: Final = BOUNDS.max_app_id_characters + BOUNDS.max_hostname_characters


class Ownership(WireModel):
    """The part of an ownership that a client states."""

    app_id: Annotated[AppId, exactly(app_id_fault)]
    hostname: Annotated[Hostname, exactly(hostname_fault)]

    @classmethod
    def of(cls, app_id: str, hostname: str) -> Self:
        """The ownership of these two; raises `RequestInvalid` with every violation."""
        return read_request(cls, {"appId": app_id, "hostname": hostname})


class StatedOwnership(NamedTuple):
    """An `Ownership` that was judged without pydantic."""

    app_id: AppId
    hostname: Hostname


def ownership_in(parameters: dict[str, object]) -> StatedOwnership | None:
    """The ownership of a request of JSON values that has exactly this one key, and it in order.

    None where there is anything to say against it, which the request's model does. It takes a third
    of the model's time.
    """
    return stated_ownership(parameters.get("ownership")) if len(parameters) == 1 else None


def stated_ownership(stated: object) -> StatedOwnership | None:
    """The ownership that a JSON value spells in order; None as in `ownership_in`."""
    if type(stated) is not dict or len(stated) != 2:
        return None
    app_id: Any = stated.get("appId")
    hostname: Any = stated.get("hostname")
    if type(app_id) is not str or type(hostname) is not str:
        return None
    return _in_order(app_id, hostname) if len(app_id) + len(hostname) <= _LONGEST else None


@lru_cache(1_024)
def _in_order(app_id: str, hostname: str) -> StatedOwnership | None:
    """The ownership of these two; None where one is not in order.

    The same come again and again: to judge them each time was 4% of a ready certificate's call.
    """
    if app_id_fault(app_id) is not None or hostname_fault(hostname) is not None:
        return None
    return StatedOwnership(AppId(app_id), Hostname(hostname))


def validate_gateway_client_hostname_ownership(value: object, path: str = "ownership") -> list[str]:
    """Every violation of an ownership, each beginning with its path; none means it is valid."""
    return violations(Ownership, value, path)
