"""Which form the state in Redis has, and bringing an older one into this release's.

`gw:schema` says it, from the first start on: a hash with `schema` (a whole number), and while it
lasts `migrating` (who changes the form now, until when) or `restoring` (the backup that is being
restored). A state from before there was such a key has form 1.

A form that is newer than this release is refused before anything is read or written: what is
there would be misread, and what is written would be a mixture. An older one is brought up by
`MIGRATIONS`, one after the other, under a lock that lapses with its holder. A migration is a pure
function over the fields of one hash, committed by compare-and-swap; it leaves what it has made as
it is, so one that was cut off begins anew, and two at once do no harm.

Called by the composition root, before anything else is done with Redis, and by `backup`.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from gateway.contract.faults import quoted
from gateway.store.documents import ATTEMPTS, Contended
from gateway.store.keys import ALL_KEYS, SCHEMA_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gateway.store.connection import Store

LOCK_MS: Final = 10_000
LOOK_SECONDS: Final = 0.1
READ_AT_ONCE: Final = 200

_SCHEMA: Final = "schema"
_MIGRATING: Final = "migrating"
_RESTORING: Final = "restoring"
_VERSION: Final = "version"
_FORM: Final = re.compile(r"[1-9][0-9]{0,8}")

_TAKEN_OVER: Final = (
    "Another `gateway restore` has begun on this Redis after this one, which has stopped: let that"
    " one finish."
)

_log = structlog.get_logger(__name__)


class StateRefused(Exception):
    """What is in Redis can't be worked with by this release; one sentence says why."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step to the next form, for all hashes whose keys are like `pattern`.

    `rewrite` is pure: it is given all fields but `version`, and answers what they become. What it
    has made already it must leave as it is.
    """

    pattern: str
    rewrite: Callable[[Mapping[str, str]], Mapping[str, str]]


MIGRATIONS: Final[tuple[Migration, ...]] = ()
"""The steps from form 1 on; there was no other form yet."""

SCHEMA_VERSION: Final = 1 + len(MIGRATIONS)


async def examine(store: Store, known: int = SCHEMA_VERSION) -> int | None:
    """The form that the state says it has; None when it says none. Changes nothing.

    Raises:
        StateRefused: it is newer than `known`, or a restore was not finished.
    """
    return _form_in(await store.fields(SCHEMA_KEY), known)


async def settle(
    store: Store, now_ms: Callable[[], int], migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """See that the state has this release's form; may be repeated, and called by many at once.

    Raises:
        StateRefused: as `examine`.
        StoreUnavailable, Contended: asking again is safe.
    """
    known = 1 + len(migrations)
    while True:
        fields = await store.fields(SCHEMA_KEY)
        found = _form_in(fields, known)
        if found is None:
            first = 1 if await _holds_anything(store) else known
            await _commit(store, fields, {_SCHEMA: str(first)})
        elif found == known:
            return
        elif _is_locked(fields, now_ms()):
            await asyncio.sleep(LOOK_SECONDS)
        else:
            await _Migrating(store, now_ms, fields, found).run(migrations[found - 1 :])


async def begin_restoring(store: Store, backup_id: str) -> str | None:
    """Refuse every start from now on, until `end_restoring`; None: there is a state already.

    Answers the turn that this run has now. One of the same backup that was begun before has lost
    its own, whether it was cut off or is at work.

    Raises:
        StateRefused: a restore of another backup was cut off here.
    """
    fields = await store.fields(SCHEMA_KEY)
    begun = fields.get(_RESTORING)
    if begun not in {None, backup_id}:
        raise StateRefused(
            f"A restore of the backup {quoted(begun or '')} was cut off here: finish that one, or"
            " empty this Redis first."
        )
    if begun is None and (fields or await _holds_anything(store)):
        return None
    turn = await _commit(store, fields, {_RESTORING: backup_id})
    if turn is None:
        raise StateRefused(_TAKEN_OVER)
    return turn


async def demand_restoring(store: Store, turn: str) -> None:
    """See that nobody has begun after this run. Raises `StateRefused`."""
    if (await store.fields(SCHEMA_KEY)).get(_VERSION) != turn:
        raise StateRefused(_TAKEN_OVER)


async def end_restoring(store: Store, form: int, turn: str) -> None:
    """Let gateways start on what was restored, which has this form.

    Raises:
        StateRefused: another run has taken over; nothing was changed.
    """
    sets = {_SCHEMA: str(form)}
    if await _commit(store, {_VERSION: turn}, sets, deletes=[_RESTORING]) is None:
        raise StateRefused(_TAKEN_OVER)


class _Migrating:
    """One attempt to take the lock and bring the state up, by one process."""

    def __init__(
        self, store: Store, now_ms: Callable[[], int], fields: Mapping[str, str], found: int
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._name = secrets.token_hex(8)
        self._form = found
        self._version: str | None = fields.get(_VERSION, "")

    async def run(self, migrations: Sequence[Migration]) -> None:
        if not await self._hold():
            return
        for migration in migrations:
            _log.info("state migrating", from_form=self._form, to_form=self._form + 1)
            keys = {key async for key in self._store.keys_like(migration.pattern)}
            for number, key in enumerate(sorted(keys)):
                # Others may not wait for a process that has stopped for longer than the lock lasts.
                if number % READ_AT_ONCE == 0 and not await self._hold():
                    return
                await self._rewrite(key, migration)
            self._form += 1
            if not await self._hold():
                return
        await self._write({_SCHEMA: str(self._form)}, deletes=[_MIGRATING])
        _log.info("state migrated", form=self._form)

    async def _hold(self) -> bool:
        """Take the lock or keep it, and say how far it has come; False when it is another's."""
        lock = json.dumps({"by": self._name, "untilMs": self._now_ms() + LOCK_MS})
        return await self._write({_SCHEMA: str(self._form), _MIGRATING: lock})

    async def _write(self, sets: dict[str, str], deletes: Sequence[str] = ()) -> bool:
        fields = {_VERSION: self._version or ""}
        self._version = await _commit(self._store, fields, sets, deletes)
        return self._version is not None

    async def _rewrite(self, key: str, migration: Migration) -> None:
        for _ in range(ATTEMPTS):
            fields = await self._store.fields(key)
            version = fields.pop(_VERSION, "")
            after = migration.rewrite(fields)
            if not fields or after == fields:
                return
            committed = await self._store.commit(
                key,
                key,
                expected_version=version,
                member="",
                sets={name: text for name, text in after.items() if fields.get(name) != text},
                deletes=[name for name in fields if name not in after],
            )
            if committed is not None:
                return
        raise Contended(f"{key} is being changed by too many callers at once")


