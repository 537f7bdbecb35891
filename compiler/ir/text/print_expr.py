"""Print expressions, with parentheses only where precedence needs them."""

from __future__ import annotations

import json
import math
from typing import TypeGuard, assert_never

from compiler.ir.arith.overflow import may_wrap
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.function_calls import FUNCTION_CALL
from compiler.ir.core.lane_calls import SHUFFLE, picked_lanes
from compiler.ir.core.llvm_calls import spelled
from compiler.ir.core.nodes import (
    AnnotationDict,
    Annotations,
    AnnotationValue,
    BinOp,
    Broadcast,
    BufferRegion,
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
    Range,
    Select,
    StringImm,
    Var,
)
from compiler.ir.core.opaque import OPAQUE
from compiler.ir.text.names import MODULE_NAME, Names, identifier

_NOT, _COMPARE, _UNARY = 3, 4, 11
_PRECEDENCE = {
    "or": 1,
    "and": 2,
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "//": 10,
    "%": 10,
}


def show_expr(expr: Expr, names: Names | None = None) -> str:
    """Print an expression; without `names`, each variable keeps its own name."""
    return print_expr(expr, Names() if names is None else names)


def print_expr(expr: Expr, names: Names, parent: int = 0) -> str:  # noqa: C901
    """Print an expression inside an operator that binds as tightly as `parent`."""
    match expr:
        case Var():
            return f"{names[expr]}.data" if expr.dtype == "handle" else names[expr]
        case IntImm(value, dtype):
            return _integer(value, dtype)
        case FloatImm(value, dtype):
            return f"T.{dtype}({_float(value)})"
        case BinOp("min" | "max" as function, lhs, rhs):
            return _call(function, (lhs, rhs), names)
        case BinOp("^", value, IntImm(-1)):
            return f"~{print_expr(value, names, _UNARY)}"
        case BinOp(op, lhs, rhs) | Logic(op, lhs, rhs):
            level = _PRECEDENCE[op]
            # Operators group to the left: a - (b - c) is not a - b - c.
            left, right = print_expr(lhs, names, level), print_expr(rhs, names, level + 1)
            return _parenthesised(f"{left} {op} {right}", needed=level < parent)
        case Compare("!=", lhs, rhs) if is_float(dtype_of(lhs)) and lhs == rhs:
            return _call("isnan", (lhs,), names)  # only a NaN differs from itself
        case Compare(op, lhs, rhs):
            # Comparisons would chain: (a < b) == c is not a < b == c.
            left = print_expr(lhs, names, _COMPARE + 1)
            right = print_expr(rhs, names, _COMPARE + 1)
            return _parenthesised(f"{left} {op} {right}", needed=parent > _COMPARE)
        case Not(value):
            text = f"not {print_expr(value, names, _NOT)}"
            return _parenthesised(text, needed=parent > _NOT)
        case Select(condition, then, otherwise):
            return _call("Select", (condition, then, otherwise), names)
        case Conditional(condition, then, otherwise):
            return _call("if_then_else", (condition, then, otherwise), names)
        case Cast(dtype, value):
            return f'T.Cast("{spelled(dtype, lanes_of(value))}", {print_expr(value, names)})'
        case Call(name, args, dtype) if name in OPAQUE and OPAQUE[name].dtype is None:
            # The name alone does not say its type.
            text = _call(name, args, names)
            return text if dtype == "int32" else f'T.Cast("{dtype}", {text})'
        case Call("abs", args, dtype) if is_float(dtype):
            return _call("fabs", args, names)
        case Call(name, (_, *vectors), _) if name == SHUFFLE:
            printed = ", ".join(print_expr(vector, names) for vector in vectors)
            return f"T.Shuffle([{printed}], {picked_lanes(expr)})"
        case Call("reinterpret" | "call_llvm_pure_intrin" as name, args, dtype):
            of = json.dumps(spelled(dtype, lanes_of(expr)))
            return f"T.{name}({', '.join((of, *(print_expr(a, names) for a in args)))})"
        case Call(name, (StringImm(function), *args), _) if name == FUNCTION_CALL:
            passed = ", ".join(print_expr(arg, names) for arg in args)
            return f"{MODULE_NAME}.{identifier(function)}({passed})"
        case Call(name, args, _):
            return _call(name, args, names)
        case StringImm(value):
            return json.dumps(value, ensure_ascii=False)
        case Load(buffer, indices):
            return print_element(names[buffer.data], indices, names)
        case Ramp(base, stride, lanes):
            return f"T.Ramp({print_expr(base, names)}, {stride}, {lanes})"
        case Broadcast(value, lanes):
            return f"T.Broadcast({print_expr(value, names)}, {lanes})"
        case _:
            assert_never(expr)


