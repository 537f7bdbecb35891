"""Read the text of a lambda over indices, without running it.

The text may contain what index maps and padding values need: names, numbers, `+ - * / // %`,
comparisons, `min`, `max`, typed constants such as `T.float32(0)`, `T.if_then_else`, and `T.Cast` to
an integer. Anything else is refused, and so is a text that is too long or too deep.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, get_args

from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.nodes import BinOp, Var
from compiler.te.functions import if_then_else
from compiler.te.value import Value, ValueLike, as_value, const, same_dtype

MAX_TEXT = 1_000
MAX_DEPTH = 40
MAX_ITEMS = 32

Function: TypeAlias = Callable[[Sequence[Value]], object]
"""What a lambda computes of its arguments: a value, a number, or a tuple of them."""


class LambdaError(ValueError):
    """A text that is not a lambda over indices."""


_BINARY: dict[type[ast.operator], Callable[[ValueLike, ValueLike], ValueLike]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[ValueLike, ValueLike], Value]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_DTYPES: dict[str, DType] = {name: name for name in get_args(DType)}


def read_lambda(
    text: str, num_args: int | None, symbols: Iterable[Var] = ()
) -> tuple[list[str], Function]:
    """Return the names of the arguments of a lambda, and the function that it defines.

    Args:
        num_args: The number of arguments, if the lambda takes any number.
        symbols: Variables that the lambda may name, beside its arguments.

    Raises:
        LambdaError: If the text is not such a lambda. The function raises it too, or a TypeError,
            for an expression that is not supported.
    """
    node = _parse(text)
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    if node.args.kwonlyargs or node.args.kwarg or node.args.defaults:
        raise LambdaError("the arguments of a lambda over indices are plain names")
    rest = node.args.vararg
    if rest is not None:
        if num_args is None:
            raise LambdaError("the lambda takes any number of indices: how many is not known")
        names.extend(f"{rest.arg}_{n}" for n in range(num_args - len(names)))
    if len(names) > MAX_ITEMS:
        raise LambdaError(f"the lambda takes more than {MAX_ITEMS} indices")

    def function(args: Sequence[Value]) -> object:
        values_by_name = {
            **{symbol.name: Value(symbol) for symbol in symbols},
            **dict(zip(names, args, strict=True)),
        }
        body = node.body
        if not isinstance(body, ast.Tuple | ast.List):
            return _value(body, values_by_name, 0)
        if len(body.elts) > MAX_ITEMS:
            raise LambdaError(f"the lambda gives more than {MAX_ITEMS} values")
        return tuple(_item(item, values_by_name) for item in body.elts)

    return names, function


def is_python(text: str) -> bool:
    """Return whether Python can run a lambda, beside reading it.

    It knows no symbolic sizes, and of the dialect only the types.

    Raises:
        LambdaError: If the text is no lambda.
    """
    node = _parse(text)
    params = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    used = {name.id for name in ast.walk(node.body) if isinstance(name, ast.Name)}
    attributes = {name.attr for name in ast.walk(node.body) if isinstance(name, ast.Attribute)}
    return used <= params | {"T", "min", "max"} and attributes <= _DTYPES.keys()


def _item(node: ast.expr, values_by_name: Mapping[str, Value]) -> object:
    """Return an item of the result: a value, or a pair of values."""
    match node:
        case ast.Tuple(elts=[first, second]):
            return _value(first, values_by_name, 0), _value(second, values_by_name, 0)
        case _:
            return _value(node, values_by_name, 0)


def _parse(text: str) -> ast.Lambda:
    if len(text) > MAX_TEXT:
        raise LambdaError(f"the lambda has {len(text)} characters: expected {MAX_TEXT} at most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise LambdaError(f"expected the text of a lambda, got {text[:60]!r}") from None
    if not isinstance(tree.body, ast.Lambda):
        raise LambdaError(f"expected the text of a lambda, got {text[:60]!r}")
    return tree.body


def _value(node: ast.expr, values_by_name: Mapping[str, Value], depth: int) -> ValueLike:
    if depth > MAX_DEPTH:
        raise LambdaError(f"the lambda is nested deeper than {MAX_DEPTH} levels")

    def inner(child: ast.expr) -> ValueLike:
        return _value(child, values_by_name, depth + 1)

    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return number
        case ast.Name(id=name) if name in values_by_name:
            return values_by_name[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _arithmetic(_BINARY[type(op)], inner(left), inner(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -inner(operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return _COMPARE[type(op)](as_value(inner(left)), inner(right))
        case ast.Call(func=func, args=args, keywords=[]):
            return _called(_function_name(func), args, inner)
        case _:
            raise LambdaError(f"{_quoted(node)} can't stand in a lambda over indices")


def _called(
    name: str, args: Sequence[ast.expr], inner: Callable[[ast.expr], ValueLike]
) -> ValueLike:
    match name, args:
        case _, [ast.Constant(value="inf" | "-inf" | "nan" as text)]:
            return _call(name, [float(text)])
        case "Cast" | "cast", [ast.Constant(value="int32" | "int64" as dtype), operand]:
            return as_value(inner(operand)).astype(dtype)
        case _:
            return _call(name, [inner(arg) for arg in args])


def _arithmetic(
    function: Callable[[ValueLike, ValueLike], ValueLike], lhs: ValueLike, rhs: ValueLike
) -> ValueLike:
    try:
        return function(lhs, rhs)
    except (ZeroDivisionError, OverflowError) as error:
        raise LambdaError(f"a constant of the lambda has no value: {error}") from None


def _function_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="T" | "tir" | "tirx"), attr=name):
            return name
        case ast.Name(id="min" | "max" as name):
            return name
        case _:
            raise LambdaError(f"{_quoted(node)} can't be called in a lambda over indices")


def _call(name: str, args: list[ValueLike]) -> ValueLike:
    match name, args:
        case ("min" | "max") as function, [lhs, rhs]:
            a, b = same_dtype(lhs, rhs, function)
            return Value(BinOp(function, a.expr, b.expr), a, b)
        case ("floordiv", [lhs, rhs]):
            return _arithmetic(operator.floordiv, lhs, rhs)
        case ("floormod", [lhs, rhs]):
            return _arithmetic(operator.mod, lhs, rhs)
        case "if_then_else", [Value() as condition, then, otherwise]:
            return if_then_else(condition, then, otherwise)
        case _, [int() | float() as number] if name in _DTYPES:
            return _constant(number, _DTYPES[name])
        case _:
            raise LambdaError(f"T.{name} of {len(args)} values can't stand in a lambda")


def _constant(number: float, dtype: DType) -> Value:
    if not is_float(dtype) and not (math.isfinite(number) and number == int(number)):
        raise LambdaError(f"{number} is no {dtype}")
    return const(number, dtype)


def _quoted(node: ast.expr) -> str:
    try:
        text = ast.unparse(node)
    except RecursionError:
        text = type(node).__name__
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
