"""What the modules of instructions share: a builder turns one parsed instruction into a handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.operands import Source, Target
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Lanes, PtxType, types_of

Builder: TypeAlias = Callable[[Machine, PtxInstruction], Handler]

Operation: TypeAlias = Callable[..., Any]
"""Computes the values of lanes from the values of the sources."""


def elementwise(target: Target, operation: Operation, *sources: Source) -> Handler:
    """Return the handler of an operation on single lanes."""
    if len(sources) == 1:
        (only,) = sources

        def run_one(lanes: Lanes) -> None:
            target(lanes, operation(only(lanes)))

        return run_one
    if len(sources) == 2:
        left, right = sources

        def run_two(lanes: Lanes) -> None:
            target(lanes, operation(left(lanes), right(lanes)))

        return run_two

    def run(lanes: Lanes) -> None:
        target(lanes, operation(*[source(lanes) for source in sources]))

    return run


def uniform(machine: Machine, instruction: PtxInstruction, operation: Operation) -> Handler:
    """Return the handler of an operation whose operands and result have the type it ends with."""
    kind = last_type(instruction)
    target, *sources = instruction.operands
    operands = machine.operands
    return elementwise(
        operands.target(target, kind),
        operation,
        *[operands.source(source, kind) for source in sources],
    )


def last_type(instruction: PtxInstruction) -> PtxType:
    """Return the type that the instruction ends with."""
    return types_of(instruction.parts)[-1]