def print_element(buffer: str, indices: tuple[Expr, ...], names: Names) -> str:
    """Print an element of a buffer; a buffer without dimensions has the index `()`."""
    return f"{buffer}[{', '.join(print_expr(i, names) for i in indices) or '()'}]"


def print_target(buffer: str, indices: tuple[Expr, ...], names: Names) -> str:
    """Print the target of a store; vectors of indices become slices if the parser accepts them."""
    printed = (_slice(i, names) if _is_slice(i) else print_expr(i, names) for i in indices)
    return f"{buffer}[{', '.join(printed) or '()'}]"


def _is_slice(index: Expr) -> TypeGuard[Ramp]:
    """Return whether an index can be written as a slice, whose ends the parser subtracts."""
    return isinstance(index, Ramp) and index.stride > 0 and not may_wrap(index.base)


def _slice(ramp: Ramp, names: Names) -> str:
    reach = IntImm(ramp.lanes * ramp.stride, dtype_of(ramp.base))
    text = _range(Range(ramp.base, reach), names)
    return text if ramp.stride == 1 else f"{text}:{ramp.stride}"


def print_region(region: BufferRegion, names: Names) -> str:
    """Print a region; a range of one element is written as its index."""
    ranges = ", ".join(_range(r, names) for r in region.region)
    return f"{names[region.buffer.data]}[{ranges or '()'}]"


def print_annotation(value: AnnotationValue) -> str:
    """Print the value of an annotation: a literal, or a list of literals."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return f"[{', '.join(print_annotation(v) for v in value)}]"
        case AnnotationDict(items):
            return print_annotations(items)
        case _:
            return repr(value)


def print_annotations(annotations: Annotations) -> str:
    """Print annotations as a dictionary, sorted by key."""
    items = (
        f"{print_annotation(key)}: {print_annotation(value)}"
        for key, value in sorted(annotations, key=lambda item: item[0])
    )
    return f"{{{', '.join(items)}}}"


def _integer(value: int, dtype: str) -> str:
    match dtype:
        case "int32":
            return str(value)
        case "bool":
            return f"T.bool({bool(value)})"
        case _:
            return f"T.{dtype}({value})"


def _float(value: float) -> str:
    """Print a number with all its digits, as TVM does."""
    if not math.isfinite(value):
        return f'"{value}"'
    return f"{value:.1f}" if value == math.floor(value) else f"{value:.17g}"


def _range(r: Range, names: Names) -> str:
    low = print_expr(r.minimum, names)
    match r:
        case Range(_, IntImm(1)):
            return low
        case Range(IntImm(minimum, dtype), IntImm(extent)):
            return f"{low}:{_integer(minimum + extent, dtype)}"
        case Range(IntImm(0), extent):
            return f"0:{print_expr(extent, names)}"
        case Range(minimum, extent):
            plus = _PRECEDENCE["+"]
            stop = f"{print_expr(minimum, names, plus)} + {print_expr(extent, names, plus + 1)}"
            return f"{low}:{stop}"


def _call(name: str, args: tuple[Expr, ...], names: Names) -> str:
    return f"T.{name}({', '.join(print_expr(a, names) for a in args)})"


def _parenthesised(text: str, *, needed: bool) -> str:
    return f"({text})" if needed else text
