"""An estimate of a loop's instructions, which decides whether it is launched on threads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import assert_never

from compiler.ir.arith.bounds import bounds
from compiler.ir.core.dtypes import bits
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Buffer,
    Call,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.visit import operands_of, walk

LAUNCH_INSTRUCTIONS = 20_000
"""A loop of fewer instructions runs inline: it takes 2 to 7 microseconds. Two threads that are
awake gain from 3 microseconds on; waking one takes as long again, or ten times as long
(`benchmarks/compiler/parallel_launch.py`)."""

# About the length of a polynomial of `vector_math`.
_CALL_INSTRUCTIONS = 25
# A guess: loops of unknown length search, or iterate until a value is exact.
_WHILE_ITERATIONS = 16


class InstructionEstimate:
    """Estimates the number of instructions that statements execute.

    Loads, stores and operations count 1; a product that is added counts 0, since it is fused.
    A call counts as a polynomial; addresses count 0, since they are hoisted. A vectorized loop
    executes once for each vector. Of two alternatives, the longer one counts. An extent that varies
    counts as its largest value.

    Args:
        extents: The extents of the loops around.
        vector_bits: The width of the CPU's vectors.
        registers: The buffers that are kept in registers, whose accesses count 0.
    """

    def __init__(
        self, extents: Mapping[Var, int], vector_bits: int, registers: Collection[Buffer]
    ) -> None:
        self._extents = dict(extents)
        self._vector_bits = vector_bits
        self._registers = registers

    def count(self, stmt: Stmt) -> int:
        """Return the estimated instructions of a statement."""
        match stmt:
            case Store():
                return self._access(stmt.buffer) + self._value(stmt.value)
            case Seq(stmts):
                return sum(self.count(child) for child in stmts)
            case If(condition, then, otherwise):
                sides = (self.count(then), 0 if otherwise is None else self.count(otherwise))
                return self._value(condition) + max(sides)
            case Let(_, value, body):
                return self._value(value) + self.count(body)
            case While(condition, body):
                return _WHILE_ITERATIONS * (self._value(condition) + self.count(body))
            case For():
                return self._loop(stmt)
            case Allocate(_, body):
                return self.count(body)
            case Evaluate():
                return 0
            case BlockRealize():
                raise AssertionError("blocks are realized before code generation")
            case _:
                assert_never(stmt)

    def _loop(self, loop: For) -> int:
        extent = self._extent(loop.extent)
        self._extents[loop.var] = extent
        lanes = _lanes(loop, self._vector_bits) if loop.kind == "vectorized" else 1
        return -(-extent // lanes) * self.count(loop.body)

    def _extent(self, extent: Expr) -> int:
        if isinstance(extent, IntImm):
            return extent.value
        interval = bounds(extent, self._extents)
        return 1 if interval is None else max(interval[1], 0)

    def _access(self, buffer: Buffer) -> int:
        return int(buffer not in self._registers)

    def _value(self, expr: Expr) -> int:
        match expr:
            case Load():
                return self._access(expr.buffer)
            case Conditional(condition, then, otherwise):
                sides = (self._value(then), self._value(otherwise))
                return 1 + self._value(condition) + max(sides)
            case Call():
                instructions = _CALL_INSTRUCTIONS
            case BinOp("+" | "-", BinOp("*"), _) | BinOp("+" | "-", _, BinOp("*")):
                instructions = 0
            case BinOp():
                instructions = 1
            case _:
                instructions = 0
        return instructions + sum(self._value(operand) for operand in operands_of(expr))


def _lanes(loop: For, vector_bits: int) -> int:
    widths = [bits(node.buffer.dtype) for node in walk(loop.body) if isinstance(node, Store)]
    return max(1, vector_bits // max(widths, default=vector_bits))
