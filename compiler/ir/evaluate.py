"""The plain meaning of a program: evaluate it one scalar at a time.

Slow and obvious on purpose: loops run in order, whatever their kind, and blocks do what TensorIR
says. It takes any program, scheduled or not, and shares nothing with lowering or code generation,
so tests hold both against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from compiler.ir.dtypes import DType, is_float, is_integer
from compiler.ir.intrinsics import INTRINSICS
from compiler.ir.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    PrimFunc,
    Ramp,
    Select,
    Seq,
    Stmt,
    Store,
    StringImm,
    Var,
    dtype_of,
    static_shape,
)
from compiler.ir.opaque import OPAQUE

Array: TypeAlias = NDArray[Any]
Number: TypeAlias = int | float | bool


class EvaluationError(Exception):
    """A program that reads or writes outside of a buffer."""


def evaluate(func: PrimFunc, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run a program on copies of its inputs, and return all its parameters by name.

    Parameters that are not among the inputs start out as NaN, or as a strange integer, and so does
    every buffer that the program allocates: what is read before it was written shows.

    Raises:
        EvaluationError: If an access is out of bounds.
    """
    memory: dict[Buffer, Array] = {}
    for buffer in func.buffers:
        given = inputs.get(buffer.name)
        memory[buffer] = poisoned(buffer) if given is None else given.copy()
    with np.errstate(all="ignore"):
        _Evaluator(memory).run(func.body)
    return {buffer.name: memory[buffer] for buffer in func.buffers}


def poisoned(buffer: Buffer) -> Array:
    """Return storage whose elements are unlike any result."""
    value = float("nan") if is_float(buffer.dtype) else buffer.dtype == "bool" or 113
    return np.full(static_shape(buffer), value, dtype=buffer.dtype)


class _Evaluator:
    def __init__(self, memory: dict[Buffer, Array]) -> None:
        self.memory = memory
        self.env: dict[Var, Number] = {}

    def run(self, stmt: Stmt) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                # The value comes first: it may read the element that is overwritten.
                number = self.value(value)
                self.memory[buffer][self.place(buffer, indices)] = _stored(number, buffer.dtype)
            case Evaluate(value):
                self.effect(value)
            case Let(var, value, body):
                self.env[var] = self.value(value)
                self.run(body)
            case Seq(stmts):
                for each in stmts:
                    self.run(each)
            case If(condition, then, otherwise):
                chosen = then if self.value(condition) else otherwise
                if chosen is not None:
                    self.run(chosen)
            case For(var, extent, body):
                for index in range(int(self.value(extent))):
                    self.env[var] = index
                    self.run(body)
            case BlockRealize():
                self.block(stmt)
            case Allocate(buffer, body):
                self.memory[buffer] = poisoned(buffer)
                self.run(body)
            case _:
                assert_never(stmt)

    def effect(self, value: Expr) -> None:
        """Evaluate for effect. What speaks to other threads or to passes does nothing here."""
        if not (isinstance(value, Call) and value.name in OPAQUE):
            self.value(value)

    def block(self, realize: BlockRealize) -> None:
        block = realize.block
        if not self.value(realize.predicate):
            return
        values = [self.value(v) for v in realize.iter_values]
        is_first = True
        for iterator, value in zip(block.iter_vars, values, strict=True):
            self.env[iterator.var] = value
            is_first = is_first and (iterator.kind != "reduce" or value == 0)
        for buffer in block.alloc_buffers:
            self.memory[buffer] = poisoned(buffer)
        if block.init is not None and is_first:
            self.run(block.init)
        self.run(block.body)

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[int, ...]:
        place = tuple(int(self.value(i)) for i in indices)
        shape = static_shape(buffer)
        if len(place) != len(shape) or any(
            not 0 <= i < n for i, n in zip(place, shape, strict=True)
        ):
            raise EvaluationError(f"{buffer.name}{list(place)} is outside of {list(shape)}")
        return place

    def value(self, expr: Expr) -> Number:  # noqa: C901 - one case a node
        match expr:
            case IntImm(value):
                return value
            case FloatImm(literal):
                return literal
            case Var():
                return self.env[expr]
            case BinOp():
                return self.arithmetic(expr)
            case Compare(op, lhs, rhs):
                return _compare(op, self.value(lhs), self.value(rhs))
            case Logic("and", lhs, rhs):
                return bool(self.value(lhs)) and bool(self.value(rhs))
            case Logic(_, lhs, rhs):
                return bool(self.value(lhs)) or bool(self.value(rhs))
            case Not(inner):
                return not self.value(inner)
            case Select(condition, then, otherwise):
                sides = self.value(then), self.value(otherwise)
                return sides[0] if self.value(condition) else sides[1]
            case Conditional(condition, then, otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case Cast(dtype, inner):
                return _converted(self.value(inner), dtype)
            case Call(name, args, _):
                arguments = [np.float64(self.value(a)) for a in args]
                return float(INTRINSICS[name].reference(*arguments))
            case Load(buffer, indices):
                number: Number = self.memory[buffer][self.place(buffer, indices)].item()
                return number
            case Ramp() | Broadcast() | StringImm():
                raise AssertionError("no scalar")
            case _:
                assert_never(expr)

    def arithmetic(self, expr: BinOp) -> Number:
        a, b = self.value(expr.lhs), self.value(expr.rhs)
        dtype = dtype_of(expr)
        if is_float(dtype):
            return float(_FLOATS[expr.op](np.float64(a), np.float64(b)))
        return _wrapped(_INTEGERS[expr.op](int(a), int(b)), dtype)


_FLOATS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
}
_INTEGERS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "min": min,
    "max": max,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}


def _compare(op: str, a: Number, b: Number) -> bool:
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _wrapped(value: int, dtype: DType) -> int:
    """Reduce an integer to what its type can hold, as machines do."""
    if not is_integer(dtype):
        return value
    kind = np.iinfo(dtype)
    return (value - int(kind.min)) % (int(kind.max) - int(kind.min) + 1) + int(kind.min)


def _converted(value: Number, dtype: DType) -> Number:
    if dtype == "bool":
        return bool(value)
    if is_float(dtype):
        return np.asarray(value).astype(dtype).item()  # type: ignore[no-any-return]
    return _wrapped(math.trunc(value), dtype)


def _stored(value: Number, dtype: DType) -> Number:
    return value if is_float(dtype) else _converted(value, dtype)
