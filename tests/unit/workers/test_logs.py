"""Logs of a process: one line an event, for people or for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

CODE = """
import logging, structlog
from workers.logs import configure_logs
configure_logs()
path = "/a\\0\\x1b[31m\\nb\\x7f"
structlog.get_logger("service.test").info("claimed", job="j1", secs=0.5, path=path)
logging.getLogger("service.other").info("ours")
logging.getLogger("somebody.else").info("theirs")
logging.getLogger("somebody.else").warning("careful")
secret = "hunter2"
try:
    raise ValueError("broken")
except ValueError:
    structlog.get_logger("service.test").exception("failed")
"""


def lines(log_format: str) -> list[str]:
    env = {**os.environ, "LOOPWRIGHT_LOGS": log_format}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=env,
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_json_has_an_object_a_line() -> None:
    events = list(map(json.loads, lines("json")))
    assert [event["event"] for event in events] == ["claimed", "ours", "careful", "failed"]
    assert events[0]["job"] == "j1"
    assert events[0]["level"] == "info"
    assert "ValueError: broken" in events[3]["exception"]


def test_control_characters_are_escaped() -> None:
    claimed = lines("text")[0]
    assert r"/a\x00\x1b[31m\nb\x7f" in claimed


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_libraries_log_from_warnings_up_and_no_variable_is_printed(log_format: str) -> None:
    text = "\n".join(lines(log_format))
    assert "theirs" not in text
    assert "careful" in text
    assert "hunter2" not in text
    assert "\x1b[" not in text  # no colours in a pipe
