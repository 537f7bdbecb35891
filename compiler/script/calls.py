"""Parse calls that are expressions: `T.max(a, b)`, `T.exp(x)`, `T.float32(0)`, ..."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from typing import TypeAlias

import ml_dtypes
import numpy as np

from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.foreign import FOREIGN
from compiler.ir.core.intrinsics import INTRINSICS, result_dtype
from compiler.ir.core.llvm_calls import spelled
from compiler.ir.core.nodes import (
    ArithOp,
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
    Select,
)
from compiler.ir.core.opaque import OPAQUE
from compiler.ir.core.promotion import converted, is_anything
from compiler.script.arguments import DTYPE_NAMED, bind, dtype, vector_type
from compiler.script.arithmetic import arithmetic
from compiler.script.context import Context, dialect_name
from compiler.script.divisions import ceildiv, true_division, truncdiv, truncmod
from compiler.script.error import near
from compiler.script.expressions import (
    choice,
    complement,
    condition,
    expression,
    logical,
    pair,
)
from compiler.script.literals import is_bare, match_types, number, text_number
from compiler.script.llvm import leading_zeros, llvm_call, population
from compiler.script.memory import vector_load
from compiler.script.special import (
    access_pointer,
    foreign,
    is_finite,
    is_inf,
    is_nan,
    let_in,
    multiply_shift,
    opaque,
    reinterpret,
)
from compiler.script.vectors import broadcast, combined, half, ramp, shuffled

Parser: TypeAlias = Callable[[Context, ast.Call], Expr]
NamedParser: TypeAlias = Callable[[Context, ast.Call, str], Expr]

# Functions of the dialect that are not expressions, for hints.
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
_ALIASES = {"fabs": "abs", "power": "pow"}
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
        ScriptError: If the function does not exist, or does not take these arguments.
    """
    name = dialect_name(node.func) or _python_name(context, node.func)
    if name is None:
        return _method(context, node)
    name = _ALIASES.get(name, name)
    if name not in _WITH_DTYPE and any(keyword.arg == "dtype" for keyword in node.keywords):
        return _of_declared_dtype(context, node)
    for table, parser in _TABLES:
        if name in table:
            return parser(context, node, name)
    if name in _OTHERS:
        return _OTHERS[name](context, node)
    if name in _STATEMENTS or name.startswith("axis."):
        raise context.error(f"T.{name} has no value: write it as a statement", node.func)
    names = [*_functions(), *_STATEMENTS]
    raise context.error(
        f"unknown function T.{name}{near(name, names)}", node.func, code="undefined"
    )


def _python_name(context: Context, node: ast.expr) -> str | None:
    """Return the name of `max` or `min`, unless the program calls something else so."""
    match node:
        case ast.Name(id="max" | "min" as name) if not context.is_function(node):
            return name
        case _:
            return None


def _of_declared_dtype(context: Context, node: ast.Call) -> Expr:
    """Parse `T.exp(x, dtype="float32")`: the type is redundant, and must be that of the result."""
    declared = next(keyword.value for keyword in node.keywords if keyword.arg == "dtype")
    others = [keyword for keyword in node.keywords if keyword.arg != "dtype"]
    value = call(context, ast.copy_location(ast.Call(node.func, node.args, others), node))
    of = vector_type(context, declared)
    if of != (dtype_of(value), lanes_of(value)):
        result = spelled(dtype_of(value), lanes_of(value))
        raise context.error(f"the result is {result}, not {spelled(*of)}", declared, code="type")
    return value


def _functions() -> list[str]:
    return [*_OTHERS, *_ALIASES, *(name for table, _ in _TABLES for name in table)]


def _method(context: Context, node: ast.Call) -> Expr:
    """Parse `x.astype("float32")`, or `A.access_ptr("r")` and `A.vload([0])` of a buffer."""
    match node.func:
        case ast.Attribute(attr="astype", value=value):
            argument = bind(context, node, ("dtype",))["dtype"]
            return _conversion(dtype(context, argument), expression(context, value))
        case ast.Attribute(attr="access_ptr", value=ast.Name() as name) if isinstance(
            buffer := context.lookup(name), Buffer
        ):
            return access_pointer(context, buffer, node)
        case ast.Attribute(attr="vload", value=ast.Name() as name) if isinstance(
            buffer := context.lookup(name), Buffer
        ):
            return vector_load(context, buffer, node)
    written = ast.unparse(node.func)[:40].rpartition(".")[2]
    if context.is_function(node.func):
        raise context.error(
            f"{written} returns no value: a call of a function is a statement, and what it "
            "computes is in the buffers that it takes",
            node.func,
            code="undefined",
        )
    hint = f": did you mean T.{written}?" if written in _functions() else ", such as T.max(a, b)"
    raise context.error(f"expected a call of the dialect{hint}", node.func)


