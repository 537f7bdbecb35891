"""Arguments of calls in the dialect, and literals."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import get_args

from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.nodes import AnnotationDict, Annotations, AnnotationValue, Scalar
from compiler.script.context import Context, call_name
from compiler.script.error import near

DTYPE_NAMED: dict[str, DType] = {name: name for name in get_args(DType)}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call by parameter name."""

    call: ast.Call
    values: dict[str, ast.expr]

    def __getitem__(self, name: str) -> ast.expr:
        return self.values[name]

    def get(self, name: str) -> ast.expr | None:
        """Return an optional argument, or None."""
        return self.values.get(name)


def bind(
    context: Context, call: ast.Call, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Arguments:
    """Bind the arguments of a call to its parameters.

    Raises:
        ScriptError: If an argument is missing, unknown, or given twice.
    """
    parameters = (*required, *optional)
    values: dict[str, ast.expr] = {}
    name = ast.unparse(call.func)
    for number, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            raise context.error(
                "unpacking is not part of the dialect", argument, code="unsupported"
            )
        if number >= len(parameters):
            raise context.error(
                f"{name} takes {len(parameters)} argument(s) at most", argument, code="limit"
            )
        values[parameters[number]] = argument
    for keyword in call.keywords:
        if keyword.arg not in parameters:
            hint = near(keyword.arg or "", parameters)
            raise context.error(
                f"{name} has no argument {keyword.arg}{hint}", keyword, code="undefined"
            )
        if keyword.arg in values:
            raise context.error(f"{name} is given {keyword.arg} twice", keyword, code="duplicate")
        values[keyword.arg] = keyword.value
    for parameter in required:
        if parameter not in values:
            raise context.error(f"{name} needs the argument {parameter}", call)
    return Arguments(call, values)


def string(context: Context, node: ast.expr, subject: str) -> str:
    """Return a string literal.

    Raises:
        ScriptError: If the node is not a string; `subject` names it in the message.
    """
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        raise context.error(f"expected {subject} as a string", node)
    if any("\ud800" <= char <= "\udfff" for char in node.value):
        raise context.error(f"{subject} is not valid Unicode", node)
    return node.value


def dtype(context: Context, node: ast.expr) -> DType:
    """Return the type that a string names.

    Raises:
        ScriptError: If the type is not supported.
    """
    name = string(context, node, "a type")
    if name not in DTYPE_NAMED:
        raise context.error(f"unsupported type {name!r}{near(name, DTYPE_NAMED)}", node)
    return DTYPE_NAMED[name]


def vector_type(context: Context, node: ast.expr) -> tuple[DType, int]:
    """Parse a type such as "int8x32": the type of an element, and the number of elements.

    Raises:
        ScriptError: If the text is not a type.
    """
    text = string(context, node, "a type")
    base, separator, lanes = text.rpartition("x")
    if base in DTYPE_NAMED and separator and lanes.isdecimal() and len(lanes) < 6:
        return DTYPE_NAMED[base], int(lanes)
    return dtype(context, node), 1


def literal_dict(context: Context, node: ast.expr) -> Annotations:
    """Return a dictionary of literals.

    Raises:
        ScriptError: If the node is not one, or a key appears twice.
    """
    if not isinstance(node, ast.Dict):
        raise context.error("expected a dictionary of literals", node)
    entries: dict[str, AnnotationValue] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise context.error("unpacking is not part of the dialect", value, code="unsupported")
        name = string(context, key, "a key")
        if name in entries:
            raise context.error(f"the key {name!r} appears twice", key, code="duplicate")
        entries[name] = _annotation(context, value)
    return tuple(entries.items())


def _annotation(context: Context, node: ast.expr) -> AnnotationValue:
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return tuple(_annotation(context, element) for element in elements)
        case ast.Dict():
            return AnnotationDict(literal_dict(context, node))
        case ast.Call(args=[value], keywords=[]) if call_name(node) in DTYPE_NAMED:
            return _typed_scalar(context, node, DTYPE_NAMED[call_name(node) or ""], value)
        case _:
            return scalar(context, node)


def _typed_scalar(context: Context, node: ast.Call, of: DType, value: ast.expr) -> Scalar:
    """Return the Python value of `T.int64(3)` or `T.bool(True)`."""
    plain = scalar(context, value)
    if isinstance(plain, str):
        raise context.error(f"expected a number as {of}", value)
    if of == "bool":
        return bool(plain)
    if is_float(of):
        return float(plain)
    if not float(plain).is_integer():
        raise context.error(f"expected an integer as {of}, got {plain}", node)
    return int(plain)


def scalar(context: Context, node: ast.expr) -> Scalar:
    """Return a literal: a string, a number, True or False.

    Raises:
        ScriptError: If the node is not a literal.
    """
    match node:
        case ast.Constant(value=bool() as value):
            return value
        case ast.Constant(value=str()):
            return string(context, node, "a literal")
        case ast.Constant(value=int() | float() as value):
            return _bounded(context, node, value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return _bounded(context, node, -value)
        case _:
            raise context.error("expected a literal: a string, a number, True or False", node)


def _bounded(context: Context, node: ast.expr, value: float) -> int | float:
    fits = -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
    if not fits:
        raise context.error("the number does not fit into 64 bits", node, code="limit")
    return value
