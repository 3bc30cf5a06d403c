"""Logging: structured lines on standard error, as JSON or for a console.

Responsible for the form and the level of all log lines, those of libraries included. What may not
be logged (tokens, keys, TSIG secrets) is kept out where lines are written, not filtered here; and
libraries that would log whole requests at debug level are held at warning. Called once by the
command line.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

import structlog

_HELD_AT_WARNING: Final = ("acme", "asyncio", "httpcore", "httpx", "urllib3", "uvicorn")


def configure_logging(level: str, form: str) -> None:
    """Set the level (`debug`, `info`, `warning`, `error`) and the form (`json`, `console`)."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(form),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name in _HELD_AT_WARNING:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))


def _rendering(form: str) -> list[structlog.typing.Processor]:
    if form == "json":
        # Without the locals of each frame, which structlog shows by default: tokens and keys.
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [structlog.processors.ExceptionRenderer(frames), structlog.processors.JSONRenderer()]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
