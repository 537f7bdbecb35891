"""Logs of each process: one line an event on stderr, for our events and the libraries'.

`LOOPWRIGHT_LOGS` selects lines for people (`text`) or JSON objects for programs (`json`).
"""

from __future__ import annotations

import logging
import os
import re
import sys

import structlog

from workers.log_format import LOGS, LogFormat

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROLS_IN_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def configure_logs() -> None:
    """Send all logs to stderr, in colour on a terminal; libraries only from warnings up."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *(_json() if os.environ.get(LOGS) == LogFormat.JSON else _text()),
            ],
        )
    )
    # Some libraries set the level of their own loggers, so theirs is held here.
    handler.addFilter(_matters)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Dask gives its loggers handlers of their own.
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger) and logger.handlers:
            logger.handlers.clear()
            logger.propagate = True


def _text() -> list[structlog.typing.Processor]:
    return [
        _escape_controls,
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # The default prints local variables, and so whatever secrets they hold.
            exception_formatter=structlog.dev.plain_traceback,
        ),
    ]


def _escape_controls(
    _: object, __: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Escape control characters: a path of a request must not clear the screen or forge a line."""
    for name, value in event.items():
        if isinstance(value, str):
            has_lines = name in {"event", "exception", "stack"}
            controls = _CONTROLS_IN_LINES if has_lines else _CONTROLS
            event[name] = controls.sub(lambda match: repr(match[0])[1:-1], value)
    return event


def _json() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]


def _matters(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name.startswith(("service.", "workers."))
