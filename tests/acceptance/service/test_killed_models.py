"""A model of 50 tasks ends as if nothing had been killed: a short form of `make fuzz-kills`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import postgres as postgresql

pytestmark = pytest.mark.slow


def killed(*options: str) -> str:
    """Run the kills in a process of their own, which forks; return what it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.service.killed_models", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_model_of_50_tasks_ends_as_if_nothing_had_been_killed() -> None:
    # Few schedules per task: most of the time is spent on storing trials.
    line = killed("--kills", "6", "--seed", "1", "--rules", "spatial_blocks")
    assert "of 50 tasks; killed: api" in line


def test_a_model_on_postgresql_ends_as_if_nothing_had_been_killed(
    postgres: postgresql.Server,
) -> None:
    with postgres.database():
        line = killed("--tasks", "6", "--kills", "4", "--db", postgres.url)
    assert line.startswith("160 trials of 6 tasks")
