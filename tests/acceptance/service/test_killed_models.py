"""Models and searches over ranges end as if nothing had been killed, as in `make fuzz-kills`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import postgres as postgresql

pytestmark = pytest.mark.slow


def killed(*options: str, module: str = "killed_models") -> str:
    """Run the kills in a process of their own, which forks; return what it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.acceptance.service.{module}", *options],
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


def test_coordinators_that_die_or_stall_amid_a_choice_of_kernels_lose_and_repeat_nothing() -> None:
    assert "timings" in killed(module="killed_ranges")
