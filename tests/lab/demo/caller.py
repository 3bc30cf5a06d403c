"""Calls the gateway's methods over HTTP, as a client would, and shows both sides of each.

Responsible for: the envelope, and what must hold for every answer (contract: 200, JSON, the same
correlation, never to be stored).
Must not: judge what was answered; the story does.
Called by: `story`.
"""

import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx

from tests.lab.demo.shapes import lines_of
from tests.lab.demo.telling import StoryFault, Teller

# The gateway answers every call within 10 s, whatever hangs behind it.
_ANSWER_LIMIT_SECONDS = 12.0


@dataclass(frozen=True)
class Answer:
    """What came back: a response, or an error that says why the call was not admitted."""

    method: str
    response: dict[str, Any] | None
    error: dict[str, Any] | None

    @property
    def fields(self) -> dict[str, Any]:
        """The response.

        Raises: StoryFault when there is none.
        """
        if self.response is None or self.error is not None:
            raise StoryFault(f"{self.method}\n  expected  a response\n  seen      {self.error}")
        return self.response

    @property
    def status(self) -> object:
        """The `status` of the response, and a refusal's reason; the error's code otherwise."""
        if self.error is not None:
            return self.error["data"]["code"]
        if "reason" in self.fields:
            return f"{self.fields['status']}: {self.fields['reason']}"
        return self.fields.get("status")


class Caller:
    """Speaks to one gateway over one kept connection."""

    def __init__(self, url: str, teller: Teller) -> None:
        self._url = url
        self._teller = teller
        # Without a proxy's or another setting of the environment: this is loopback.
        self._client = httpx.Client(trust_env=False, timeout=_ANSWER_LIMIT_SECONDS)

    def call(self, method: str, token: str, **fields: object) -> Answer:
        """Call `method` with the token and `fields` as its request.

        Raises: StoryFault when the answer breaks the transport's rules, or there is none.
        """
        request: dict[str, object] = {"apiToken": token, **fields}
        self._teller.sent(method, lines_of(request))
        began = time.monotonic()
        correlation_id = str(uuid.uuid4())
        body: dict[str, object] = {
            "method": method,
            "request": request,
            "response": None,
            "correlation": {"id": correlation_id, "phase": "request"},
        }
        envelope = self._post(body)
        took_ms = (time.monotonic() - began) * 1000
        if envelope.get("correlation") != {"id": correlation_id, "phase": "response"}:
            raise StoryFault(f"{method}: the answer belongs to another call")
        answer = Answer(method, envelope.get("response"), envelope.get("error"))
        kind = "response" if answer.error is None else "error"
        shown = answer.fields if answer.error is None else answer.error
        self._teller.received(f"{kind}, {took_ms:.0f} ms", lines_of(shown))
        return answer

    def close(self) -> None:
        """Close the connection. May be repeated."""
        self._client.close()

    def _post(self, body: dict[str, object]) -> dict[str, Any]:
        try:
            reply = self._client.post(self._url, json=body)
        except httpx.HTTPError as error:
            raise StoryFault(f"no answer from {self._url}: {error}") from error
        head = (
            reply.status_code,
            reply.headers.get("content-type", "").partition(";")[0],
            reply.headers.get("cache-control"),
        )
        wanted = (200, "application/json", "no-store")
        if head != wanted:
            raise StoryFault(f"the answer's head\n  expected  {wanted}\n  seen      {head}")
        envelope: dict[str, Any] = reply.json()
        return envelope
