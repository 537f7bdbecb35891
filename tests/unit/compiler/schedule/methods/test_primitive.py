"""A primitive is declared once: its instruction follows from the method's signature."""

from __future__ import annotations

import inspect

import pytest

from compiler.schedule.methods import primitive as module
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.schedule import Schedule
from compiler.schedule.state import State
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.schedule.trace.instruction_kinds import InstructionKind, Parameter


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> list[InstructionKind]:
    """Return the instructions that a test declares, without adding them to all others."""
    instructions: list[InstructionKind] = []
    monkeypatch.setattr(module, "register", instructions.append)
    return instructions


def test_an_instruction_follows_from_a_signature(declared: list[InstructionKind]) -> None:
    class Methods(State):
        @primitive()
        def move_near(self, block: BlockRV | str, loop: LoopRV, index: int = -1) -> list[LoopRV]:
            raise NotImplementedError

    assert declared == [
        InstructionKind(
            "move_near",
            "MoveNear",
            (
                Parameter("block", "block"),
                Parameter("loop", "loop"),
                Parameter("index", "int", is_optional=True, is_attribute=True),
            ),
            "l",
            None,
        )
    ]
    assert "move_near" in vars(Methods)


def test_a_parameter_that_traces_cannot_hold_is_no_parameter(
    declared: list[InstructionKind],
) -> None:
    with pytest.raises(KeyError, match="bytes"):

        class Methods(State):
            @primitive()
            def load(self, content: bytes) -> None: ...

    assert not declared


def test_a_primitive_shows_its_signature_and_its_documentation() -> None:
    assert list(inspect.signature(Schedule.compute_at).parameters) == [
        "self",
        "block",
        "loop",
        "preserve_unit_loops",
        "index",
    ]
    assert (inspect.getdoc(Schedule.compute_at) or "").startswith("Compute a block under a loop")
