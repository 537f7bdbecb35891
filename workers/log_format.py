"""The format of log lines. Imports nothing, because every command has the option."""

from __future__ import annotations

from enum import StrEnum

LOGS = "LOOPWRIGHT_LOGS"
"""The environment variable of the format; child processes read it, too."""


class LogFormat(StrEnum):
    """The reader of log lines."""

    TEXT = "text"  # people
    JSON = "json"  # programs
