"""What the audit trail tells: deeds, who did them, and both together as an entry with its JSON.

Responsible for the shapes, and for what every text in an entry is put through: cut to a length,
without control characters, a token or a private key cut out, whoever put one there. Must not: know
Redis, clocks or which deeds there are. Who acts is bound to the context (`acting_as`), as the
request id and the remote address are for the log, so that a rule deep below tells what it did and
not for whom.

Called by `store.trail` and by whoever has done something worth an entry.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from gateway.contract.faults import plain

if TYPE_CHECKING:
    from types import TracebackType

_LONGEST_TEXT: Final = 400
_WRITTEN: Final = json.JSONEncoder(separators=(",", ":")).encode


class Action(StrEnum):
    """What was done, or refused."""

    RECORD_SYNC = "record-sync"
    CERTIFICATE_REQUEST = "certificate-request"
    CERTIFICATE_ISSUED = "certificate-issued"
    CERTIFICATE_RENEWED = "certificate-renewed"
    CERTIFICATE_FAILED = "certificate-failed"
    CERTIFICATE_RELEASE = "certificate-release"
    CERTIFICATE_RETRY = "certificate-retry"
    KEY_HANDED_OUT = "key-handed-out"
    CLIENT_ENSURE = "client-ensure"
    CLIENT_ROTATE = "client-rotate"
    CLIENT_REVOKE = "client-revoke"
    CLIENT_REMOVE = "client-remove"
    CLIENT_PROVISION = "client-provision"
    """Refused before it was read which of those it was."""

    CLAIM_ADD = "claim-add"
    CLAIM_REMOVE = "claim-remove"
    HAND_OVER = "hand-over"
    FORGET = "forget"
    REBUILD = "rebuild"
    RESEAL = "reseal"
    BACKUP = "backup"
    RESTORE = "restore"
    ACCOUNT_ROLLOVER = "account-rollover"
    ACCOUNT_CONTACT = "account-contact"
    ACCOUNT_REPLACE = "account-replace"
    PAGE_LOGIN = "page-login"
    PAGE_LOGOUT = "page-logout"
    ENTRIES_LOST = "entries-lost"


class Role(StrEnum):
    """In which role somebody acts."""

    CLIENT = "client"
    ADMIN = "admin"
    OPERATOR = "operator"
    WORKER = "worker"
    PROCESS = "process"
    VISITOR = "visitor"
    """Somebody who has not shown who he is."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a client by its credential, an operator by the OS user, a worker by its name."""

    role: Role
    name: str = ""
    client_id: str | None = None
    remote: str | None = None
    """Where an operator's command runs; a call's own address is the context's."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that was done or refused, and to what.

    `client_id` and `app_id` are whose it is, `credential_id` the credential that was made.
    Without `changed`, nothing came of it: the same from the same actor is told once in a while.
    """

    action: Action
    outcome: str
    changed: bool = True
    hostname: str | None = None
    client_id: str | None = None
    app_id: str | None = None
    credential_id: str | None = None
    before: str | None = None
    after: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A deed as it is written down. `at_ms` is epoch milliseconds by Redis's clock.

    `repeated`: how many times more it was tried since it was last written down.
    """

    entry_id: str
    at_ms: int
    actor: Actor
    deed: Deed
    remote: str | None = None
    request_id: str | None = None
    repeated: int = 0

    def to_json(self) -> dict[str, Any]:
        """As JSON values, without what is not known; never a secret."""
        deed, actor = self.deed, self.actor
        told: dict[str, str | int | None] = {
            "at": self.at_ms,
            "who": actor.role.value,
            "name": actor.name or None,
            "ofClient": actor.client_id,
            "remote": self.remote,
            "requestId": self.request_id,
            "what": deed.action.value,
            "outcome": deed.outcome,
            "hostname": deed.hostname,
            "clientId": deed.client_id,
            "appId": deed.app_id,
            "credentialId": deed.credential_id,
            "before": deed.before,
            "after": deed.after,
            "detail": deed.detail,
            "repeated": self.repeated or None,
        }
        return {
            name: plain(value, _LONGEST_TEXT) if type(value) is str else value
            for name, value in told.items()
            if value is not None
        }

    def to_text(self) -> str:
        """The JSON in one line of ASCII."""
        return _WRITTEN(self.to_json())


_ACTOR: Final[ContextVar[Actor | None]] = ContextVar("actor", default=None)


class acting_as:  # noqa: N801 (used as a function is)
    """Have all that is done in this context be the actor's doing."""

    __slots__ = ("_actor", "_token")

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __enter__(self) -> None:
        self._token = _ACTOR.set(self._actor)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ACTOR.reset(self._token)


def acting() -> Actor | None:
    """Who acts in this context."""
    return _ACTOR.get()
