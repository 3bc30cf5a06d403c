"""One application after the other under one listener."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.http.listener.cycle import WHOLE_ANSWER
from gateway.http.switch import Switch

Messages = list[MutableMapping[str, Any]]


def answering(
    body: bytes, goes_on: asyncio.Event | None = None, *, is_whole: bool = False
) -> ASGIApp:
    """An application that answers so, once it may; whole at once or in parts."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        if goes_on is not None:
            await goes_on.wait()
        headers = [(b"content-type", b"text/plain"), (b"connection", b"keep-alive")]
        start = {"type": "http.response.start", "status": 200, "headers": headers}
        if is_whole:
            await send({**start, "type": WHOLE_ANSWER, "body": body})
        else:
            await send(start)
            await send({"type": "http.response.body", "body": body})

    return app


async def asked(switch: Switch) -> Messages:
    sent: Messages = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await switch({"type": "http"}, receive, send)
    return sent


def body_of(messages: Messages) -> bytes:
    body: bytes = messages[-1]["body"]
    return body


async def test_request_is_answered_by_the_application_that_it_began_with() -> None:
    goes_on = asyncio.Event()
    switch = Switch(answering(b"former", goes_on))
    begun = asyncio.create_task(asked(switch))
    await asyncio.sleep(0)
    former = switch.turn_to(answering(b"current"))
    assert body_of(await asked(switch)) == b"current"
    ended = asyncio.create_task(former.ended())
    await asyncio.sleep(0)
    assert not ended.done()
    goes_on.set()
    assert body_of(await begun) == b"former"
    await ended


async def test_turn_without_requests_has_ended() -> None:
    switch = Switch(answering(b"former"))
    await asked(switch)
    await switch.turn_to(answering(b"current")).ended()


async def test_turn_ends_also_when_its_request_breaks() -> None:
    async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
        raise OSError("it broke")

    switch = Switch(breaking)
    with pytest.raises(OSError, match="it broke"):
        await asked(switch)
    await switch.turn_to(answering(b"current")).ended()


@pytest.mark.parametrize("is_whole", [False, True], ids=["parts", "whole"])
async def test_every_answer_is_the_last_on_its_connection_while_it_stops(is_whole: bool) -> None:
    goes_on = asyncio.Event()
    switch = Switch(answering(b"late", goes_on, is_whole=is_whole))
    begun = asyncio.create_task(asked(switch))
    await asyncio.sleep(0)
    switch.stop()
    goes_on.set()
    for messages in (await begun, await asked(switch)):
        headers = [value for name, value in messages[0]["headers"] if name == b"connection"]
        assert headers == [b"close"]


async def test_connections_are_left_alone_while_it_serves() -> None:
    (start, _) = await asked(Switch(answering(b"here")))
    assert (b"connection", b"keep-alive") in start["headers"]


async def test_requests_that_are_never_whole_are_given_up_while_it_stops() -> None:
    ends: list[str] = []
    waits = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        ends.append((await receive())["type"])

    async def receive() -> MutableMapping[str, Any]:
        waits.set()
        return await asyncio.Future()

    async def send(_: MutableMapping[str, Any]) -> None: ...

    switch = Switch(app)
    async with asyncio.timeout(30), asyncio.TaskGroup() as requests:
        requests.create_task(switch({"type": "http"}, receive, send))
        await waits.wait()
        switch.stop(0.01)
        requests.create_task(switch({"type": "http"}, receive, send))
    assert ends == ["http.disconnect", "http.disconnect"]
