"""Handles: the random variables of a trace. Each stands for a block, a loop or an integer.

Arithmetic on integers that sampling chose gives terms, which stand for what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compiler.schedule.trace.instruction import TermOp


@dataclass(frozen=True, slots=True, eq=False)
class BlockRV:
    """A block of the program under schedule.

    Attributes:
        name: What the trace calls it.
        of: The name of the block when the handle was made.
    """

    name: str
    of: str

    def __repr__(self) -> str:
        return f'<BlockRV {self.name}: block "{self.of}">'


@dataclass(frozen=True, slots=True, eq=False)
class LoopRV:
    """A loop of the program under schedule, or a place for a block that is under no loop.

    Attributes:
        name: What the trace calls it.
        of: The variable of the loop, or the place.
    """

    name: str
    of: str

    def __repr__(self) -> str:
        return f"<LoopRV {self.name}: loop {self.of}>"


class _Value:
    """Arithmetic on what stands for an integer."""

    __slots__ = ()

    def __add__(self, other: Operand) -> TermRV:
        return TermRV("+", self, other)

    def __radd__(self, other: int) -> TermRV:
        return TermRV("+", other, self)

    def __sub__(self, other: Operand) -> TermRV:
        return TermRV("-", self, other)

    def __rsub__(self, other: int) -> TermRV:
        return TermRV("-", other, self)

    def __mul__(self, other: Operand) -> TermRV:
        return TermRV("*", self, other)

    def __rmul__(self, other: int) -> TermRV:
        return TermRV("*", other, self)

    def __floordiv__(self, other: Operand) -> TermRV:
        return TermRV("//", self, other)

    def __rfloordiv__(self, other: int) -> TermRV:
        return TermRV("//", other, self)

    def __mod__(self, other: Operand) -> TermRV:
        return TermRV("%", self, other)

    def __rmod__(self, other: int) -> TermRV:
        return TermRV("%", other, self)


@dataclass(frozen=True, slots=True, eq=False)
class ExprRV(_Value):
    """An integer that a sampling instruction chose.

    Attributes:
        name: What the trace calls it.
        of: The integer.
    """

    name: str
    of: int

    def __repr__(self) -> str:
        return f"<ExprRV {self.name}: {self.of}>"


@dataclass(frozen=True, slots=True, eq=False)
class TermRV(_Value):
    """What is computed of integers that sampling chose."""

    op: TermOp
    lhs: Operand
    rhs: Operand


Operand: TypeAlias = int | _Value
SpecialLocation: TypeAlias = Literal["inline", "root"]
"""Where a block may be computed if not under a loop: in its consumers, or where it is."""

Handle: TypeAlias = BlockRV | LoopRV | ExprRV
