"""The reference semantics of expressions: one scalar, or one lane of a vector, at a time."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from compiler.ir.analysis.checked_indices import is_loaded
from compiler.ir.core.dtypes import DType, bits, is_float, is_integer, wrapped
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.intrinsics import INTRINSICS
from compiler.ir.core.lane_calls import SHUFFLE, picked_lanes, place_of_lane
from compiler.ir.core.llvm_calls import LLVM_CALL, llvm_function
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    StringImm,
    Var,
    static_int,
    static_shape,
)

Array: TypeAlias = NDArray[Any]
Number: TypeAlias = int | float | bool


class EvaluationError(Exception):
    """A program that accesses memory outside of its buffers, or whose threads miss a barrier."""


@dataclass(eq=False, slots=True)
class Thread:
    """One thread: the values of its variables, its position in the block, its views of buffers."""

    env: dict[Var, Number] = field(default_factory=dict)
    indices: dict[str, int] = field(default_factory=dict)
    views: dict[Buffer, Array] = field(default_factory=dict)


class ExpressionEvaluator(ABC):
    """Evaluates expressions for a thread; `names` are bound to values that are loaded."""

    names: Container[Var] = frozenset()

    @abstractmethod
    def storage(self, buffer: Buffer, thread: Thread) -> Array:
        """Return the elements of a buffer that a thread sees."""

    def load(self, buffer: Buffer, indices: tuple[Expr, ...], thread: Thread, lane: int) -> Number:
        """Return an element; if a loaded index is out of bounds, the nearest element."""
        array = self.storage(buffer, thread)
        element_index = self.element(buffer, indices, thread, lane)
        if not all(0 <= i < n for i, n in zip(element_index, array.shape, strict=True)):
            nearest = zip(element_index, array.shape, strict=True)
            element_index = tuple(min(max(i, 0), n - 1) for i, n in nearest)
        number: Number = array[element_index].item()
        return number

    def element(
        self, buffer: Buffer, indices: tuple[Expr, ...], thread: Thread, lane: int
    ) -> tuple[int, ...]:
        """Return the indices of an access, out of bounds only if an index is a loaded value.

        Raises:
            EvaluationError: If another index is out of bounds.
        """
        element_index = tuple([int(self.value(i, thread, lane)) for i in indices])
        is_inside = len(element_index) == len(buffer.shape)
        for i, extent, index in zip(element_index, buffer.shape, indices, strict=False):
            is_inside &= 0 <= i < static_int(extent) or is_loaded(index, self.names)
        if not is_inside:
            shape = list(static_shape(buffer))
            raise EvaluationError(f"{buffer.name}{list(element_index)} is outside of {shape}")
        return element_index

    def value(self, expr: Expr, thread: Thread, lane: int = 0) -> Number:  # noqa: C901 - a node a case
        """Return the value of an expression; for a vector, that of one lane."""
        # Nearly all nodes are of these kinds, and `match` takes several times as long.
        if isinstance(expr, Var):
            return thread.env[expr]
        if isinstance(expr, IntImm | FloatImm):
            return expr.value
        if isinstance(expr, BinOp):
            return self._arithmetic(expr, thread, lane)
        match expr:
            case Compare(op, lhs, rhs):
                return _compare(op, self.value(lhs, thread, lane), self.value(rhs, thread, lane))
            case Logic("and", lhs, rhs):
                return bool(self.value(lhs, thread, lane)) and bool(self.value(rhs, thread, lane))
            case Logic(_, lhs, rhs):
                return bool(self.value(lhs, thread, lane)) or bool(self.value(rhs, thread, lane))
            case Not(inner):
                return not self.value(inner, thread, lane)
            case Select(condition, then, otherwise):
                sides = self.value(then, thread, lane), self.value(otherwise, thread, lane)
                return sides[0] if self.value(condition, thread, lane) else sides[1]
            case Conditional(condition, then, otherwise):
                branch = then if self.value(condition, thread, lane) else otherwise
                return self.value(branch, thread, lane)
            case Cast(dtype, inner):
                return converted(self.value(inner, thread, lane), dtype)
            case Call():
                return self._call(expr, thread, lane)
            case Load(buffer, indices):
                return self.load(buffer, indices, thread, lane)
            case Ramp(base, stride, _):
                number = int(self.value(base, thread)) + stride * lane
                return _wrapped(number, dtype_of(base))
            case Broadcast(inner, _):
                return self.value(inner, thread)
            case StringImm():
                raise AssertionError("no value")
            case _:
                assert_never(expr)

    def lanes(self, expr: Expr, thread: Thread) -> list[Number]:
        """Return the values of all lanes."""
        return [self.value(expr, thread, lane) for lane in range(lanes_of(expr))]

    def _call(self, call: Call, thread: Thread, lane: int) -> Number:
        match call:
            case Call("likely", (inner,), _):
                return self.value(inner, thread, lane)
            case Call("undef", _, dtype):
                return unlike_any(dtype)
            case Call("reinterpret", (inner,), dtype):
                raw = np.array(self.lanes(inner, thread), dtype=dtype_of(inner))
                number: Number = raw.view(dtype)[lane].item()
                return number
            case Call(name, (_, *vectors), _) if name == SHUFFLE:
                picked = picked_lanes(call)[lane]
                position, inner_lane = place_of_lane(picked, [lanes_of(v) for v in vectors])
                return self.value(vectors[position], thread, inner_lane)
            case Call(name, (StringImm(function), *operands), dtype) if name == LLVM_CALL:
                arguments = [self.lanes(operand, thread) for operand in operands]
                reference = llvm_function(function).reference_for(dtype_of(operands[0]))
                return converted(reference(*arguments)[lane], dtype)
            case Call(name, args, dtype):
                numbers = [_scalar(self.value(a, thread, lane), dtype_of(a)) for a in args]
                result = np.asarray(INTRINSICS[name].reference(*numbers)).item()
                return float(result) if is_float(dtype) else converted(result, dtype)

    def _arithmetic(self, expr: BinOp, thread: Thread, lane: int) -> Number:
        a, b = self.value(expr.lhs, thread, lane), self.value(expr.rhs, thread, lane)
        dtype = dtype_of(expr)
        if is_float(dtype):
            return float(_FLOATS[expr.op](float(a), float(b)))
        if expr.op in ("<<", ">>"):
            # A shift drops bits, and fills with zeros or with the sign.
            b = int(b) if 0 <= b < bits(dtype) else bits(dtype)
        return _wrapped(_INTEGERS[expr.op](int(a), int(b)), dtype)


# Python rounds sums and products of floats as NumPy does, in less time.
_FLOATS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
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
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}


_COMPARISONS: dict[str, Any] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def unlike_any(dtype: DType) -> Number:
    """Return a value that no program computes on purpose."""
    return float("nan") if is_float(dtype) else dtype == "bool" or 113


def _scalar(value: Number, dtype: DType) -> Any:
    """Return a NumPy scalar: floats in float64, so that they are not rounded on the way."""
    return np.float64(value) if is_float(dtype) else np.dtype(dtype).type(value)


def _compare(op: str, a: Number, b: Number) -> bool:
    return bool(_COMPARISONS[op](a, b))


def _wrapped(value: int, dtype: DType) -> int:
    """Wrap an integer to the range of its type, as machines do; a bool remains as it is."""
    return wrapped(value, dtype) if is_integer(dtype) else value


def converted(value: Number, dtype: DType) -> Number:
    """Return a value converted to a type."""
    if dtype == "bool":
        return bool(value)
    if is_float(dtype):
        return np.asarray(value).astype(dtype).item()  # type: ignore[no-any-return]
    return _wrapped(math.trunc(value), dtype)
