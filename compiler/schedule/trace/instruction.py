"""Instructions of traces: primitives with their arguments, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from compiler.ir.core.frozen import frozen
from compiler.schedule.trace.instruction_kinds import INSTRUCTION_KINDS, InstructionKind

Decision: TypeAlias = int | tuple[int, ...]
TermOp: TypeAlias = Literal["+", "-", "*", "//", "%"]


@frozen
class Ref:
    """A handle in an instruction, by its name."""

    name: str


@frozen
class Term:
    """An expression of values: `v1 * 2`."""

    op: TermOp
    lhs: Operand
    rhs: Operand


@frozen
class NoteDict:
    """A mapping, as the value of an annotation."""

    items: tuple[tuple[str, Argument], ...]


Operand: TypeAlias = Ref | Term | int
Scalar: TypeAlias = Ref | Term | bool | int | float | str | None
Argument: TypeAlias = "Scalar | NoteDict | tuple[Argument, ...]"


@frozen
class Instruction:
    """An applied primitive: arguments by name in the order of its kind, outputs by their names.

    An output without a value (a factor of a loop of unknown extent) is called `_`.
    """

    name: str
    arguments: tuple[tuple[str, Argument], ...]
    outputs: tuple[str, ...] = ()
    decision: Decision | None = None

    @property
    def spec(self) -> InstructionKind:
        """Return the kind of this instruction: its parameters and outputs."""
        return INSTRUCTION_KINDS[self.name]

    def refs(self) -> tuple[str, ...]:
        """Return the names of the handles it uses."""
        return tuple(name for _, value in self.arguments for name in refs_in(value))


def refs_in(value: Argument) -> Iterator[str]:
    """Yield the names of the handles in an argument."""
    match value:
        case Ref(name):
            yield name
        case Term(_, lhs, rhs):
            yield from refs_in(lhs)
            yield from refs_in(rhs)
        case NoteDict(items):
            for _, item in items:
                yield from refs_in(item)
        case tuple():
            for item in value:
                yield from refs_in(item)
        case _:
            pass
