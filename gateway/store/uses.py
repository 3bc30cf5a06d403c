"""When each credential of a client was last used, as Redis has it: a hash beside the client.

Responsible for keeping the latest of what several processes note, nothing of a client that is
gone, and of no more credentials than the client has. Must not: know when it is worth noting.
A client that is removed takes them along (`access.clients`).
Called by `access.last_use`.

A time of its own in the client's document was the alternative: then each use would change the
document that every change of the client is compared with.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, Final

from gateway.moments import is_epoch_ms
from gateway.store import keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.store.connection import Store

_TIME: Final = re.compile(r"[0-9]{1,16}")
_SCRIPT: Final = (
    resources.files("gateway.store").joinpath("lua", "note_uses.lua").read_text("utf-8")
)


class Uses:
    """The last uses, by the fingerprint of a client's id. Awaits no replica: they may be forgotten.

    Every method raises `StoreUnavailable` and `StoreRefused`, and may be repeated.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, noted: Mapping[str, Sequence[tuple[str, int]]], now_ms: int) -> None:
        """For each client: credential ids, and when each was used, up to `now_ms`; epoch ms."""
        wanted = []
        for client_fingerprint, uses in noted.items():
            key = keys.client_uses_key(client_fingerprint)
            words = [now_ms, *(word for use in uses for word in use)]
            client_key = keys.client_key(client_fingerprint)
            wanted.append((key, [("EVAL", _SCRIPT, 2, client_key, key, *words)]))
        await self._store.answers_of_each(wanted)

    async def of_each(self, client_fingerprints: Sequence[str]) -> list[dict[str, int]]:
        """When each credential of each client was last used, in epoch ms, in the same order.

        What is no time, or nothing of what `note` writes, is left out.
        """
        names = [keys.client_uses_key(each) for each in client_fingerprints]
        wanted = [(name, [("HGETALL", name)]) for name in names]
        found = await self._store.fitting_answers_of_each(wanted)
        return [{} if answers is None else _times(answers[0]) for answers in found]


def _times(fields: Mapping[str, str]) -> dict[str, int]:
    return {
        name: int(text)
        for name, text in fields.items()
        if _TIME.fullmatch(text) and is_epoch_ms(int(text))
    }
