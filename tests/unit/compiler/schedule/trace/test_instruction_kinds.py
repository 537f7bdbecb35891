"""Instructions and the methods of a schedule."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.instruction_kinds import INSTRUCTION_KINDS


def test_every_instruction_is_a_method() -> None:
    for name in INSTRUCTION_KINDS:
        assert callable(getattr(Schedule, name))
