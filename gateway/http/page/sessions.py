"""Who is logged in to the page: sessions in Redis, which all processes share.

Responsible for when a session begins and ends, for what its forms prove that they are its own, for
forms that are sent twice, and for the sentences that the next page tells. A session's id is 256
random bits that only its browser has: Redis has its SHA-256. It ends an hour after it was last used
and 12 hours after it began, at a logout, and with the admin token that it was opened by. So to log
everybody out is to change that token. There is no bound on their number: each takes the admin
token, and none outlives its time.

What only serves the page's words is done if it can be: a Redis that takes no writes is no reason to
show nothing, and a deed that was done is not told as failed because a notice of it was not kept.

Must not: know HTTP. Called by `answering` and `login`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gateway.contract.faults import plain
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.keys import page_form_key, page_notice_key, page_session_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateway.store.connection import Store

IDLE_MS: Final = 3_600_000
LONGEST_MS: Final = 12 * 3_600_000
NOTED_EVERY_MS: Final = 60_000
"""How often it is written down that a session is used."""

NOTICE_MS: Final = 60_000
MOST_NOTICES: Final = 8
"""Of one page, where nobody looks at it meanwhile."""

NOTICE_SECONDS: Final = 0.4
"""How long a deed that is done waits for its notice to be kept."""

FORM_MS: Final = LONGEST_MS

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_FORM_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_LONGEST_NOTICE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is logged in. `name` is the SHA-256 of its id; times are epoch milliseconds.

    `remote` is the address that it was opened from.
    """

    name: str = field(repr=False)
    began_ms: int
    seen_ms: int
    remote: str
    form_secret: bytes = field(repr=False)

    @property
    def ends_ms(self) -> int:
        """When it ends however much it is used."""
        return self.began_ms + LONGEST_MS

    def form_key(self, path: str) -> str:
        """What a form that goes to this path (decoded) shows as this session's own."""
        return hmac.new(self.form_secret, path.encode(), hashlib.sha256).hexdigest()

    def owns_form(self, path: str, shown: str) -> bool:
        """Whether a form that was sent to this path is one of this session, by what it shows."""
        return hmac.compare_digest(self.form_key(path).encode(), shown.encode())


class Sessions:
    """All sessions of one Redis. `admin_digest` is the SHA-256 of the admin token in force, in hex.

    Every method raises `StoreUnavailable`, but those of notices.
    """

    def __init__(self, store: Store, admin_digest: str, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms
        self._bond = hashlib.sha256(f"page:{admin_digest}".encode()).hexdigest()

    async def open(self, remote: str) -> tuple[str, Session]:
        """Begin one for whoever has shown the admin token; with its id, which is a secret."""
        session_id = secrets.token_urlsafe(32)
        now_ms = self._now_ms()
        session = Session(name_of(session_id), now_ms, now_ms, remote, _form_secret(session_id))
        await self._store.put(page_session_key(session.name), self._text(session), IDLE_MS)
        return session_id, session

    async def find(self, session_id: str, *, is_used: bool = True) -> Session | None:
        """The session of an id; None when there is none any more.

        `is_used`: its hour begins anew, as it does not for what a browser asks for by itself.
        """
        if _SESSION_ID.fullmatch(session_id) is None:
            return None
        name = name_of(session_id)
        (stored,) = await self._store.values([page_session_key(name)])
        session = None if stored is None else self._read(stored, name, session_id)
        now_ms = self._now_ms()
        if session is None or not now_ms < min(session.ends_ms, session.seen_ms + IDLE_MS):
            return None
        if is_used and now_ms - session.seen_ms >= NOTED_EVERY_MS:
            session = replace(session, seen_ms=now_ms)
            await self._note_use(session)
        return session

    async def find_among(
        self, session_ids: Sequence[str], *, is_used: bool = True
    ) -> Session | None:
        """The first of these ids' sessions that there is, as `find` has it."""
        for session_id in session_ids:
            session = await self.find(session_id, is_used=is_used)
            if session is not None:
                return session
        return None

    async def close(self, session: Session) -> None:
        """End it; repeatable. Its notices, which nobody else can read, end by themselves."""
        key = page_session_key(session.name)
        await self._store.answers_of_each([(key, [("DEL", key)])])

    async def take_form(self, session: Session, form_id: str) -> bool:
        """Whether a form is sent for the first time, by the id that it was shown with.

        False also when Redis's answer was lost: then nobody knows, and nothing is done twice.
        """
        if _FORM_ID.fullmatch(form_id) is None:
            return False
        return await self._store.take_turn(page_form_key(session.name, form_id), FORM_MS)

    async def leave_notice(self, session: Session, path: str, sentence: str) -> None:
        """Keep a sentence for this session's next page at a path (decoded), if that can be."""
        key = page_notice_key(session.name, path)
        keep = [
            ("RPUSH", key, plain(sentence, _LONGEST_NOTICE)),
            ("LTRIM", key, -MOST_NOTICES, -1),
            ("PEXPIRE", key, NOTICE_MS),
        ]
        with contextlib.suppress(StoreUnavailable, StoreRefused, TimeoutError):
            async with asyncio.timeout(NOTICE_SECONDS):
                await self._store.answers_of_each([(key, keep)])

    async def take_notices(self, session: Session, path: str) -> tuple[str, ...]:
        """The sentences that were kept for a path, from the oldest, once; none if that fails."""
        key = page_notice_key(session.name, path)
        try:
            ((told,),) = await self._store.answers_of_each([(key, [("LPOP", key, MOST_NOTICES)])])
        except (StoreUnavailable, StoreRefused):
            return ()
        return tuple(told or ())

    async def why_no_writes(self) -> str | None:
        """Why nothing could be done now, though it may be read; None where all is well."""
        try:
            await self._store.demand_writable()
        except (StoreUnavailable, StoreRefused) as fault:
            return str(fault)
        return None

    async def _note_use(self, session: Session) -> None:
        key, lifetime_ms = page_session_key(session.name), session.ends_ms - session.seen_ms
        # Only where it is still there: a logout at the same time ends it for good.
        command = ("SET", key, self._text(session), "XX", "PX", min(IDLE_MS, lifetime_ms))
        with contextlib.suppress(StoreUnavailable, StoreRefused):
            await self._store.answers_of_each([(key, [command])])

    def _text(self, session: Session) -> str:
        return json.dumps(
            {
                "begunMs": session.began_ms,
                "seenMs": session.seen_ms,
                "remote": session.remote,
                "bond": self._bond,
            },
            separators=(",", ":"),
        )

    def _read(self, stored: str, name: str, session_id: str) -> Session | None:
        """None also of what is in no shape of a session, or was opened by another admin token."""
        try:
            told = json.loads(stored)
            bond, remote = str(told["bond"]), str(told["remote"])
            began_ms, seen_ms = int(told["begunMs"]), int(told["seenMs"])
            is_bound = hmac.compare_digest(bond.encode(), self._bond.encode())
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
        if not is_bound:
            return None
        if max(began_ms, seen_ms) > self._now_ms() + NOTED_EVERY_MS:
            return None  # begun in the future: it would outlive its time
        return Session(name, began_ms, seen_ms, plain(remote, 64), _form_secret(session_id))


def name_of(session_id: str) -> str:
    """What a session is called where its id may not stand."""
    return hashlib.sha256(session_id.encode()).hexdigest()


def new_form_id() -> str:
    """The id of a form about to be shown."""
    return secrets.token_urlsafe(16)


def _form_secret(session_id: str) -> bytes:
    return hmac.new(session_id.encode(), b"gateway page form", hashlib.sha256).digest()
