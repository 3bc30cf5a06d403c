"""Clients that call without pause and never twice, so that each call that fails is seen.

Responsible for: the ecosystem's npm client and a Python client with kept connections, each in a
thread, and what came of their calls. A call fails when it has no answer, or an error.
Must not: repeat a call, as real clients do.
Used by the tests of this folder and by `scripts/rolling-restart`.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx

from tests.integration.service.calling import CONTEXT, GET, NO_TLS, SYNC, Ownership, envelope
from tests.lab.npm_client import NpmClient
from tests.lab.process import wait_until

_ADDRESSES = ("198.51.100.5", "198.51.100.6")
_CALL_LIMIT_SECONDS = 20.0

Call = Callable[[str, Mapping[str, object]], str | None]
"""Makes one call: method and request; answers what went wrong."""


@dataclass
class Tally:
    """What came of one client's calls."""

    name: str
    made: int = 0
    failed: list[str] = field(default_factory=list)


class Callers:
    """Clients of one URL, each with an ownership of its own; a context manager that runs them."""

    def __init__(
        self, url: str, ownerships: Sequence[Ownership], npm_clients: Sequence[NpmClient]
    ) -> None:
        """The first ownerships are for the npm clients, the rest for Python ones."""
        self.tallies: list[Tally] = []
        self._closing = ExitStack()
        self._is_over = threading.Event()
        self._threads = []
        for index, ownership in enumerate(ownerships):
            if index < len(npm_clients):
                call, name = _by_npm(npm_clients[index], url), f"npm {index + 1}"
            else:
                client = self._closing.enter_context(
                    httpx.Client(trust_env=False, timeout=_CALL_LIMIT_SECONDS, verify=NO_TLS)
                )
                call, name = _by_httpx(client, url), f"python {index + 1 - len(npm_clients)}"
            tally = Tally(name)
            self.tallies.append(tally)
            self._threads.append(
                threading.Thread(target=self._go_on, args=(call, ownership, tally))
            )

    @property
    def made(self) -> int:
        """How many calls there were."""
        return sum(tally.made for tally in self.tallies)

    @property
    def failed(self) -> list[str]:
        """What went wrong, each with whose call it was."""
        return [f"{tally.name}: {what}" for tally in self.tallies for what in tally.failed]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._closing.close()

    def wait_for_more(self, calls: int) -> None:
        """Return when each client has made so many calls more.

        Raises: LabFault.
        """
        wanted = [tally.made + calls for tally in self.tallies]
        wait_until(
            lambda: all(
                tally.made >= much for tally, much in zip(self.tallies, wanted, strict=True)
            ),
            "every client calls on",
            60,
        )

    def _go_on(self, call: Call, ownership: Ownership, tally: Tally) -> None:
        wire, token = ownership.wire, ownership.caller.token
        while not self._is_over.is_set():
            record = {"type": "A", "value": _ADDRESSES[tally.made // 3 % 2]}
            for method, request in (
                (SYNC, {"ownership": wire, "record": record}),
                (CONTEXT, {}),
                (GET, {"ownership": wire}),
            ):
                what = call(method, {"apiToken": token, **request})
                tally.made += 1
                if what is not None:
                    tally.failed.append(f"{method}: {what}")


def _by_npm(client: NpmClient, url: str) -> Call:
    def call(method: str, request: Mapping[str, object]) -> str | None:
        outcome = client.call(url, method, request)
        return None if outcome.response is not None else str(outcome)

    return call


def _by_httpx(client: httpx.Client, url: str) -> Call:
    def call(method: str, request: Mapping[str, object]) -> str | None:
        try:
            answer = client.post(url, json=envelope(method, dict(request)))
        except httpx.HTTPError as error:
            return repr(error)
        if answer.status_code != httpx.codes.OK:
            return f"HTTP {answer.status_code}"
        body: dict[str, Any] = answer.json()
        return str(body["error"]) if "error" in body else None

    return call