def _form_in(fields: Mapping[str, str], known: int) -> int | None:
    if _RESTORING in fields:
        raise StateRefused(
            "A restore into this Redis was cut off: run `gateway restore` with the same file"
            f" again (the backup {quoted(fields[_RESTORING])}), or empty this Redis."
        )
    text = fields.get(_SCHEMA)
    if text is None:
        return None
    if _FORM.fullmatch(text) is None:
        raise StateRefused(
            f"{SCHEMA_KEY} in Redis says that its state has the form {quoted(text)}."
        )
    if int(text) > known:
        raise StateRefused(
            f"The state in this Redis has form {text}, and this release knows forms up to {known}:"
            " start a release that is as new as the one that wrote it."
        )
    return int(text)


def _is_locked(fields: Mapping[str, str], now_ms: int) -> bool:
    """Whether somebody migrates; a lock that ends later than any can is from a clock set back."""
    try:
        until_ms = json.loads(fields[_MIGRATING])["untilMs"]
        return bool(now_ms < until_ms <= now_ms + LOCK_MS + 1_000)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False


async def _holds_anything(store: Store) -> bool:
    async for key in store.keys_like(ALL_KEYS):
        if key != SCHEMA_KEY:
            return True
    return False


async def _commit(
    store: Store, fields: Mapping[str, str], sets: dict[str, str], deletes: Sequence[str] = ()
) -> str | None:
    # There is no index: the hash stands in for it, and is not touched without a score.
    return await store.commit(
        SCHEMA_KEY,
        SCHEMA_KEY,
        expected_version=fields.get(_VERSION, ""),
        member="",
        sets=sets,
        deletes=deletes,
    )
