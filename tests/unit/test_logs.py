"""Log lines: in both forms, an exception's frames are shown and what was in them is not."""

import contextvars
import io
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import structlog
from hypothesis import example, given, strategies as st

from gateway import logs, underway
from gateway.contract.faults import quoted
from gateway.logs import configure_logging, set_level

FORMS = st.sampled_from(["json", "console"])
ANYTHING = st.text() | st.text(
    alphabet="\x1b\n\r\x00\x85\u2028\u202e\ud800=\"' [info]a", max_size=40
)

BREAKING = """
import structlog
from gateway.logs import configure_logging

configure_logging("info", "{form}")
log = structlog.get_logger("gateway.test")


def admit(token):
    raise KeyError("client")


try:
    admit("gwc_" + "s3cret" * 8)
except KeyError:
    log.exception("call broke", incident_id="abc")
log.debug("not at this level")
"""


def lines_of(form: str) -> list[str]:
    """What a process of its own logs, since logging is configured once for a whole process."""
    script = BREAKING.format(form=form)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


@pytest.mark.parametrize("form", ["json", "console"])
def test_exception_is_logged_without_the_values_in_its_frames(form: str) -> None:
    text = "\n".join(lines_of(form))
    assert "KeyError" in text
    assert "admit" in text
    assert "s3cret" * 8 not in text
    assert "s3crets3cret" not in text
    assert "not at this level" not in text


def test_json_form_is_one_object_a_line() -> None:
    (line,) = lines_of("json")
    entry = json.loads(line)
    assert (entry["event"], entry["level"], entry["incident_id"]) == ("call broke", "error", "abc")


@contextmanager
def logged(form: str, level: str = "info") -> Iterator[io.StringIO]:
    """What is logged within the block, as on standard error; afterwards all is as it was before."""
    root, stderr, written = logging.getLogger(), sys.stderr, io.StringIO()
    handlers, threshold = root.handlers, root.level
    sys.stderr = written
    try:
        configure_logging(level, form)
        yield written
    finally:
        sys.stderr = stderr
        root.handlers = handlers
        root.setLevel(threshold)
        structlog.reset_defaults()


@given(FORMS, ANYTHING, ANYTHING, ANYTHING)
@example(
    "console", "\n2026-11-30T08:35:01.4Z [info     ] call answered", "\x1b]0;title\x07", "\x9b2J"
)
def test_text_of_others_neither_breaks_a_line_nor_a_terminal(
    form: str, value: str, deeper: str, key: str
) -> None:
    with logged(form) as written:
        log = structlog.get_logger("gateway.test")
        log.info("call refused", method=value, found=[{deeper: deeper}, (value,)], **{f"k{key}": 1})
        logging.getLogger("gateway.test").warning("%s is refused", value)
    text = written.getvalue()
    assert text.endswith("\n")
    first, second = text[:-1].split("\n")
    assert first.isprintable()
    assert second.isprintable()
    if form == "json":
        assert json.loads(first)["event"] == "call refused"
        assert json.loads(second)["event"].endswith(" is refused")
        assert all(text.isprintable() for text in json.loads(first).values() if type(text) is str)


@given(FORMS, ANYTHING)
@example("console", "boom\n2026-11-30T08:35:01.4Z [info     ] call answered\x1b[2J")
def test_message_of_an_exception_passes_for_no_line_of_the_log(form: str, message: str) -> None:
    with logged(form) as written:
        try:
            raise ValueError(message)
        except ValueError:
            structlog.get_logger("gateway.test").exception("call broke")
    first, *rest = written.getvalue()[:-1].split("\n")
    assert "call broke" in first
    assert all(line.isprintable() for line in (first, *rest))
    assert all(line.startswith("    | ") for line in rest)
    assert bool(rest) is (form == "console")


@given(FORMS, st.integers(5_000, 200_000))
def test_long_text_is_cut(form: str, length: int) -> None:
    with logged(form) as written:
        structlog.get_logger("gateway.test").info("call refused", method="x" * length)
    assert 4_096 < len(written.getvalue()) < 4_500


@pytest.mark.parametrize("form", ["json", "console"])
def test_line_that_nobody_can_read_any_more_is_no_fault(form: str) -> None:
    with logged(form) as written:
        written.close()
        structlog.get_logger("gateway.test").info("call answered")


def test_level_set_anew_is_in_force_for_loggers_that_were_used() -> None:
    with logged("json", "info") as written:
        log, library = structlog.get_logger("gateway.test"), logging.getLogger("acme.client")
        log.debug("first")
        set_level("debug")
        log.debug("second")
        library.debug("whole requests")
        set_level("warning")
        log.info("third")
    assert [json.loads(line)["event"] for line in written.getvalue().splitlines()] == ["second"]


METHODS = st.sampled_from(["getGatewayCapabilities", "unknown"]) | ANYTHING.map(quoted)
CREDENTIALS = st.none() | st.from_regex("[0-9a-f]{36}|admin", fullmatch=True)


@given(
    METHODS,
    st.sampled_from(["status", "code"]),
    st.sampled_from(["ready", "ok", "managed-created", "internal"]),
    st.floats(0, 20_000).map(lambda seconds: round(seconds, 1)),
    CREDENTIALS,
)
def test_line_of_a_call_is_that_of_structlog(
    method: str, word: str, outcome: str, milliseconds: float, credential: str | None
) -> None:
    def line() -> str:
        with logged("json") as written:
            logs.call_ended("call answered", method, word, outcome, milliseconds)
        text, _, time = written.getvalue().partition(', "timestamp": ')
        assert re.fullmatch(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z"}\n', time)
        return text

    def lines() -> tuple[str, str]:
        underway.begin("0123456789abcdef", "2001:db8::1").credential = credential
        by_hand = line()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(logs._Lines, "is_in_use", lambda _: False)
            return by_hand, line()

    by_hand, by_structlog = contextvars.copy_context().run(lines)
    assert by_hand == by_structlog


def test_line_of_a_call_has_a_level() -> None:
    def text() -> str:
        underway.begin("0123456789abcdef", "192.0.2.1")
        with logged("json", "warning") as written:
            logs.call_ended("call answered", "unknown", "status", "ok", 1.0)
        return written.getvalue()

    assert contextvars.copy_context().run(text) == ""


def test_line_of_a_call_has_the_time_whatever_the_clock_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {
        1_790_000_000_999_999_999: "2026-09-21T14:13:20.999999Z",
        1_790_000_001_000_000_000: "2026-09-21T14:13:21.000000Z",
        1_790_000_001_000_042_000: "2026-09-21T14:13:21.000042Z",
        1_789_999_999_500_000_000: "2026-09-21T14:13:19.500000Z",
        1_798_761_600_000_001_000: "2027-01-01T00:00:00.000001Z",
    }
    moments = iter(told)

    def lines() -> list[str]:
        underway.begin("0123456789abcdef", "192.0.2.1")
        with logged("json") as written:
            for _ in told:
                logs.call_ended("call answered", "unknown", "status", "ok", 1.0)
        return written.getvalue().splitlines()

    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    found = contextvars.copy_context().run(lines)
    assert [json.loads(line)["timestamp"] for line in found] == list(told.values())


class Unspeakable:
    """A value that nobody can show."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("value", [Unspeakable(), 10**5_000], ids=["object", "number"])
def test_value_that_cannot_be_shown_does_not_break_whoever_logs_it(
    form: str, value: object
) -> None:
    with logged(form) as written:
        structlog.get_logger("gateway.test").warning("call refused", found=value)
    (line,) = written.getvalue().splitlines()
    assert "call refused" in line
    assert "unrendered" in line
