"""The priority of a process and of its session, as Linux shows them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from service.processes.priority import AUTOGROUP

PROGRAM = """
import os
from pathlib import Path
from service.processes.priority import AUTOGROUP, yield_processors
before = AUTOGROUP.read_text() if AUTOGROUP.exists() else ""
yield_processors(7)
after = AUTOGROUP.read_text() if AUTOGROUP.exists() else ""
print(os.nice(0), before.split()[-1:], after.split()[-1:])
"""
"""The last word of an autogroup is its niceness; without sessions of their own there is none."""


def shown(*, leads_session: bool) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        start_new_session=leads_session,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


def has_autogroups() -> bool:
    try:
        return "nice" in AUTOGROUP.read_text()
    except OSError:
        return False


@pytest.mark.skipif(not has_autogroups(), reason="this host has no autogroups")
def test_a_process_that_leads_a_session_lowers_its_priority_too() -> None:
    assert shown(leads_session=True) == "7 ['0'] ['7']"


def test_a_process_leaves_the_priority_of_a_session_that_it_does_not_lead() -> None:
    niceness, before, after = shown(leads_session=False).split(" ")
    assert niceness == "7"
    assert before == after
