"""A client's way to certificates: ask for many hostnames, and again until each is ready.

Responsible for asking no sooner than it was told to (or than `longest_pause` allows), nor more
often than a client would that waits for a thousand, for how long each hostname took from the first
question to its certificate, and for whether each certificate is right: for its hostname, with its
key. Must not: know the gateway's code. Called by `issuance`, `issuing`.
"""

import asyncio
import heapq
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.bench.lanes import outcome_of
from tests.bench.wire import Wire
from tests.lab.process import LabFault

_IDLE_SECONDS = 0.01

_QUESTIONS_A_SECOND = 50
"""How often a client asks at the most for all that it still waits for."""


@dataclass
class Issued:
    """What came of it: all of it took `elapsed` seconds, each hostname its own `seconds`.

    `put_off` questions were too many at once, and asked again when the gateway said; so were those
    that were `refused` for a while, by their reasons.
    """

    elapsed: float = 0.0
    put_off: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@dataclass
class _Errands:
    """Questions by when they are due, and what has been answered."""

    due: list[tuple[float, str]]
    requests: Mapping[str, bytes]
    longest_pause: float
    began: float
    asked: dict[str, float] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    ready: dict[str, float] = field(default_factory=dict)
    put_off: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        return len(self.ready) == len(self.requests)

    def pause_after(self, told_ms: int) -> float:
        """How long until the next question for a hostname, told to come back after so long."""
        waiting = len(self.requests) - len(self.ready)
        return min(told_ms / 1000, max(self.longest_pause, waiting / _QUESTIONS_A_SECOND))


def ask_for_all(
    ports: Sequence[int],
    requests: Mapping[str, bytes],
    connections: int,
    *,
    longest_pause: float,
    limit_seconds: float,
) -> Issued:
    """Ask for each hostname until its certificate is there; connections take turns at the ports.

    Raises: LabFault when not all are there in time, or one is refused.
    """
    now = time.monotonic()
    errands = _Errands([(now, hostname) for hostname in requests], requests, longest_pause, now)
    try:
        asyncio.run(_ask(errands, ports, connections, limit_seconds))
    except TimeoutError:
        missing = len(requests) - len(errands.ready)
        raise LabFault(f"{missing} certificates are not there in {limit_seconds:g} s") from None
    issued = Issued(max(errands.ready.values()) - now, errands.put_off, errands.refused)
    issued.seconds = [errands.ready[name] - errands.asked[name] for name in requests]
    issued.wrong = [name for name, answer in errands.answers.items() if not _is_right(name, answer)]
    return issued


async def _ask(
    errands: _Errands, ports: Sequence[int], connections: int, limit_seconds: float
) -> None:
    wires = [Wire(ports[number % len(ports)]) for number in range(connections)]
    try:
        async with asyncio.timeout(limit_seconds):
            await asyncio.gather(*(_lane(errands, wire) for wire in wires))
    finally:
        for wire in wires:
            wire.close()


async def _lane(errands: _Errands, wire: Wire) -> None:
    while not errands.is_over:
        now = time.monotonic()
        if not errands.due or errands.due[0][0] > now:
            next_at = errands.due[0][0] if errands.due else now + _IDLE_SECONDS
            await asyncio.sleep(min(next_at - now, _IDLE_SECONDS))
            continue
        _, hostname = heapq.heappop(errands.due)
        errands.asked.setdefault(hostname, now)
        status, text = await wire.send(errands.requests[hostname])
        answer = json.loads(text)
        outcome = outcome_of(status, answer)
        if outcome == "ready":
            errands.ready[hostname] = time.monotonic()
            errands.answers[hostname] = answer["response"]["certificate"]
        elif outcome == "pending":
            pause = errands.pause_after(answer["response"]["retryAfterMs"])
            heapq.heappush(errands.due, (time.monotonic() + pause, hostname))
        elif outcome == "overloaded":
            errands.put_off += 1
            pause = answer["error"]["data"]["retryAfterMs"] / 1000
            heapq.heappush(errands.due, (time.monotonic() + pause, hostname))
        elif outcome == "refused" and "retryAfterMs" in answer["response"]:
            errands.refused[answer["response"]["reason"]] += 1
            pause = answer["response"]["retryAfterMs"] / 1000
            heapq.heappush(errands.due, (time.monotonic() + pause, hostname))
        else:
            raise LabFault(f"{hostname}: {outcome}")


def _is_right(hostname: str, certificate: dict[str, Any]) -> bool:
    leaf = x509.load_pem_x509_certificates(certificate["chainPem"].encode())[0]
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    key = load_pem_private_key(certificate["privateKeyPem"].encode(), None)
    is_its_own = names.get_values_for_type(x509.DNSName) == [hostname]
    return is_its_own and key.public_key() == leaf.public_key()
