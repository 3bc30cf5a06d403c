"""The bench's callers hold every answer against what it should be."""

import json
import os
from collections.abc import Mapping

import pytest

from tests.bench.asking import ask_for_all
from tests.bench.bursts import Burst, keep_up, send_each
from tests.bench.scripted import answering
from tests.bench.wire import request_bytes
from tests.lab.certificates import LabAuthority
from tests.lab.process import LabFault

HOSTNAME = "a.example.test"


def test_each_request_is_sent_once_and_wrong_answers_are_failures() -> None:
    seen: list[bytes] = []

    def answer(body: bytes) -> bytes:
        seen.append(body)
        return b"wrong" if body == b"3" else b"right"

    bodies = [str(number).encode() for number in range(10)]
    with answering(answer) as port:
        load = send_each(Burst((port,), [*map(request_bytes, bodies)], b"right"), 4)
    assert sorted(seen) == bodies
    assert (load.right, load.failed) == (9, 1)


def test_who_is_told_that_there_are_too_many_asks_again() -> None:
    told: set[bytes] = set()

    def answer(body: bytes) -> bytes:
        is_first = body not in told
        told.add(body)
        return b'{"code": "overloaded"}' if is_first else b"right"

    with answering(answer) as port:
        load = send_each(Burst((port,), [request_bytes(b"1"), request_bytes(b"2")], b"right"), 2)
    assert (load.right, load.failed) == (2, 0)


@pytest.mark.parametrize("path", [os.environ["PATH"], ""])
def test_requests_are_repeated_for_the_time_and_each_answer_counts(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """By wrk, where it is there, and without it."""
    monkeypatch.setenv("PATH", path)
    with answering(lambda body: body) as port:
        burst = Burst((port,), [request_bytes(b"yes"), request_bytes(b"no")], b"yes")
        load = keep_up(burst, 0.2, 2)
    assert load.right > 0
    assert load.failed > 0
    assert load.per_second > 0


def test_nobody_there_is_a_fault() -> None:
    with answering(lambda body: body) as port:
        pass
    with pytest.raises(LabFault, match="no call was answered"):
        send_each(Burst((port,), [request_bytes(b"1")], b"1"), 1)


@pytest.mark.parametrize(("issued_for", "wrong"), [(HOSTNAME, []), ("b.example.test", [HOSTNAME])])
def test_a_certificate_for_another_hostname_is_wrong(issued_for: str, wrong: list[str]) -> None:
    answers = [_error("overloaded"), _pending(), _ready(issued_for)]
    requests = {HOSTNAME: request_bytes(b"{}")}
    with answering(lambda _: json.dumps(answers.pop(0)).encode()) as port:
        issued = ask_for_all((port,), requests, 1, longest_pause=0.01, limit_seconds=10)
    assert (issued.wrong, issued.put_off) == (wrong, 1)


def test_a_refused_certificate_is_a_fault() -> None:
    with answering(lambda _: json.dumps(_error("hostname-forbidden")).encode()) as port:
        requests = {HOSTNAME: request_bytes(b"{}")}
        with pytest.raises(LabFault, match="hostname-forbidden"):
            ask_for_all((port,), requests, 1, longest_pause=0.01, limit_seconds=10)


def _error(code: str) -> Mapping[str, object]:
    return {"error": {"data": {"code": code, "retryAfterMs": 10}}, "response": None}


def _pending() -> Mapping[str, object]:
    return {"response": {"status": "pending", "retryAfterMs": 10}}


def _ready(hostname: str) -> Mapping[str, object]:
    issued = LabAuthority().issue(hostname)
    certificate = {"chainPem": issued.chain_pem, "privateKeyPem": issued.private_key_pem}
    return {"response": {"status": "ready", "certificate": certificate}}
