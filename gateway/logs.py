"""Logging: structured lines on standard error, as JSON or for a console.

Responsible for the form and the level of all log lines, those of libraries included, and for text
of others in them: it can neither begin a line nor steer a terminal, in either form. What may not
be logged (tokens, keys, TSIG secrets) is kept out where lines are written, not filtered here; and
libraries that would log whole requests at debug level are held at warning.

The gateway's own lines do not go through the standard library's records and formatters, as those of
libraries do: that took twice as long.

Called by the command line, `set_level` by whatever changes the level of a running process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import structlog

from gateway import tracing
from gateway.printable import printable
from gateway.underway import underway

if TYPE_CHECKING:
    from typing import TextIO

    from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

_HELD_AT_WARNING: Final = ("acme", "asyncio", "httpcore", "httpx", "urllib3", "uvicorn")

_LONGEST_TEXT: Final = 4_096
_LONGEST_EXCEPTION: Final = 65_536
_FRAME_MARGIN: Final = "    | "
"""What each line of a traceback begins with, so that none passes for a log line of its own."""


def configure_logging(level: str, form: str) -> None:
    """Set the level (`debug`, `info`, `warning`, `error`) and the form (`json`, `console`)."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_call,
        _with_trace_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    global _json_lines
    handler = _Handler(sys.stderr)
    lines = handler.lines = _Lines(handler)
    _json_lines = lines if form == "json" else None
    structlog.configure(
        # Judged by the standard library's level at each line: a logger is kept once it was used,
        # and the level may change after that.
        processors=[structlog.stdlib.filter_by_level, *shared, *_rendering(form)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(form),
            ],
        )
    )
    logging.getLogger().handlers = [handler]
    set_level(level)


def call_ended(
    event: str, method: str, word: str, outcome: str, milliseconds: float, *, may_wait: bool = False
) -> None:
    """The one line that each call has, at level info: `event`, and `outcome` under the name `word`.

    One that may wait is written with those of other calls, once this turn of the event loop is
    over: to write it was a tenth of a call. The line is that of structlog, which takes ten times as
    long to make it: it is of a known shape, and of texts that are short and for printing.
    """
    lines, call = _json_lines, underway()
    if lines is None or call is None or tracing.is_recording() or not lines.is_in_use():
        log = structlog.get_logger(__name__)
        log.info(event, method=method, **{word: outcome}, milliseconds=milliseconds)
    elif logging.root.level <= logging.INFO:
        by = "" if call.credential is None else f', "credential": {_quoted(call.credential)}'
        write = lines.hold if may_wait else lines.write
        write(
            f'{{"method": {_quoted(method)}, "{word}": {_quoted(outcome)},'
            f' "milliseconds": {milliseconds!r}, "event": "{event}",'
            f' "request_id": "{call.request_id}", "remote": "{call.remote}"{by},'
            f' "level": "info", "timestamp": "{lines.now()}"}}'
        )


def set_level(level: str) -> None:
    """Set the level anew: in force for the next line."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger().setLevel(threshold)
    for name in _HELD_AT_WARNING:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))


_quoted: Final = json.encoder.encode_basestring_ascii

_json_lines: _Lines | None = None
"""Where lines of JSON go, in that form."""


class _Handler(logging.StreamHandler["TextIO"]):
    """Writes the lines of libraries, after those that are held."""

    lines: _Lines

    def emit(self, record: logging.LogRecord) -> None:
        """Write one."""
        self.lines.write_held()
        super().emit(record)

    def close(self) -> None:
        """Write what is held: the process ends."""
        self.lines.write_held()
        super().close()


class _Lines:
    """Writes lines that are rendered, beside those that a handler writes; for structlog."""

    disabled = False

    def __init__(self, handler: logging.StreamHandler[TextIO]) -> None:
        self._handler = handler
        self._held: list[str] = []
        self._second, self._spelled = -1, ""
        self.debug = self.info = self.warning = self.error = self.critical = self.write
        self.getEffectiveLevel = logging.getLogger().getEffectiveLevel

    def is_in_use(self) -> bool:
        """Whether nobody has set up the logging otherwise since."""
        return self._handler in logging.root.handlers

    def now(self) -> str:
        """The time as lines have it: ISO 8601, UTC.

        All but its fraction is spelled once a second: to spell it for each line was 2% of a call.
        """
        second, microseconds = divmod(time.time_ns() // 1_000, 1_000_000)
        if second != self._second:
            self._second = second
            self._spelled = datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
        return f"{self._spelled}.{microseconds:06d}Z"

    def hold(self, line: str) -> None:
        """Write a line with those that follow in this turn of the event loop."""
        if not self._held:
            asyncio.get_running_loop().call_soon(self.write_held)
        self._held.append(line)

    def write_held(self) -> None:
        """Write the lines that are held, if there are any."""
        if self._held:
            self.write(self._held.pop())

    def write(self, line: str) -> None:
        """Write one line, after those that are held."""
        handler = self._handler
        handler.acquire()
        try:
            held, self._held = self._held, []
            handler.stream.write(handler.terminator.join((*held, line, "")))
            handler.flush()
        except (OSError, ValueError):  # nobody reads it any more; there is nowhere to say so
            pass
        finally:
            handler.release()


def _with_call(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Tell of the call that is under way, where there is one."""
    call = underway()
    if call is not None:
        for name, value in call.told().items():
            event.setdefault(name, value)
    return event


def _with_trace_id(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Name the trace that a line belongs to, where one is recorded."""
    trace_id = tracing.trace_id()
    if trace_id is not None:
        event["trace_id"] = trace_id
    return event


def _rendering(form: str) -> list[Processor]:
    if form == "json":
        # Without the locals of each frame, which structlog shows by default: tokens and keys.
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            _Rendering(
                structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()
            )
        ]
    return [
        _Rendering(
            structlog.processors.ExceptionRenderer(_frames_of),
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        )
    ]


class _Rendering:
    """Makes a line of what it tells; a line is never worth whoever writes it.

    Where a value cannot be rendered, the line tells that instead of all values.
    """

    def __init__(self, of_exception: Processor, of_all: Processor) -> None:
        self._of_exception = of_exception
        self._of_all = of_all

    def __call__(self, logger: WrappedLogger, name: str, event: EventDict) -> Any:
        told = {each: event[each] for each in ("event", "level", "timestamp") if each in event}
        try:
            event = self._of_exception(logger, name, event)  # type: ignore[assignment]
            return self._of_all(logger, name, _without_control(event))
        except Exception as fault:  # noqa: BLE001 (a value's own code may raise anything)
            unrendered = {**told, "unrendered": type(fault).__name__}
            return self._of_all(logger, name, _without_control(unrendered))


def _frames_of(exc_info: ExcInfo) -> str:
    text = "".join(traceback.format_exception(*exc_info))[:_LONGEST_EXCEPTION]
    # At "\n" alone: other line ends are escaped, and those of a message pass for frames at most.
    lines = text.rstrip("\n").split("\n")
    return "\n".join(f"{_FRAME_MARGIN}{_shown(line)}" for line in lines)


def _without_control(event: EventDict) -> EventDict:
    """Escape what is not for printing in every key and value, also in JSON: `jq -r` would print it.

    A traceback as text has been escaped line by line, and stays in lines.
    """
    return {
        _shown(name): value if name == "exception" and type(value) is str else _harmless(value)
        for name, value in event.items()
    }


def _harmless(value: object) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, dict):
        return {_shown(str(name)): _harmless(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(item) for item in value]
    return _shown(repr(value))


def _shown(text: str) -> str:
    """The text, cut to a length, without what is not for printing."""
    return printable(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}...")
