"""A lane: one connection with holdings of its own, and the errands that it can run.

Responsible for calls whose right answer is known beforehand, and for holding each answer against
it. Each lane has every so-manieth holding for itself, so no lane is surprised by another's doing.
Must not: choose errands or the pace; `load` does.
"""

import asyncio
import json
import random
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.bench.stock import (
    ALLOWED,
    APP_ID,
    TTL,
    Stock,
    address,
    other_address,
    suffix,
)
from tests.bench.tally import Tally
from tests.bench.wire import Wire, envelope
from tests.integration.service.calling import (
    CAPABILITIES,
    CONTEXT,
    GET,
    PROVISION,
    RELEASE,
    SYNC,
    spec,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REISSUE_LIMIT_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 0.5
_SHOWN_CHARACTERS = 160

_BROKEN: tuple[tuple[bytes, str], ...] = (
    (b"{", "envelope-invalid"),
    (b'{"method": 7}', "envelope-invalid"),
    (b"[" * 500, "envelope-invalid"),
)


@dataclass(frozen=True)
class Ground:
    """What all lanes call: the gateway's port, its stock and the tokens."""

    port: int
    stock: Stock
    tokens: tuple[str, ...]
    admin_token: str


class Lane:
    """Lane `number` of `lanes`."""

    def __init__(self, ground: Ground, number: int, lanes: int, seed: str) -> None:
        self.tally = Tally()
        self._ground = ground
        self._wire = Wire(ground.port)
        self._mine = range(number, ground.stock.holdings, lanes)
        self._addresses: dict[int, str] = {}
        self._turn = 0
        self._lanes = lanes
        self.chance = random.Random(f"{seed} {number}")  # noqa: S311 (to be repeatable)
        # Begun anywhere, so that a lane before this one has hardly left the same address.
        self._replaced = number + lanes * self.chance.randrange(1 << 20)
        self.errands: dict[str, Callable[[], Awaitable[None]]] = {
            "get ready": self.get_ready,
            "get next": self.get_next,
            "sync unchanged": self.sync_unchanged,
            "sync replace": self.sync_replace,
            "context": self.context,
            "capabilities": self.capabilities,
            "bad token": self.bad_token,
            "broken request": self.broken_request,
            "create and withdraw": self.create_and_withdraw,
            "release and reissue": self.release_and_reissue,
            "provisioning": self.provisioning,
        }

    def close(self) -> None:
        self._wire.close()

    async def get_ready(self) -> None:
        number = self._any()
        await self._client_call("get ready", GET, number, "ready")

    async def get_next(self) -> None:
        """One hostname after the other, for what remembers each."""
        number = self._mine[self._turn % len(self._mine)]
        self._turn += 1
        await self._client_call("get next", GET, number, "ready")

    async def sync_unchanged(self) -> None:
        number = self._any()
        value = self._addresses.get(number, address(number))
        await self._sync("sync unchanged", number, value, "managed-unchanged")

    async def sync_replace(self) -> None:
        number = self._any()
        self._replaced += self._lanes
        value = other_address(self._replaced)
        if await self._sync("sync replace", number, value, "managed-updated"):
            self._addresses[number] = value

    async def context(self) -> None:
        await self._call("context", CONTEXT, {"apiToken": self._token(self._any())}, "ok")

    async def capabilities(self) -> None:
        await self._call("capabilities", CAPABILITIES, {"apiToken": self._token(self._any())}, "ok")

    async def bad_token(self) -> None:
        """One that is none, one of nobody, one of an admin who is none, and a wrong secret."""
        number = self._any()
        secret = secrets.token_urlsafe(32)
        real = self._token(number)
        bad = (None, f"gwc_{'0' * 36}_{secret}", f"gwa_{secret}", real[:-4] + secret[:4])
        request = {"apiToken": self.chance.choice(bad), "ownership": self._ownership(number)}
        await self._call("bad token", GET, request, "unauthorized")

    async def broken_request(self) -> None:
        number = self._any()
        mine, token = self._ownership(number), self._token(number)
        calls: tuple[tuple[str, dict[str, object], str], ...] = (
            (GET, {"apiToken": token, "ownership": mine, "more": 1}, "request-invalid"),
            (SYNC, {"apiToken": token, "ownership": {"hostname": "A.b"}}, "request-invalid"),
            ("readZone", {"apiToken": token}, "method-unknown"),
            (
                GET,
                {"apiToken": token, "ownership": {**mine, "hostname": "other.example"}},
                "hostname-forbidden",
            ),
        )
        whole = [(envelope(method, request), code) for method, request, code in calls]
        body, code = self.chance.choice((*whole, *_BROKEN))
        await self._post("broken request", body, code)

    async def create_and_withdraw(self) -> None:
        """A record at a name that is new, and gone afterwards."""
        number = self._any()
        client = self._ground.stock.client_of(number)
        mine = {"appId": APP_ID, "hostname": f"n{secrets.token_hex(6)}.{suffix(client)}"}
        request = {"apiToken": self._token(number), "ownership": mine}
        record = {"type": "A", "value": address(number), "ttl": TTL}
        await self._call("sync create", SYNC, {**request, "record": record}, "managed-created")
        await self._call("sync withdraw", SYNC, {**request, "delete": True}, "managed-deleted")

    async def release_and_reissue(self) -> None:
        number = self._any()
        await self._client_call("release", RELEASE, number, "released")
        began = time.monotonic()
        kind = "get pending"
        while True:
            answer = await self._client_call(kind, GET, number, "pending", "ready")
            status = None if answer is None else answer["status"]
            waited = time.monotonic() - began
            if status == "ready":
                self.tally.reissues.append(waited)
                return
            if answer is None or waited > REISSUE_LIMIT_SECONDS:
                self.tally.fail(kind, f"no certificate {waited:.1f} s after its release")
                return
            await asyncio.sleep(min(answer["retryAfterMs"] / 1000, _LONGEST_PAUSE_SECONDS))

    async def provisioning(self) -> None:
        """A client's whole life: made, changed, another token, none, gone."""
        name = f"guest-{secrets.token_hex(6)}"
        pattern = f"{name}.example.test"
        whole = spec(name, pattern, allowedDnsRecordAddresses=list(ALLOWED))
        narrow = spec(name, pattern, allowedDnsRecordAddresses=list(ALLOWED[:1]))
        for action, of_client, more in (
            ("ensure", whole, {}),
            ("ensure", narrow, {}),
            ("rotate", {"clientId": name}, {"overlapSeconds": 60}),
            ("revoke", {"clientId": name}, {}),
            ("remove", {"clientId": name}, {}),
        ):
            request = {"apiToken": self._ground.admin_token, "action": action, "spec": of_client}
            await self._call("provisioning", PROVISION, {**request, **more}, "ok")

    def _any(self) -> int:
        return self.chance.choice(self._mine)

    def _token(self, number: int) -> str:
        return self._ground.tokens[self._ground.stock.client_of(number)]

    def _ownership(self, number: int) -> dict[str, object]:
        return {"appId": APP_ID, "hostname": self._ground.stock.hostname(number)}

    async def _sync(self, kind: str, number: int, value: str, expected: str) -> bool:
        record = {"type": "A", "value": value, "ttl": TTL}
        return await self._client_call(kind, SYNC, number, expected, record=record) is not None

    async def _client_call(
        self, kind: str, method: str, number: int, *expected: str, **more: object
    ) -> dict[str, Any] | None:
        request = {"apiToken": self._token(number), "ownership": self._ownership(number), **more}
        return await self._call(kind, method, request, *expected)

    async def _call(
        self, kind: str, method: str, request: dict[str, Any], *expected: str
    ) -> dict[str, Any] | None:
        return await self._post(kind, envelope(method, request), *expected)

    async def _post(self, kind: str, body: bytes, *expected: str) -> dict[str, Any] | None:
        """Call, count it, and answer the response; None when the outcome is another."""
        began = time.monotonic()
        try:
            status, text = await self._wire.post(body)
        except (OSError, EOFError) as fault:
            self.tally.note(kind, time.monotonic() - began, f"no answer: {fault!r}")
            return None
        seconds = time.monotonic() - began
        answer = json.loads(text)
        outcome = outcome_of(status, answer)
        failure = None if outcome in expected else f"{outcome}: {_words(answer)}"
        self.tally.note(kind, seconds, failure)
        response: dict[str, Any] | None = answer.get("response")
        return response if failure is None else None


def outcome_of(status: int, answer: dict[str, Any]) -> str:
    """A status, a code, or `ok` where a response has no status."""
    error = answer.get("error")
    if error is not None:
        code: str = error["data"]["code"]
        return code
    if status != 200:
        return f"HTTP {status}"
    return str(answer["response"].get("status", "ok"))


def _words(answer: dict[str, Any]) -> str:
    """What an answer says for people; never a key or a token."""
    error = answer.get("error") or {}
    response = answer.get("response") or {}
    parts = [error.get("text"), response.get("reason"), response.get("message")]
    incident = (error.get("data") or {}).get("incidentId")
    return " ".join(str(part) for part in (*parts, incident) if part)[:_SHOWN_CHARACTERS]
