"""Every kind of instruction has a golden program, and its form in traces is written down."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.schedule.trace.instruction_kinds import INSTRUCTION_KINDS, InstructionKind, Parameter

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


def test_instructions_in_traces(golden: Callable[[str], None]) -> None:
    """Stored traces must stay readable: a changed signature shows here."""
    golden("".join(f"{as_text(kind)}\n" for _, kind in sorted(INSTRUCTION_KINDS.items())))


def as_text(instruction: InstructionKind) -> str:
    """Return what an instruction takes and gives, with TVM's attributes after a semicolon."""
    inputs = ", ".join(parameter_text(p) for p in instruction.parameters if not p.is_attribute)
    attributes = ", ".join(parameter_text(p) for p in instruction.parameters if p.is_attribute)
    notes = [f"gives {instruction.num_outputs} {instruction.outputs}"] * bool(instruction.outputs)
    notes += ["pure"] * instruction.is_pure + ["decides"] * instruction.decides
    head = f"{instruction.name} {instruction.kind}"
    return f"{head}({inputs}; {attributes}) {' '.join(notes)}".rstrip()


def parameter_text(parameter: Parameter) -> str:
    text = f"{parameter.name}: {parameter.kind}"
    return f"[{text}]" if parameter.is_optional else text
