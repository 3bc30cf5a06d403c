"""The endpoint with its entrance, by itself: what is asked of an address that is shut out."""

import asyncio
import json
import re

import pytest
from starlette.types import Message, Receive, Scope

from gateway.contract import EnvelopeInvalid, Written
from gateway.http import typedrequest
from gateway.http.crowd import CrowdLimits
from gateway.http.entrance import Bounds, Entrance
from gateway.http.flood import FloodLimits
from gateway.http.typedrequest import TypedRequestEndpoint

LIMIT_SECONDS = 30.0


class Nobody:
    """Answers every call."""

    async def answer(
        self, method_name: str, request: dict[str, object], digest: str | None
    ) -> Written:
        return Written("ok", b"{}")


def request(*pieces: bytes) -> tuple[Scope, Receive]:
    """A POST whose body does not go on after these pieces."""
    left = list(pieces)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": left.pop(0), "more_body": True}

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", b"application/json")],
        "client": ("192.0.2.1", 1),
    }
    return scope, receive


async def test_body_from_an_address_that_is_shut_out_has_less_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(typedrequest, "SHUT_OUT_BODY_SECONDS", 0.01)
    monkeypatch.setattr(typedrequest, "BODY_BOUND_SECONDS", 2 * LIMIT_SECONDS)
    entrance = Entrance(Bounds((), FloodLimits(1, 0), CrowdLimits(0, 0)))
    endpoint = TypedRequestEndpoint(Nobody(), entrance)
    entrance.note("192.0.2.1", None, None, EnvelopeInvalid("No call.", 400))
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async with asyncio.timeout(LIMIT_SECONDS):
        await endpoint(*request(b"{"), send)
    start, answer = sent
    assert start["status"] == 408
    assert json.loads(answer["body"])["error"]["data"]["code"] == "envelope-invalid"


async def test_each_answer_has_a_request_id_of_its_own() -> None:
    found: list[bytes] = []

    async def send(message: Message) -> None:
        found.extend(value for name, value in message.get("headers", ()) if name == b"x-request-id")

    entrance = Entrance(Bounds((), FloodLimits(0, 0), CrowdLimits(0, 0)))
    endpoints = [TypedRequestEndpoint(Nobody(), entrance) for _ in range(2)]
    for number in range(600):
        scope, receive = request()
        await endpoints[number % 2]({**scope, "method": "GET"}, receive, send)
    assert len(set(found)) == 600
    assert all(re.fullmatch(rb"[0-9a-f]{16}", each) for each in found)