def _typed(context: Context, node: ast.Call, name: str) -> Expr:
    """Parse `T.float32(0)` or `T.float32("inf")`; of any other value, a conversion."""
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
    """Return an explicit conversion; an operand of any type takes the target type."""
    return converted(value, to) if is_anything(value) else Cast(to, value)


def _intrinsic(context: Context, node: ast.Call, name: str) -> Expr:
    if node.keywords:
        raise context.error(
            f"T.{name} takes no keyword arguments", node.keywords[0], code="unsupported"
        )
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


def _complement(context: Context, node: ast.Call) -> Expr:
    return complement(context, bind(context, node, ("x",), ("span",))["x"])


def _likely(context: Context, node: ast.Call) -> Expr:
    """Parse `T.likely(condition)`, which is only a hint to the compiler."""
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
    return _converted(context, two["dtype"], two["value"])


def _cast_to(context: Context, node: ast.Call) -> Expr:
    two = bind(context, node, ("value", "dtype"))
    return _converted(context, two["dtype"], two["value"])


def _converted(context: Context, to: ast.expr, node: ast.expr) -> Expr:
    of, lanes = vector_type(context, to)
    value = expression(context, node)
    if lanes not in (1, lanes_of(value)):
        raise context.error(
            f"{lanes_of(value)} lane(s) can't be converted to {lanes}", to, code="type"
        )
    return _conversion(of, value)


def _not(context: Context, node: ast.Call) -> Expr:
    return Not(condition(context, bind(context, node, ("a",))["a"]))


def _limit(context: Context, node: ast.Call) -> Expr:
    """Parse `T.min_value("float32")` or `T.max_value(...)`."""
    argument = bind(context, node, ("dtype",))["dtype"]
    of = dtype(context, argument)
    if of == "bool":
        raise context.error("bool has no limits", argument, code="type")
    limits = ml_dtypes.finfo(of) if is_float(of) else np.iinfo(of)  # type: ignore[no-untyped-call]
    value = limits.min if dialect_name(node.func) == "min_value" else limits.max
    return number(context, float(value) if is_float(of) else int(value), of, argument)


def _infinity(context: Context, node: ast.Call) -> Expr:
    argument = bind(context, node, ("dtype",))["dtype"]
    return text_number(context, "inf", dtype(context, argument), argument)


_OTHERS: dict[str, Parser] = {
    "Broadcast": broadcast,
    "Cast": _cast,
    "Div": true_division,
    "Let": let_in,
    "Mod": truncmod,
    "Not": _not,
    "Ramp": ramp,
    "Select": _select,
    "Shuffle": shuffled,
    "bitwise_not": _complement,
    "broadcast": broadcast,
    "cast": _cast_to,
    "call_llvm_intrin": llvm_call,
    "call_llvm_pure_intrin": llvm_call,
    "ceildiv": ceildiv,
    "clz": leading_zeros,
    "if_then_else": _if_then_else,
    "infinity": _infinity,
    "isfinite": is_finite,
    "isinf": is_inf,
    "isnan": is_nan,
    "likely": _likely,
    "max_value": _limit,
    "min_value": _limit,
    "popcount": population,
    "q_multiply_shift": multiply_shift,
    "ramp": ramp,
    "reinterpret": reinterpret,
    "truncdiv": truncdiv,
    "truncmod": truncmod,
    "vectorcombine": combined,
    "vectorhigh": half,
    "vectorlow": half,
}
# Functions whose result has the type that they are given. Others compute it.
_WITH_DTYPE = frozenset(
    {
        *("Cast", "call_llvm_intrin", "call_llvm_pure_intrin", "cast", "infinity", "max_value"),
        *("min_value", "reinterpret", "vectorcombine", "vectorhigh", "vectorlow"),
        *OPAQUE,
        *FOREIGN,
    }
)
_FOREIGN = FOREIGN.keys() - _OTHERS.keys()
# Functions by their parser, the most frequent first.
_TABLES: tuple[tuple[Collection[str], NamedParser], ...] = (
    (DTYPE_NAMED, _typed),
    (INTRINSICS, _intrinsic),
    (_BINARY, _binary),
    (_LOGIC, _logic),
    (_COMPARISONS, _comparison),
    (OPAQUE, opaque),
    (_FOREIGN, foreign),
)
