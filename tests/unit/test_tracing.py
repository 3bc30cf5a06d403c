"""While nothing is recorded: nothing happens, and what goes wrong within goes on as it was."""

import pytest

from gateway import tracing


def test_nothing_is_recorded_unless_told_to() -> None:
    with tracing.call([(b"traceparent", b"x")], "1", "192.0.2.1") as call:
        tracing.admitted("admin")
        tracing.speaks_for("relay.example.test", "relay")
        with tracing.work("relay.example.test"), tracing.step("finalize", "1", "ready") as step:
            tracing.step_ended(step, "Finalized", "finalizing")
            assert tracing.trace_id() is None
        tracing.dns_asked("zone", "query", "name", ("192.0.2.1", 53), "udp", "NOERROR", 0.1)
        tracing.acme_asked("authority", "newOrder", "ok", 201, 0.1)
        tracing.redis_asked("GET", 1, ("192.0.2.1", 6379), 0.1)
        tracing.call_ended(call, "unknown", "ok")
        call.forget()
    assert {call, step} == {tracing.NO_SPAN}


def test_exception_of_a_block_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="mine"), tracing.work("relay.example.test"):
        raise ValueError("mine")
