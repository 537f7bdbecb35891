"""Ranges of a buffer's dimensions in terms of a block's iterators, as functions and as text.

`lambda vi, vj: ((vi - 1, vi + 2), vj)` is the rows `vi - 1` to `vi + 1`, and the column `vj`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Expr, Var
from compiler.ir.core.promotion import promoted
from compiler.ir.core.visit import substitute
from compiler.ir.text.names import Names
from compiler.ir.text.print_expr import print_expr
from compiler.schedule.index.index_map import (
    IndexMapError,
    index_results,
    parameters_of,
    require_readable,
)
from compiler.schedule.index.lambda_text import LambdaError, read_lambda
from compiler.te.value import Value

RangesLike: TypeAlias = "Callable[..., object] | str"
"""A Python function of iterators, or the text of a lambda."""


@dataclass(frozen=True)
class RangeMap:
    """The first index and the end of each dimension, in terms of variables."""

    params: tuple[Var, ...]
    ends: tuple[tuple[Expr, Expr], ...]

    def at(self, iterators: Sequence[Var]) -> list[tuple[Expr, Expr]]:
        """Return the first index and the end of each dimension for some iterators."""
        mapping: dict[Var, Expr] = dict(zip(self.params, iterators, strict=True))
        return [(substitute(low, mapping), substitute(end, mapping)) for low, end in self.ends]

    def __str__(self) -> str:
        names = Names()
        params = ", ".join(names.bind(param) for param in self.params)
        pairs = "".join(f"({print_expr(a, names)}, {print_expr(b, names)}), " for a, b in self.ends)
        return f"lambda{' ' if params else ''}{params}: ({pairs.removesuffix(' ')})"


def as_range_map(
    given: RangesLike, dtypes: Sequence[DType], symbols: Sequence[Var] = ()
) -> RangeMap:
    """Return the ranges that an argument describes for iterators.

    Args:
        given: The argument.
        dtypes: The types of the iterators.
        symbols: The symbolic sizes of the program, which the ranges may name.

    Raises:
        IndexMapError: If the argument is no such function.
    """
    ndim = len(dtypes)
    try:
        if isinstance(given, str):
            names, function = read_lambda(given, ndim, symbols)
        else:
            names = parameters_of(given, ndim)
        if len(names) != ndim:
            raise IndexMapError(f"the function takes {len(names)} iterators, not {ndim}")
        params = tuple(map(Var, names, dtypes))
        arguments = [Value(param) for param in params]
        returned = function(arguments) if isinstance(given, str) else given(*arguments)
    except (LambdaError, TypeError) as error:
        raise IndexMapError(f"the function of the ranges failed: {error}") from None
    items = returned if isinstance(returned, list | tuple) else [returned]
    ends = tuple(_ends(item, dtypes[0] if dtypes else "int32") for item in items)
    require_readable(params, (end for pair in ends for end in pair), symbols)
    return RangeMap(params, ends)


def _ends(item: object, dtype: DType) -> tuple[Expr, Expr]:
    """Return the two ends of a range, in one type; numbers get a given type if both are."""
    if not isinstance(item, list | tuple):
        item = (item, item + 1) if isinstance(item, Value | int) else (item, item)
    ends = index_results(item, next((end.dtype for end in item if isinstance(end, Value)), dtype))
    if len(ends) != 2:
        raise IndexMapError(f"a range of {len(ends)} ends: expected the first index and the end")
    ends = promoted(*ends)
    # In its shortest form, the text of an end is read as the same expression.
    return simplify(ends[0]), simplify(ends[1])
