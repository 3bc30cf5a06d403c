"""A real gateway under damaged requests: each answer is an envelope, and it goes on serving."""

import http.client
import json

from hypothesis import given, settings, strategies as st

from tests.fuzz.conftest import FUZZ
from tests.fuzz.mutations import damaged
from tests.fuzz.test_messages import BODIES
from tests.lab.lab import Lab

STATUSES = {200, 400, 408, 413, 415}


def test_gateway_answers_every_body_with_an_envelope(lab: Lab) -> None:
    port = lab.config.port

    @settings(FUZZ)
    @given(body=damaged(BODIES), kind=st.sampled_from(["application/json", "text/plain", ""]))
    def fuzz(body: bytes, kind: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("POST", "/typedrequest", body, {"Content-Type": kind})
            answer = connection.getresponse()
            assert answer.status in STATUSES
            envelope = json.loads(answer.read())
            assert "error" in envelope
            assert envelope["error"]["data"]["code"] != "internal"
        finally:
            connection.close()

    fuzz()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()
