"""Parse calls that are expressions: `T.max(a, b)`, `T.exp(x)`, `T.float32(0)`, ..."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from compiler.ir.bounds import bounds
from compiler.ir.dtypes import DType, is_float, is_integer, is_signed
from compiler.ir.intrinsics import INTRINSICS, result_dtype
from compiler.ir.nodes import (
    ArithOp,
    BinOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    CompareOp,
    Conditional,
    Expr,
    IntImm,
    LogicOp,
    Not,
    Ramp,
    Select,
    StringImm,
    dtype_of,
)
from compiler.ir.opaque import OPAQUE
from compiler.script.arguments import DTYPE_NAMED, bind, dtype, string
from compiler.script.context import Context, Value, dialect_name
from compiler.script.error import near
from compiler.script.expressions import (
    arithmetic,
    choice,
    complement,
    condition,
    constant_int,
    expression,
    index,
    logical,
    pair,
)
from compiler.script.literals import (
    converted,
    is_anything,
    is_bare,
    match_types,
    number,
    text_number,
)

Parser: TypeAlias = Callable[[Context, ast.Call], Expr]
NamedParser: TypeAlias = Callable[[Context, ast.Call, str], Expr]

# What is no expression, for hints.
_STATEMENTS = (
    "Buffer",
    "alloc_buffer",
    "allocate",
    "block",
    "block_attr",
    "evaluate",
    "func_attr",
    "grid",
    "handle",
    "init",
    "match_buffer",
    "parallel",
    "reads",
    "sblock",
    "sblock_alloc_buffer",
    "sblock_attr",
    "serial",
    "thread_binding",
    "unroll",
    "vectorized",
    "where",
    "writes",
)
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
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "FloorDiv": "//",
    "FloorMod": "%",
    "Max": "max",
    "Min": "min",
    "indexdiv": "//",
    "indexmod": "%",
}
_LOGIC: dict[str, LogicOp] = {"And": "and", "Or": "or"}
_COMPARISONS: dict[str, CompareOp] = {
    "EQ": "==",
    "NE": "!=",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
}


def call(context: Context, node: ast.Call) -> Expr:
    """Parse a call.

    Raises:
        ScriptError: If there is no such function or it does not take these arguments.
    """
    name = dialect_name(node.func)
    if name is None:
        return _method(context, node)
    name = _ALIASES.get(name, name)
    for table, parser in _TABLES:
        if name in table:
            return parser(context, node, name)
    if name in _OTHERS:
        return _OTHERS[name](context, node)
    if name in _STATEMENTS or name.startswith("axis."):
        raise context.error(f"T.{name} has no value: it is a statement of its own", node.func)
    known = [*_functions(), *_STATEMENTS]
    raise context.error(f"unknown function T.{name}{near(name, known)}", node.func)


def _functions() -> list[str]:
    return [*_OTHERS, *_ALIASES, *(name for table, _ in _TABLES for name in table)]


def _method(context: Context, node: ast.Call) -> Expr:
    """Parse `x.astype("float32")`, the one call that is not the dialect's."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        argument = bind(context, node, ("dtype",))["dtype"]
        return _conversion(dtype(context, argument), expression(context, node.func.value))
    spelled = ast.unparse(node.func)[:40].rpartition(".")[2]
    hint = f": did you mean T.{spelled}?" if spelled in _functions() else ", such as T.max(a, b)"
    raise context.error(f"expected a call of the dialect{hint}", node.func)


def _typed(context: Context, node: ast.Call, name: str) -> Expr:
    """Parse `T.float32(0)`, `T.float32("inf")` or, of any other value, a conversion."""
    to = DTYPE_NAMED[name]
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
    return _conversion(to, expression(context, value))


def _conversion(to: DType, value: Expr) -> Expr:
    """Return a conversion as it was written; what may be anything is of the type asked for."""
    return converted(value, to) if is_anything(value) else Cast(to, value)


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


def _opaque(context: Context, node: ast.Call, name: str) -> Expr:
    opaque = OPAQUE[name]
    if node.keywords:
        raise context.error(f"T.{opaque.name} takes no keyword arguments", node.keywords[0])
    if not opaque.least <= len(node.args) <= opaque.most:
        raise context.error(
            f"T.{opaque.name} takes {opaque.least} to {opaque.most} argument(s), "
            f"got {len(node.args)}",
            node,
        )
    args = tuple(_argument(context, argument) for argument in node.args)
    return Call(opaque.name, args, opaque.dtype or "int32")


def _argument(context: Context, node: ast.expr) -> Expr:
    """Parse an argument of an opaque function: a string, `A.data`, or any expression."""
    match node:
        case ast.Constant(value=str()):
            return StringImm(string(context, node, "an argument"))
        case ast.Attribute(value=ast.Name() as name, attr="data"):
            buffer = context.lookup(name)
            if not isinstance(buffer, Buffer):
                raise context.error(f"{name.id} is no buffer", name)
            return buffer.data
        case _:
            return expression(context, node)


def _let(context: Context, node: ast.Call) -> Expr:
    """Parse `T.Let(body, where={x: value})`: the body with the value in the name's place."""
    two = bind(context, node, ("expr", "where"))
    match two["where"]:
        case ast.Dict(keys=[ast.Name(id=name)], values=[value]):
            computed = expression(context, value)
        case _:
            raise context.error("expected one name and its value: where={x: 1.0}", two["where"])
    with context.scope():
        context.define(name, Value(computed))
        return expression(context, two["expr"])


def _true_division(context: Context, node: ast.Call) -> Expr:
    """Parse `T.Div(a, b)`: of integers, which are rounded towards zero."""
    two = bind(context, node, ("a", "b"))
    lhs, rhs = pair(context, two["a"], two["b"], node)
    if is_float(dtype_of(lhs)):
        return arithmetic(context, "/", (lhs, two["a"]), (rhs, two["b"]), node)
    return _towards_zero(context, lhs, rhs, node)


