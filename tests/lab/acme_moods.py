"""The moods of a CA: what can become of one request, each with a name.

Responsible for: faults that the real Pebble cannot be made to show at a chosen request, made out of
Pebble's own answers wherever there is one.
Must not: choose which request a mood meets; that is `AcmeProxy.on`.
Called by: `tests.lab.acme_proxy`, for tests that made the mood.

A mood is anything with a `name` that, called with an `Exchange`, gives the answer for the client or
raises `Cut`.
"""

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.lab.acme_calls import Answer, Call

_PROBLEM_TYPE = "urn:ietf:params:acme:error:"


class Cut(Exception):
    """The connection ends here; the client gets the first `sent` bytes of `answer`'s body, if any.

    With an answer its header still promises the whole body.
    """

    def __init__(self, answer: Answer | None = None, sent: int = 0) -> None:
        super().__init__("the connection is cut")
        self.answer = answer
        self.sent = sent


class Exchange(Protocol):
    """A request at the proxy, not answered yet."""

    call: Call

    def pass_on(self) -> Answer:
        """Let the CA answer it."""

    def hold(self) -> None:
        """Wait until the mood is over, or the proxy stops."""


class Mood(Protocol):
    """What becomes of a request."""

    @property
    def name(self) -> str: ...

    def __call__(self, exchange: Exchange) -> Answer: ...


@dataclass(frozen=True)
class Refuse:
    """Answers with a problem document; the CA never sees the request.

    Without a `problem_type` there is none, as when a load balancer answers for the CA.
    """

    status: int
    problem_type: str = ""
    detail: str = "so the lab's script says"
    retry_after: str | None = None

    @property
    def name(self) -> str:
        return f"{self.status} {self.problem_type}".strip()

    def __call__(self, exchange: Exchange) -> Answer:
        headers = [("Content-Type", "application/problem+json")]
        if self.retry_after is not None:
            headers.append(("Retry-After", self.retry_after))
        problem = {"type": _PROBLEM_TYPE + self.problem_type, "detail": self.detail}
        body = json.dumps(problem).encode() if self.problem_type else b"<h1>Sorry</h1>"
        return Answer(self.status, tuple(headers), body)


@dataclass(frozen=True)
class Drop:
    """Ends the connection before the CA sees the request."""

    name: str = "dropped before the CA acted"

    def __call__(self, exchange: Exchange) -> Answer:
        raise Cut


@dataclass(frozen=True)
class Lose:
    """Lets the CA act, and ends the connection instead of answering."""

    name: str = "dropped after the CA acted"

    def __call__(self, exchange: Exchange) -> Answer:
        exchange.pass_on()
        raise Cut


@dataclass(frozen=True)
class Truncate:
    """Lets the CA act, and ends the connection in the middle of its answer."""

    name: str = "truncated answer"

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        raise Cut(answer, len(answer.body) // 2)


@dataclass(frozen=True)
class Hang:
    """Never answers; with `after_acting` the CA has acted all the same."""

    after_acting: bool

    @property
    def name(self) -> str:
        return f"no answer, {'after' if self.after_acting else 'before'} the CA acted"

    def __call__(self, exchange: Exchange) -> Answer:
        if self.after_acting:
            exchange.pass_on()
        exchange.hold()
        raise Cut


@dataclass(frozen=True)
class Pause:
    """Waits until the mood is over, and passes on then: whoever looks meanwhile sees it wait."""

    name: str = "a slow CA"

    def __call__(self, exchange: Exchange) -> Answer:
        exchange.hold()
        return exchange.pass_on()


@dataclass(frozen=True)
class Rewrite:
    """Passes on, and changes what the CA answered.

    `change` gets the answer's JSON object, to be changed in place; `headers` replace the answer's
    own of the same name.
    """

    name: str
    change: Callable[[dict[str, Any]], object] = lambda _: None
    headers: tuple[tuple[str, str], ...] = ()

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        body = answer.json()
        self.change(body)
        answer = answer.with_json(body)
        for name, value in self.headers:
            answer = answer.with_header(name, value)
        return answer


@dataclass(frozen=True)
class Replace:
    """Passes on, and answers what `make` makes of the CA's answer."""

    name: str
    make: Callable[[Answer], Answer]

    def __call__(self, exchange: Exchange) -> Answer:
        return self.make(exchange.pass_on())


@dataclass(frozen=True)
class Renew:
    """Tells another window in which to renew (for `renewalInfo`); moments with a time zone."""

    start: datetime.datetime
    end: datetime.datetime
    explanation_url: str | None = None
    retry_after: str | None = None
    name: str = "another renewal window"

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        body = answer.json()
        body["suggestedWindow"] = window(self.start, self.end)
        if self.explanation_url is not None:
            body["explanationURL"] = self.explanation_url
        answer = answer.with_json(body)
        if self.retry_after is None:
            return answer
        return answer.with_header("Retry-After", self.retry_after)


def window(start: datetime.datetime, end: datetime.datetime) -> dict[str, str]:
    """A renewal window as JSON (RFC 9773, 4.2)."""
    return {"start": _rfc3339(start), "end": _rfc3339(end)}


def _rfc3339(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
