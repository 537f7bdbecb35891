"""Parse calls that are expressions: `T.max(a, b)`, `T.exp(x)`, `T.float32(0)`, ..."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from compiler.ir.dtypes import DType, is_float
from compiler.ir.intrinsics import INTRINSICS, result_dtype
from compiler.ir.nodes import (
    ArithOp,
    Broadcast,
    Call,
    Cast,
    Conditional,
    Expr,
    IntImm,
    LogicOp,
    Not,
    Ramp,
    Select,
    dtype_of,
)
from compiler.script.arguments import DTYPE_NAMED, bind, dtype
from compiler.script.context import Context, dialect_name
from compiler.script.error import near
from compiler.script.expressions import (
    arithmetic,
    choice,
    condition,
    constant_int,
    expression,
    index,
    logical,
)
from compiler.script.literals import is_bare, match_types, number, text_number

Parser: TypeAlias = Callable[[Context, ast.Call], Expr]

_ALIASES = {"fabs": "abs", "power": "pow", "nearbyint": "round"}
_BINARY: dict[str, ArithOp] = {
    "max": "max",
    "min": "min",
    "floordiv": "//",
    "floormod": "%",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
_LOGIC: dict[str, LogicOp] = {"And": "and", "Or": "or"}


def call(context: Context, node: ast.Call) -> Expr:
    """Parse a call.

    Raises:
        ScriptError: If there is no such function or it does not take these arguments.
    """
    name = dialect_name(node.func)
    if name is None:
        raise context.error("expected a call of the dialect, such as T.max(a, b)", node.func)
    name = _ALIASES.get(name, name)
    if name in DTYPE_NAMED:
        return _typed(context, node, DTYPE_NAMED[name])
    if name in INTRINSICS:
        return _intrinsic(context, node, name)
    if name in _BINARY:
        two = bind(context, node, ("a", "b"))
        lhs, rhs = ((expression(context, two[side]), two[side]) for side in ("a", "b"))
        return arithmetic(context, _BINARY[name], lhs, rhs, node)
    if name in _LOGIC:
        two = bind(context, node, ("a", "b"))
        return logical(context, _LOGIC[name], [two["a"], two["b"]], node)
    if name in _OTHERS:
        return _OTHERS[name](context, node)
    known = (*DTYPE_NAMED, *INTRINSICS, *_ALIASES, *_BINARY, *_LOGIC, *_OTHERS)
    raise context.error(f"unknown function T.{name}{near(name, known)}", node.func)


def _typed(context: Context, node: ast.Call, to: DType) -> Expr:
    """Parse `T.float32(0)`, `T.float32("inf")` or, of any other value, a conversion."""
    value = bind(context, node, ("value",))["value"]
    match value:
        case ast.Constant(value=str() as text):
            return text_number(context, text, to, value)
        case ast.Constant(value=bool() as flag):
            return number(context, int(flag), to, value)
        case _:
            pass
    if is_bare(value):
        return number(context, ast.literal_eval(value), to, value)
    return Cast(to, expression(context, value))


def _intrinsic(context: Context, node: ast.Call, name: str) -> Expr:
    if node.keywords:
        raise context.error(f"T.{name} takes no keyword arguments", node.keywords[0])
    args = [expression(context, argument) for argument in node.args]
    if len(args) == 2:
        a, b = match_types(context, (args[0], node.args[0]), (args[1], node.args[1]), node)
        args = [a, b]
    args = [
        number(context, a.value, "float32", n) if is_bare(n) and isinstance(a, IntImm) else a
        for a, n in zip(args, node.args, strict=True)
    ]
    try:
        result = result_dtype(name, [dtype_of(a) for a in args])
    except ValueError as error:
        raise context.error(f"T.{error}", node) from None
    return Call(name, tuple(args), result)


def _if_then_else(context: Context, node: ast.Call) -> Expr:
    three = bind(context, node, ("cond", "t", "f"), ("span",))
    return choice(context, Conditional, (three["cond"], three["t"], three["f"]), node)


def _select(context: Context, node: ast.Call) -> Expr:
    three = bind(context, node, ("condition", "true_value", "false_value"), ("span",))
    parts = (three["condition"], three["true_value"], three["false_value"])
    return choice(context, Select, parts, node)


def _cast(context: Context, node: ast.Call) -> Expr:
    two = bind(context, node, ("dtype", "value"))
    return Cast(dtype(context, two["dtype"]), expression(context, two["value"]))


def _cast_to(context: Context, node: ast.Call) -> Expr:
    two = bind(context, node, ("value", "dtype"))
    return Cast(dtype(context, two["dtype"]), expression(context, two["value"]))


def _not(context: Context, node: ast.Call) -> Expr:
    return Not(condition(context, bind(context, node, ("a",))["a"]))


def _limit(context: Context, node: ast.Call) -> Expr:
    """Parse `T.min_value("float32")` or `T.max_value(...)`."""
    argument = bind(context, node, ("dtype",))["dtype"]
    of = dtype(context, argument)
    if of == "bool":
        raise context.error("bool has no limits", argument)
    limits = np.finfo(of) if is_float(of) else np.iinfo(of)
    value = limits.min if dialect_name(node.func) == "min_value" else limits.max
    return number(context, value.item() if isinstance(value, np.generic) else value, of, argument)


def _infinity(context: Context, node: ast.Call) -> Expr:
    argument = bind(context, node, ("dtype",))["dtype"]
    return text_number(context, "inf", dtype(context, argument), argument)


def _ramp(context: Context, node: ast.Call) -> Expr:
    three = bind(context, node, ("base", "stride", "lanes"))
    stride = constant_int(context, three["stride"], "a stride")
    lanes = constant_int(context, three["lanes"], "a number of lanes")
    return Ramp(index(context, three["base"]), stride.value, lanes.value)


def _broadcast(context: Context, node: ast.Call) -> Expr:
    two = bind(context, node, ("value", "lanes"))
    lanes = constant_int(context, two["lanes"], "a number of lanes")
    return Broadcast(expression(context, two["value"]), lanes.value)


_OTHERS: dict[str, Parser] = {
    "Broadcast": _broadcast,
    "Cast": _cast,
    "Not": _not,
    "Ramp": _ramp,
    "Select": _select,
    "cast": _cast_to,
    "if_then_else": _if_then_else,
    "infinity": _infinity,
    "max_value": _limit,
    "min_value": _limit,
}
