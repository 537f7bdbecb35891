"""Every kind of instruction has a golden program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.schedule.trace.instruction_kinds import INSTRUCTION_KINDS

GOLDEN_TEXTS = tuple(Path(__file__).parent.glob("*/*.txt"))
CALL = re.compile(r"^# (?:[\w, ]+ = )?sch\.(\w+)\(", re.MULTILINE)


def called() -> set[str]:
    """Return the names of the instructions in the changes that the golden files show."""
    return {name for path in GOLDEN_TEXTS for name in CALL.findall(path.read_text())}


@pytest.mark.parametrize("name", INSTRUCTION_KINDS)
def test_an_instruction_has_a_golden_program(name: str) -> None:
    assert name in called(), f"no golden file beside {Path(__file__).name} calls {name}"


def test_every_golden_program_has_a_test() -> None:
    tests = {
        (module.stem, test)
        for module in Path(__file__).parent.glob("test_*.py")
        for test in re.findall(r"^def test_(\w+)\(golden", module.read_text(), re.MULTILINE)
    }
    assert {(path.parent.name, path.stem) for path in GOLDEN_TEXTS} == tests
