"""Which key each sealed value depends on, and the same value under the first key: pure.

A document holds the private keys of its certificate and of its issuance. A worker keeps in memory
the issuance that it works on, and stores it with the sealed key that it has read: so a document
under lease is left as it is, to be moved once the lease is given up; a lease that has lapsed is
taken away in the same write, as another worker would do.

Called by `resealing` and by what else it moves.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gateway.certificates.binding import KEY_PURPOSE, key_binding
from gateway.certificates.leases import has_lapsed
from gateway.certificates.sealing import KeyMissing, SealBroken, key_id_of
from gateway.store.documents import Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.certificates.sealing import Keyring
    from gateway.store.documents import Document


class Thing(StrEnum):
    """What depends on a key of the keyring, in the words of a summary."""

    PRIVATE_KEY = "private key"
    ACCOUNT_KEY = "account key"
    MARKER = "owner marker"


@dataclass(frozen=True, slots=True)
class Found:
    """What one document or account holds, or held until it was moved.

    `things` with the id of the key that each depends on. `unopened` says what opens under no key,
    `failures` what stays where it is and why. `is_busy`: a worker has it, so come back later.
    """

    things: tuple[tuple[Thing, str], ...] = ()
    unopened: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    is_busy: bool = False

    def __add__(self, other: Found) -> Found:
        """Both together."""
        return Found(
            self.things + other.things,
            self.unopened + other.unopened,
            self.failures + other.failures,
            self.is_busy or other.is_busy,
        )

    def not_under(self, key_id: str) -> Found:
        """Without the things that depend on this key."""
        return replace(self, things=tuple(each for each in self.things if each[1] != key_id))


def look_at_document(document: Document, keyring: Keyring) -> Found:
    """The private keys that a document holds."""
    found = Found()
    for name, stored in _sealed_parts(document):
        what = f"{document.hostname}: the private key of its {name}"
        found += look_at_value(
            stored["sealed_key"],
            keyring,
            KEY_PURPOSE,
            _binding(document),
            thing=Thing.PRIVATE_KEY,
            what=what,
        )
    return found


def move_document(document: Document, keyring: Keyring, now_ms: int) -> tuple[Change | None, Found]:
    """The change that moves a document's private keys, and what it moves; None when none is due."""
    found = look_at_document(document, keyring).not_under(keyring.key_ids[0])
    if not found.things:
        return None, found
    lease = document.lease
    if lease is not None and not has_lapsed(lease, now_ms):
        return None, replace(found, things=(), is_busy=True)
    fields: dict[str, object] = {} if lease is None else {"lease": None}
    for name, stored in _sealed_parts(document):
        with contextlib.suppress(SealBroken):
            sealed = keyring.reseal(
                stored["sealed_key"], purpose=KEY_PURPOSE, bound_to=_binding(document)
            )
            fields[name] = {**stored, "sealed_key": sealed}
    return Change(fields), found


def look_at_value(
    sealed: str,
    keyring: Keyring,
    purpose: str,
    bound_to: Sequence[str],
    *,
    thing: Thing,
    what: str,
) -> Found:
    """One sealed value; `what` names it, and whose it is, for a person."""
    key_id = key_id_of(sealed)
    try:
        keyring.open(sealed, purpose=purpose, bound_to=bound_to)
    except KeyMissing:
        return Found(failures=(f"{what} is sealed under {key_id}, which the keyring lacks",))
    except SealBroken:
        return Found(unopened=(f"{what} does not open: it was altered, or belongs elsewhere",))
    return Found(things=((thing, key_id),))


def _sealed_parts(document: Document) -> list[tuple[str, dict[str, Any]]]:
    parts = (("certificate", document.certificate), ("issuance", document.issuance))
    return [(name, stored) for name, stored in parts if stored and stored.get("sealed_key")]


def _binding(document: Document) -> tuple[str, ...]:
    holder = document.holder
    return () if holder is None else key_binding(holder, document.hostname)
