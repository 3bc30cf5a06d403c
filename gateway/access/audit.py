"""What the audit trail is told of callers, their refused calls and changes of clients. Pure.

Called by `access.calls` and `access.provisioning`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from gateway.access.gate import ClientCaller
from gateway.contract.hostnames import hostname_fault
from gateway.store.deeds import Action, Actor, Deed, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway.access.clients import Client
    from gateway.access.gate import Caller
    from gateway.contract import CallError
    from gateway.contract.names import ClientId, CredentialId

_OF_METHOD: Final = {
    "syncGatewayClientDnsRecord": Action.RECORD_SYNC,
    "getGatewayClientCertificate": Action.CERTIFICATE_REQUEST,
    "releaseGatewayClientCertificate": Action.CERTIFICATE_RELEASE,
    "provisionGatewayClientCredential": Action.CLIENT_PROVISION,
}
"""The methods that may change something."""

_OF_PROVISIONING: Final = {
    "ensure": Action.CLIENT_ENSURE,
    "rotate": Action.CLIENT_ROTATE,
    "revoke": Action.CLIENT_REVOKE,
    "remove": Action.CLIENT_REMOVE,
}

_SHOWN_AT_MOST: Final = 8


def actor_of(caller: Caller) -> Actor:
    """Who acts when this caller's call is carried out."""
    if isinstance(caller, ClientCaller):
        return _client(caller.credential_id, caller.client.client_id)
    return _ADMIN


_ADMIN: Final = Actor(Role.ADMIN)


@lru_cache(1_024)
def _client(credential_id: CredentialId, client_id: ClientId) -> Actor:
    return Actor(Role.CLIENT, credential_id, client_id)


def of_refused_call(
    caller: Caller, method_name: str, parameters: Mapping[str, object], refusal: CallError
) -> Deed | None:
    """A call that its caller may not make; None where it would have changed nothing."""
    action = _OF_METHOD.get(method_name)
    if action is None:
        return None
    return Deed(
        action,
        refusal.code,
        changed=False,
        hostname=_hostname_in(parameters),
        client_id=caller.client.client_id if isinstance(caller, ClientCaller) else None,
        detail=refusal.text,
    )


def of_provisioning(action: str, before: Client | None, after: Client) -> Deed:
    """A client created, or changed in its policy or its credentials."""
    newest = after.credentials[-1] if after.credentials else None
    is_new = newest is not None and newest not in (before.credentials if before else ())
    return Deed(
        _OF_PROVISIONING[action],
        "created" if before is None else "changed",
        client_id=after.client_id,
        credential_id=newest.credential_id if newest is not None and is_new else None,
        before=None if before is None else _policy(before, unlike=after),
        after=_policy(after, unlike=before),
        detail=f"policy generation {after.policy_generation}, {_credentials(after)}",
    )


def of_removal(client: Client) -> Deed:
    """A client removed with its credentials."""
    return Deed(
        Action.CLIENT_REMOVE,
        "removed",
        client_id=client.client_id,
        before=_policy(client, unlike=None),
    )


def of_refused_provisioning(action: str, client_id: ClientId, why: str) -> Deed:
    """A change of a client that was refused."""
    refused = _OF_PROVISIONING[action]
    return Deed(refused, "refused", changed=False, client_id=client_id, detail=why)


def _hostname_in(parameters: Mapping[str, object]) -> str | None:
    """The hostname that a request names: it may have been refused before it was read."""
    ownership = parameters.get("ownership")
    hostname = ownership.get("hostname") if type(ownership) is dict else None
    return hostname if type(hostname) is str and hostname_fault(hostname) is None else None


def _policy(client: Client, *, unlike: Client | None) -> str | None:
    """The policy in one line; of two policies what differs, None where nothing does."""
    told = [
        f"{name}: {_listed(value)}"
        for name, value in _policy_of(client).items()
        if unlike is None or _policy_of(unlike)[name] != value
    ]
    return "; ".join(told) or None


def _policy_of(client: Client) -> dict[str, Any]:
    return {
        "type": (client.client_type,),
        "hostnames": client.hostname_patterns,
        "addresses": client.allowed_dns_record_addresses,
        "capabilities": tuple(sorted(client.capabilities)),
    }


def _listed(values: Iterable[str]) -> str:
    shown = list(values)
    more = len(shown) - _SHOWN_AT_MOST
    rest = [f"and {more} more"] if more > 0 else []
    return ", ".join([*shown[:_SHOWN_AT_MOST], *rest]) or "none"


def _credentials(client: Client) -> str:
    count = len(client.credentials)
    return "1 credential" if count == 1 else f"{count} credentials"
