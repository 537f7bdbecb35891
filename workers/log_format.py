"""How lines of logs look. Imports nothing: every command has the option."""

from __future__ import annotations

from enum import StrEnum

LOGS = "LOOPWRIGHT_LOGS"
"""The variable that says how; processes that one with it starts read it too."""


class LogFormat(StrEnum):
    """For whom lines are."""

    TEXT = "text"  # people
    JSON = "json"  # programs
