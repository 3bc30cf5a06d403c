"""What differs between a file's clients and claims and those there are: pure.

The order of patterns, prefixes and capabilities means nothing, so it is no difference: a policy
that says the same keeps its generation. What the file does not name is removed only when it is
pruned, and nothing of a kind that the file does not speak of at all.

Called by `gateway clients apply`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gateway.access.clients import Client
    from gateway.access.declared import Declared, DeclaredClaim
    from gateway.contract import ClientSpec
    from gateway.contract.names import ClientId, Hostname


class Action(StrEnum):
    """What is to be done."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


class Detail(NamedTuple):
    """What one field gains and loses, in the words of the file."""

    field: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientStep:
    """What is to be done with one client. `held` is what a client to be removed holds."""

    action: Action
    client_id: ClientId
    spec: ClientSpec | None
    details: tuple[Detail, ...] = ()
    held: tuple[Hostname, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimStep:
    """What is to be done with one claim."""

    action: Action
    hostname: Hostname
    note: str = ""
    details: tuple[Detail, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """All that differs. `left_clients` and `left_claims` are not in the file and stay."""

    clients: tuple[ClientStep, ...]
    claims: tuple[ClaimStep, ...]
    left_clients: tuple[ClientId, ...] = ()
    left_claims: tuple[Hostname, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.clients and not self.claims

    def count(self, action: Action) -> int:
        """How many clients and claims this is to be done with."""
        actions = [step.action for step in self.clients] + [step.action for step in self.claims]
        return actions.count(action)


def difference(
    declared: Declared,
    clients: Sequence[Client],
    claims: Mapping[Hostname, str],
    held: Mapping[ClientId, Sequence[Hostname]],
    *,
    prune: bool,
) -> Difference:
    """What is to be done so that all is as declared.

    `claims` are the notes of those there are; `held` is what clients hold, of those at least that
    `unnamed_clients` answers.
    """
    unnamed = unnamed_clients(declared, clients)
    unclaimed = _unnamed_claims(declared, claims)
    client_steps = _client_steps(declared.clients or (), clients)
    claim_steps = _claim_steps(declared.claims or (), claims)
    if not prune:
        return Difference(tuple(client_steps), tuple(claim_steps), tuple(unnamed), tuple(unclaimed))
    removed = [
        ClientStep(Action.REMOVE, client_id, None, held=tuple(held.get(client_id, ())))
        for client_id in unnamed
    ]
    taken_back = [ClaimStep(Action.REMOVE, hostname, claims[hostname]) for hostname in unclaimed]
    # Claims are refused on what a client holds, so those come last, and first what makes room.
    return Difference((*client_steps, *removed), (*taken_back, *claim_steps))


def unnamed_clients(declared: Declared, clients: Iterable[Client]) -> list[ClientId]:
    """The clients that the file does not name though it speaks of clients."""
    if declared.clients is None:
        return []
    named = {spec.client_id for spec in declared.clients}
    return sorted(client.client_id for client in clients if client.client_id not in named)


def _unnamed_claims(declared: Declared, claims: Mapping[Hostname, str]) -> list[Hostname]:
    if declared.claims is None:
        return []
    return sorted(claims.keys() - {claim.hostname for claim in declared.claims})


def _client_steps(specs: Sequence[ClientSpec], clients: Sequence[Client]) -> list[ClientStep]:
    present = {client.client_id: client for client in clients}
    steps = []
    for spec in specs:
        client = present.get(spec.client_id)
        details = _details(spec, client)
        if client is None:
            steps.append(ClientStep(Action.ADD, spec.client_id, spec, details))
        elif details:
            steps.append(ClientStep(Action.CHANGE, spec.client_id, spec, details))
    return steps


def _details(spec: ClientSpec, client: Client | None) -> tuple[Detail, ...]:
    """The fields that differ; of a new client all that say something."""
    there = client
    pairs = (
        ("type", [spec.client_type], [there.client_type] if there else []),
        ("patterns", spec.hostname_patterns, there.hostname_patterns if there else ()),
        (
            "allow",
            spec.allowed_dns_record_addresses,
            there.allowed_dns_record_addresses if there else (),
        ),
        ("capabilities", spec.capabilities, there.capabilities if there else ()),
    )
    details = (
        Detail(name, tuple(sorted(set(wanted) - set(has))), tuple(sorted(set(has) - set(wanted))))
        for name, wanted, has in pairs
    )
    return tuple(detail for detail in details if detail.added or detail.removed)


def _claim_steps(
    declared: Sequence[DeclaredClaim], claims: Mapping[Hostname, str]
) -> list[ClaimStep]:
    steps = []
    for claim in declared:
        note = claims.get(claim.hostname)
        if note is None:
            steps.append(ClaimStep(Action.ADD, claim.hostname, claim.note))
        elif note != claim.note:
            details = (Detail("note", (claim.note,), (note,)),)
            steps.append(ClaimStep(Action.CHANGE, claim.hostname, claim.note, details))
    return steps
