"""The types of expressions: the dtype and the number of their lanes."""

from __future__ import annotations

from compiler.ir.core.dtypes import DType, bits
from compiler.ir.core.foreign import FOREIGN_LLVM
from compiler.ir.core.lane_calls import SHUFFLE, picked_lanes
from compiler.ir.core.llvm_calls import LLVM_CALL, llvm_result
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
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
)


def dtype_of(expr: Expr) -> DType:
    """Return the scalar dtype of an expression; of a vector, that of its lanes."""
    # Called many times for every node: `match` with patterns would cost several times more.
    while isinstance(expr, BinOp):
        expr = expr.lhs
    if isinstance(expr, Var):
        assert expr.dtype != "handle", "a buffer's storage variable is not a value"
        return expr.dtype
    if isinstance(expr, Load):
        return expr.buffer.dtype
    match expr:
        case IntImm() | FloatImm() | Cast() | Call():
            return expr.dtype
        case Compare() | Logic() | Not():
            return "bool"
        case Select() | Conditional():
            return dtype_of(expr.then)
        case Ramp():
            return dtype_of(expr.base)
        case Broadcast():
            return dtype_of(expr.value)
        case StringImm():
            raise AssertionError("a string has no type: only opaque calls take it")


def lanes_of(expr: Expr) -> int:
    """Return the number of lanes of an expression; a scalar has one."""
    while isinstance(expr, BinOp):
        expr = expr.lhs
    match expr:
        case Var() | IntImm() | FloatImm() | StringImm():
            return 1
        case Load():
            return max(map(lanes_of, expr.indices), default=1)
        case Ramp() | Broadcast():
            return expr.lanes
        case Compare() | Logic():
            return lanes_of(expr.lhs)
        case Not() | Cast():
            return lanes_of(expr.value)
        case Select() | Conditional():
            return lanes_of(expr.then)
        case Call():
            return _lanes_of_call(expr)


def _lanes_of_call(call: Call) -> int:
    match call:
        case Call("reinterpret", (value,), dtype):
            return max(1, lanes_of(value) * bits(dtype_of(value)) // bits(dtype))
        case Call(name) if name == SHUFFLE:
            return len(picked_lanes(call))
        case Call(name, (StringImm(function), *args), _) if name == LLVM_CALL:
            return llvm_result(function, [(dtype_of(arg), lanes_of(arg)) for arg in args])[1]
        case Call(name, (StringImm(text), *_), dtype) if name == FOREIGN_LLVM:
            lanes = text.removeprefix(f"{dtype}x")
            return int(lanes) if lanes.isdecimal() else 1
        case Call(_, args, _):
            return max((lanes_of(arg) for arg in args), default=1)
