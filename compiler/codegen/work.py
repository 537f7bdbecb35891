"""How much work a loop is, roughly: whether threads would gain by it is decided before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from compiler.ir.bounds import bounds
from compiler.ir.dtypes import bits
from compiler.ir.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Call,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.visit import operands_of, walk

LAUNCH_INSTRUCTIONS = 20_000
"""A loop of fewer instructions runs inline: it lasts 2 to 8 microseconds, and to wake a thread that
sleeps takes as long."""

_CALL = 12


def instructions(stmt: Stmt, extents: Mapping[Var, int], vector_bits: int) -> int:
    """Return about how many instructions a statement runs.

    Loads, stores and operations count one each, functions of a number a dozen, and addresses
    nothing, since they are computed outside; a vectorized loop runs as many as it has vectors. Of a
    choice the dearer side counts. An extent that varies counts as its largest value.

    Args:
        extents: Of the loops around it.
    """
    return _count(stmt, dict(extents), vector_bits)


def _count(stmt: Stmt, extents: dict[Var, int], vector_bits: int) -> int:
    def count(inner: Stmt) -> int:
        return _count(inner, extents, vector_bits)

    match stmt:
        case Store():
            return 1 + _of_value(stmt.value)
        case Seq(stmts):
            return sum(count(each) for each in stmts)
        case If(condition, then, otherwise):
            sides = (count(then), 0 if otherwise is None else count(otherwise))
            return _of_value(condition) + max(sides)
        case Let(_, value, body):
            return _of_value(value) + count(body)
        case For():
            interval = bounds(stmt.extent, extents)
            extents[stmt.var] = 1 if interval is None else max(interval[1], 0)
            lanes = _lanes(stmt, vector_bits) if stmt.kind == "vectorized" else 1
            return -(-extents[stmt.var] // lanes) * count(stmt.body)
        case Allocate(_, body):
            return count(body)
        case Evaluate():
            return 0
        case BlockRealize():
            raise AssertionError("blocks are realized before code generation")
        case _:
            assert_never(stmt)


def _lanes(loop: For, vector_bits: int) -> int:
    widths = [bits(node.buffer.dtype) for node in walk(loop.body) if isinstance(node, Store)]
    return max(1, vector_bits // max(widths, default=vector_bits))


def _of_value(expr: Expr) -> int:
    match expr:
        case Load():
            return 1
        case Conditional(condition, then, otherwise):
            return 1 + _of_value(condition) + max(_of_value(then), _of_value(otherwise))
        case Call():
            own = _CALL
        case BinOp():
            own = 1
        case _:
            own = 0
    return own + sum(_of_value(operand) for operand in operands_of(expr))
