"""Handles: the random variables of a trace. Each stands for a block, a loop or an integer.

Arithmetic on sampled integers gives terms, which stand for the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import add, floordiv, index, mod, mul, sub
from typing import Literal, TypeAlias

from compiler.ir.core.nodes import IntImm
from compiler.schedule.trace.instruction import TermOp
from compiler.te.value import Value


@dataclass(frozen=True, slots=True, eq=False)
class BlockRV:
    """A block of the program under schedule.

    Attributes:
        name: The name in the trace.
        of: The name of the block when the handle was made.
    """

    name: str
    of: str

    def __repr__(self) -> str:
        return f'<BlockRV {self.name}: block "{self.of}">'


@dataclass(frozen=True, slots=True, eq=False)
class LoopRV:
    """A loop of the program under schedule, or a location for a block outside of any loop.

    Attributes:
        name: The name in the trace.
        of: The variable of the loop, or the location.
    """

    name: str
    of: str

    def __repr__(self) -> str:
        return f"<LoopRV {self.name}: loop {self.of}>"


_ARITHMETIC: Mapping[TermOp, Callable[[int, int], int]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "//": floordiv,
    "%": mod,
}


class _Value:
    """Arithmetic on handles that stand for integers.

    A handle counts as its number where Python takes one: in `range`, or in an index map.
    """

    __slots__ = ()

    def __index__(self) -> int:
        """Return the integer that the handle stands for."""
        raise NotImplementedError

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
        name: The name in the trace.
        of: The integer.
    """

    name: str
    of: int

    def __index__(self) -> int:
        return self.of

    def __repr__(self) -> str:
        return f"<ExprRV {self.name}: {self.of}>"


@dataclass(frozen=True, slots=True, eq=False)
class TermRV(_Value):
    """An expression of sampled integers."""

    op: TermOp
    lhs: Operand
    rhs: Operand

    def __index__(self) -> int:
        return _ARITHMETIC[self.op](index(self.lhs), index(self.rhs))


Operand: TypeAlias = int | _Value
FactorLike: TypeAlias = "int | ExprRV | TermRV | Value | IntImm | None"
"""An extent of a split: a number, a decision or an expression of decisions, or an open one."""
SpecialLocation: TypeAlias = Literal["inline", "root"]
"""A location of a block that is not under a loop: inlined into its consumers, or unchanged."""

Handle: TypeAlias = BlockRV | LoopRV | ExprRV
