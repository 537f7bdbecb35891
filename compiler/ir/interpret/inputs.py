"""The parameters that a program reads and writes, and random values for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.dtypes import bits, is_float, is_integer, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.library_calls import library_call, written_by_call
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Buffer,
    Call,
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
    While,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import children, walk, walk_stmts
from compiler.ir.interpret.coverage import written_whole

# Functions that are undefined for negative arguments, and those undefined below one.
_NEED_POSITIVE = frozenset({"acosh", "log", "log10", "log2", "pow", "rsqrt", "sqrt"})
_NEED_ONE = frozenset({"acosh"})
# Elements that are drawn at once. Chosen: 128 MiB.
_PART = 1 << 24
# The range of integers without other constraints.
_SMALL = (-8, 8)


class ParamRoles(NamedTuple):
    """Parameters by name; one that is updated in place, or in part, is in both lists."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def param_roles(func: PrimFunc) -> ParamRoles:
    """Return the parameters that a program reads before it writes them, and those it writes."""
    accesses = _FirstAccesses()
    accesses.stmt(func.body)
    outputs = written_whole(func) - accesses.read_first
    return ParamRoles(
        tuple(p.name for p in func.buffers if p not in outputs),
        tuple(p.name for p in func.buffers if p in accesses.written),
    )


def random_inputs(func: PrimFunc, seed: int) -> dict[str, NDArray[Any]]:
    """Return random values for the parameters that a program reads, by name.

    Floating-point values have magnitudes from 0.25 to 1, so that divisions and sums stay moderate.
    Their signs are random, unless the program calls a function that is undefined for negative
    arguments. Integers are small; those that index a buffer cover it, and divisors are positive.
    The same seed gives the same values.
    """
    rng = np.random.default_rng(seed)
    called = {node.name for node in walk(func.body) if isinstance(node, Call)}
    smallest = 1.25 if called & _NEED_ONE else 0.25
    signs = (1.0,) if called & _NEED_POSITIVE else (-1.0, 1.0)
    ranges = _Ranges(func).limits
    inputs = param_roles(func).inputs

    def draw(buffer: Buffer, num: int) -> NDArray[Any]:
        if is_float(buffer.dtype):
            magnitudes = rng.uniform(smallest, smallest + 0.75, num)
            return magnitudes * rng.choice(signs, num) if len(signs) > 1 else magnitudes
        low, high = ranges.get(buffer, (0, 1) if buffer.dtype == "bool" else _SMALL)
        return rng.integers(low if is_signed(buffer.dtype) else max(low, 0), high + 1, num)

    return {b.name: _by_parts(b, partial(draw, b)) for b in func.buffers if b.name in inputs}


def _by_parts(buffer: Buffer, draw: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
    """Return values for a parameter, which are drawn in 64 bits: by parts, to save memory."""
    values = np.empty(prod(static_shape(buffer)), buffer.dtype)
    for start in range(0, len(values), _PART):
        part = values[start : start + _PART]
        part[...] = draw(len(part))
    return values.reshape(static_shape(buffer))


class _Ranges:
    """The ranges of the elements of integer parameters for which a program is meaningful."""

    def __init__(self, func: PrimFunc) -> None:
        self.limits: dict[Buffer, tuple[int, int]] = {}
        self._params = {b for b in func.buffers if is_integer(b.dtype)}
        self._named = {s.var: s.value for s in walk_stmts(func.body) if isinstance(s, Let)}
        for node in walk(func.body):
            match node:
                case Load(buffer, indices) | Store(buffer, indices, _):
                    for index, extent in zip(indices, static_shape(buffer), strict=True):
                        self._limit(index, 0, extent - 1)
                case BinOp("//" | "%", _, rhs):
                    self._limit(rhs, 1, _SMALL[1])
                case BinOp("<<" | ">>", _, rhs):
                    self._limit(rhs, 0, bits(dtype_of(rhs)) - 1)
                case _:
                    pass

    def _limit(self, expr: Expr, low: int, high: int) -> None:
        """Record a range for the elements in an expression."""
        match expr:
            case Load(buffer, _):
                if buffer in self._params:
                    current = self.limits.get(buffer, (low, high))
                    narrowed = max(low, current[0]), min(high, current[1])
                    self.limits[buffer] = narrowed if narrowed[0] <= narrowed[1] else current
            case Var():
                if expr in self._named:
                    self._limit(self._named[expr], low, high)
            case _:
                for child in children(expr):
                    self._limit(child, low, high)  # type: ignore[arg-type]


class _FirstAccesses:
    """The buffers that are written, and those that are read before that, in program order."""

    def __init__(self) -> None:
        self.read_first: set[Buffer] = set()
        self.written: set[Buffer] = set()
        self._viewed: dict[Buffer, Buffer] = {}  # the buffers that matched buffers are views of

    def stmt(self, stmt: Stmt) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self._exprs(*indices, value)
                self.written.add(self._origin(buffer))
            case Evaluate(value):
                self._exprs(value)
            case Let(_, value, body):
                self._exprs(value)
                self.stmt(body)
            case Seq(stmts):
                for s in stmts:
                    self.stmt(s)
            case If(condition, then, otherwise):
                self._exprs(condition)
                self.stmt(then)
                if otherwise is not None:
                    self.stmt(otherwise)
            case While(condition, body):
                self._exprs(condition)
                self.stmt(body)
            case For(_, _, body) | Allocate(_, body):
                self.stmt(body)
            case BlockRealize(values, predicate, block):
                self._exprs(*values, predicate)
                for match in block.match_buffers:
                    self._viewed[match.buffer] = self._origin(match.source.buffer)
                if block.init is not None:
                    self.stmt(block.init)
                self.stmt(block.body)
                if library_call(block.body) is not None:
                    self._read(region.buffer for region in block.reads)
                    self.written.update(map(self._origin, written_by_call(stmt)))

    def _exprs(self, *exprs: Expr) -> None:
        for expr in exprs:
            self._read(node.buffer for node in walk(expr) if isinstance(node, Load))

    def _read(self, buffers: Iterable[Buffer]) -> None:
        self.read_first.update({self._origin(buffer) for buffer in buffers} - self.written)

    def _origin(self, buffer: Buffer) -> Buffer:
        return self._viewed.get(buffer, buffer)
