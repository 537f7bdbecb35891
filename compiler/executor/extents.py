"""Extents that depend on symbolic variables: formulas such as `(n + 7) // 8 * 64`.

A formula is the text of a Python expression of integers: names, numbers, `+ - * // %`, `min` and
`max`. It is data: nothing of it is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TypeAlias

Extent: TypeAlias = int | str
"""A number, or a formula."""

Values: TypeAlias = Mapping[str, int]
Formula: TypeAlias = Callable[[Values], int]

# Chosen: what the compiler writes is far shorter. A formula of a damaged file must not take long.
_MAX_CHARACTERS = 4096

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"min": min, "max": max}


@lru_cache(maxsize=1024)
def formula(text: str) -> Formula:
    """Return the function of a formula: from the values of variables to the number.

    Raises:
        ValueError: If the text is no formula.
    """
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"a formula of {len(text)} characters: expected {_MAX_CHARACTERS} at most")
    try:
        return _compiled(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text[:80]!r} is no formula of integers") from error


def value_of(extent: Extent, values: Values) -> int:
    """Return an extent for values of the variables."""
    return extent if isinstance(extent, int) else formula(extent)(values)


def fixed(extent: Extent) -> int:
    """Return an extent that is a number.

    Raises:
        ValueError: If it is a formula.
    """
    if not isinstance(extent, int):
        raise ValueError(f"the extent {extent} is symbolic: it depends on the call")
    return extent


def variables_of(extent: Extent) -> Collection[str]:
    """Return the names of the variables of an extent."""
    if isinstance(extent, int):
        return ()
    nodes = ast.walk(ast.parse(extent, mode="eval"))
    return {node.id for node in nodes if isinstance(node, ast.Name)} - _FUNCTIONS.keys()


def _compiled(node: ast.expr) -> Formula:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return lambda values: number
        case ast.Name(id=name):
            return lambda values: values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _compiled(operand)
            return lambda values: -negated(values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _of_both(_OPERATIONS[type(op)], left, right)
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if (
            name in _FUNCTIONS
        ):
            return _of_both(_FUNCTIONS[name], left, right)
        case _:
            raise ValueError(f"{ast.unparse(node)[:80]!r} is no formula of integers")


def _of_both(fn: Callable[[int, int], int], left: ast.expr, right: ast.expr) -> Formula:
    a, b = _compiled(left), _compiled(right)
    return lambda values: fn(a(values), b(values))
