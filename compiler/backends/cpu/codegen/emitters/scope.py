"""The surroundings of the code being emitted: bound variables, storage of buffers, the mask."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TypeAlias

from compiler.backends.cpu.codegen.text.instructions import RegisterValue
from compiler.ir.arith.bounds import bounds
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import Buffer, Expr, Var


@frozen
class LaneRange:
    """The variable of a vectorized loop: the integers `offset, ..., offset + width - 1`."""

    offset: int
    width: int


Binding: TypeAlias = RegisterValue | LaneRange | int
"""A variable's meaning: a register, the lanes of a vector, or a constant of an unrolled loop."""


class CodeScope:
    """The surroundings of a statement or expression in one function.

    Attributes:
        env: The bindings of the variables in scope.
        extents: The number of values that each loop variable takes, counted from 0.
        storage: The pointer to the first element of each buffer.
        registers: The local buffers that LLVM's SROA turns into registers.
        mask: The lanes that execute, or None for all.
    """

    def __init__(self, registers: AbstractSet[Buffer]) -> None:
        self.env: dict[Var, Binding] = {}
        self.extents: dict[Var, int] = {}
        self.storage: dict[Buffer, RegisterValue] = {}
        self.registers = registers
        self.mask: RegisterValue | None = None

    def num_lanes(self) -> int:
        """Return the number of lanes of the enclosing vectorized loop; 1 outside of one."""
        widest = 1
        for binding in self.env.values():
            if type(binding) is LaneRange and binding.width > widest:
                widest = binding.width
        return widest

    def is_natural(self, expr: Expr) -> bool:
        """Return whether an integer expression is provably zero or more."""
        interval = bounds(expr, self.extents)
        return interval is not None and interval[0] >= 0