def _truncdiv(context: Context, node: ast.Call) -> Expr:
    return _towards_zero(context, *_integers(context, node), node)


def _truncmod(context: Context, node: ast.Call) -> Expr:
    """Parse `T.truncmod(a, b)`: what is left takes the sign of `a`."""
    lhs, rhs = _integers(context, node)
    if _is_not_negative(context, lhs):
        return BinOp("%", lhs, rhs)
    return BinOp("-", lhs, BinOp("*", _towards_zero(context, lhs, rhs, node), rhs))


def _integers(context: Context, node: ast.Call) -> tuple[Expr, Expr]:
    two = bind(context, node, ("a", "b"))
    lhs, rhs = pair(context, two["a"], two["b"], node)
    if not is_integer(dtype_of(lhs)):
        raise context.error(f"expected integers, got {dtype_of(lhs)}", node)
    return lhs, rhs


def _towards_zero(context: Context, lhs: Expr, rhs: Expr, place: ast.AST) -> Expr:
    """Return a quotient rounded towards zero; the divisor is positive, or verifying refuses it.

    `//` rounds down, so that a negative number has to be moved up to the next multiple first.
    """
    dtype = dtype_of(lhs)
    if not is_integer(dtype):
        raise context.error(f"expected integers, got {dtype}", place)
    if _is_not_negative(context, lhs):
        return BinOp("//", lhs, rhs)
    zero, one = IntImm(0, dtype), IntImm(1, dtype)
    moved = Select(Compare("<", lhs, zero), BinOp("-", rhs, one), zero)
    return BinOp("//", BinOp("+", lhs, moved), rhs)


def _is_not_negative(context: Context, expr: Expr) -> bool:
    interval = bounds(expr, context.ranges()) if is_signed(dtype_of(expr)) else (0, 0)
    return interval is not None and interval[0] >= 0


def _ceildiv(context: Context, node: ast.Call) -> Expr:
    lhs, rhs = _integers(context, node)
    # In the order of the operations that TVM prints.
    total = BinOp("-", BinOp("+", lhs, rhs), IntImm(1, dtype_of(lhs)))
    return BinOp("//", total, rhs)


def _complement(context: Context, node: ast.Call) -> Expr:
    return complement(context, bind(context, node, ("x",), ("span",))["x"])


def _likely(context: Context, node: ast.Call) -> Expr:
    """Parse `T.likely(condition)`, which only advises a compiler."""
    return condition(context, bind(context, node, ("cond",), ("span",))["cond"])


def _binary(context: Context, node: ast.Call, name: str) -> Expr:
    two = bind(context, node, ("a", "b"))
    lhs, rhs = ((expression(context, two[side]), two[side]) for side in ("a", "b"))
    return arithmetic(context, _BINARY[name], lhs, rhs, node)


def _logic(context: Context, node: ast.Call, name: str) -> Expr:
    two = bind(context, node, ("a", "b"))
    return logical(context, _LOGIC[name], [two["a"], two["b"]], node)


def _comparison(context: Context, node: ast.Call, name: str) -> Expr:
    two = bind(context, node, ("a", "b"))
    return Compare(_COMPARISONS[name], *pair(context, two["a"], two["b"], node))


def _if_then_else(context: Context, node: ast.Call) -> Expr:
    three = bind(context, node, ("cond", "t", "f"), ("span",))
    return choice(context, Conditional, (three["cond"], three["t"], three["f"]), node)


def _select(context: Context, node: ast.Call) -> Expr:
    three = bind(context, node, ("condition", "true_value", "false_value"), ("span",))
    parts = (three["condition"], three["true_value"], three["false_value"])
    return choice(context, Select, parts, node)


def _cast(context: Context, node: ast.Call) -> Expr:
    two = bind(context, node, ("dtype", "value"))
    return _conversion(dtype(context, two["dtype"]), expression(context, two["value"]))


def _cast_to(context: Context, node: ast.Call) -> Expr:
    two = bind(context, node, ("value", "dtype"))
    return _conversion(dtype(context, two["dtype"]), expression(context, two["value"]))


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
    context.has_vectors = True
    return Ramp(index(context, three["base"]), stride.value, lanes.value)


def _broadcast(context: Context, node: ast.Call) -> Expr:
    two = bind(context, node, ("value", "lanes"))
    lanes = constant_int(context, two["lanes"], "a number of lanes")
    context.has_vectors = True
    return Broadcast(expression(context, two["value"]), lanes.value)


_OTHERS: dict[str, Parser] = {
    "Broadcast": _broadcast,
    "Cast": _cast,
    "Div": _true_division,
    "Let": _let,
    "Mod": _truncmod,
    "Not": _not,
    "Ramp": _ramp,
    "Select": _select,
    "bitwise_not": _complement,
    "broadcast": _broadcast,
    "cast": _cast_to,
    "ceildiv": _ceildiv,
    "if_then_else": _if_then_else,
    "infinity": _infinity,
    "likely": _likely,
    "max_value": _limit,
    "min_value": _limit,
    "ramp": _ramp,
    "truncdiv": _truncdiv,
    "truncmod": _truncmod,
}
# Functions that are parsed alike, and how; the most frequent first.
_TABLES: tuple[tuple[Mapping[str, object], NamedParser], ...] = (
    (DTYPE_NAMED, _typed),
    (INTRINSICS, _intrinsic),
    (_BINARY, _binary),
    (_LOGIC, _logic),
    (_COMPARISONS, _comparison),
    (OPAQUE, _opaque),
)
