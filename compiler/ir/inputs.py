"""The parameters of a program: which it reads, which it writes, and values to try it on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compiler.ir.coverage import written_whole
from compiler.ir.dtypes import DType, is_float, is_signed
from compiler.ir.nodes import (
    Allocate,
    BlockRealize,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    Let,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    static_shape,
)
from compiler.ir.visit import walk

# Functions that have no value for negative arguments.
_NEED_POSITIVE = frozenset({"log", "log2", "pow", "rsqrt", "sqrt"})


class Roles(NamedTuple):
    """Parameters by name; one that is updated in place, or in part, is in both lists."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def param_roles(func: PrimFunc) -> Roles:
    """Tell which parameters a program reads before it writes them, and which it writes."""
    accesses = _Accesses()
    accesses.stmt(func.body)
    made = written_whole(func) - accesses.read_first
    return Roles(
        tuple(p.name for p in func.buffers if p not in made),
        tuple(p.name for p in func.buffers if p in accesses.written),
    )


def random_inputs(func: PrimFunc, seed: int) -> dict[str, NDArray[Any]]:
    """Return random values for the parameters that a program reads, by name.

    Floating-point values have magnitudes from 0.25 to 1, so that divisions and sums are tame, and
    random signs, unless the program calls a function that has no value for negative arguments.
    Integers are small. The same seed gives the same values.
    """
    rng = np.random.default_rng(seed)
    signed = not any(
        isinstance(node, Call) and node.name in _NEED_POSITIVE for node in walk(func.body)
    )
    inputs = param_roles(func).inputs
    return {
        buffer.name: _values(rng, static_shape(buffer), buffer.dtype, signed=signed)
        for buffer in func.buffers
        if buffer.name in inputs
    }


def _values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, *, signed: bool
) -> NDArray[Any]:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    if not is_float(dtype):
        return rng.integers(-8 if is_signed(dtype) else 0, 9, shape).astype(dtype)
    values = rng.uniform(0.25, 1.0, shape)
    if signed:
        values *= rng.choice((-1.0, 1.0), shape)
    return values.astype(dtype)


class _Accesses:
    """The buffers that are written, and those that are read before that, in program order."""

    def __init__(self) -> None:
        self.read_first: set[Buffer] = set()
        self.written: set[Buffer] = set()
        self._viewed: dict[Buffer, Buffer] = {}  # what the matched buffers are views of

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
            case For(_, _, body) | Allocate(_, body):
                self.stmt(body)
            case BlockRealize(values, predicate, block):
                self._exprs(*values, predicate)
                for match in block.match_buffers:
                    self._viewed[match.buffer] = self._origin(match.source.buffer)
                if block.init is not None:
                    self.stmt(block.init)
                self.stmt(block.body)

    def _exprs(self, *exprs: Expr) -> None:
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, Load):
                    buffer = self._origin(node.buffer)
                    if buffer not in self.written:
                        self.read_first.add(buffer)

    def _origin(self, buffer: Buffer) -> Buffer:
        return self._viewed.get(buffer, buffer)
