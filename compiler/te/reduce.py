"""Reductions over axes: sums, products, extremes, and reducers that a user defines."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard, overload

from compiler.ir.core.dtypes import DType, smallest_and_largest
from compiler.ir.core.nodes import BinOp, Var
from compiler.te.functions import if_then_else
from compiler.te.tensor import Reduction
from compiler.te.value import ReduceAxis, Value, ValueLike, as_value, const, same_dtype

Axes: TypeAlias = ReduceAxis | Sequence[ReduceAxis]
Combine: TypeAlias = Callable[[Value, Value], Value]


def sum(
    expr: Value, axis: Axes, where: Value | None = None, init: ValueLike | None = None
) -> Reduction:
    """Sum `expr` over the values of `axis` for which `where` holds, starting from `init`.

    Raises:
        TypeError: If `expr` is not a number, or an axis is not a reduction axis.
    """
    return _fold("sum", lambda a, b: a + b, expr, axis, where=where, init=init)


def prod(
    expr: Value, axis: Axes, where: Value | None = None, init: ValueLike | None = None
) -> Reduction:
    """Multiply `expr` over the values of `axis` for which `where` holds, starting from `init`.

    Raises:
        TypeError: If `expr` is not a number, or an axis is not a reduction axis.
    """
    return _fold("prod", lambda a, b: a * b, expr, axis, where=where, init=init)


@overload
def max(  # type: ignore[overload-overlap]  # an axis is a value too, and decides
    expr: Value, axis: Axes, where: Value | None = ..., init: ValueLike | None = ...
) -> Reduction: ...
@overload
def max(expr: ValueLike, axis: ValueLike) -> Value: ...
def max(
    expr: ValueLike,
    axis: ValueLike | Axes,
    where: Value | None = None,
    init: ValueLike | None = None,
) -> Value | Reduction:
    """Return the larger of two values, or the maximum of `expr` over the values of `axis`.

    Raises:
        TypeError: If the values have no common type, or `expr` is not a number.
    """
    return _extreme("max", expr, axis, where, init)


@overload
def min(  # type: ignore[overload-overlap]  # an axis is a value too, and decides
    expr: Value, axis: Axes, where: Value | None = ..., init: ValueLike | None = ...
) -> Reduction: ...
@overload
def min(expr: ValueLike, axis: ValueLike) -> Value: ...
def min(
    expr: ValueLike,
    axis: ValueLike | Axes,
    where: Value | None = None,
    init: ValueLike | None = None,
) -> Value | Reduction:
    """Return the smaller of two values, or the minimum of `expr` over the values of `axis`.

    Raises:
        TypeError: If the values have no common type, or `expr` is not a number.
    """
    return _extreme("min", expr, axis, where, init)


def max_value(dtype: DType) -> Value:
    """Return the largest finite value of a type."""
    return const(smallest_and_largest(dtype)[1], dtype)


def min_value(dtype: DType) -> Value:
    """Return the smallest finite value of a type."""
    return const(smallest_and_largest(dtype)[0], dtype)


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Make a reducer from a commutative and associative operation.

    Args:
        fcombine: Combines two values to one; or two tuples of values to a tuple.
        fidentity: Takes the type of each value, and returns the identity element: combining it
            with other values does not change them.
        name: The name of the reducer in errors.

    Returns:
        A function of values and an axis (`argmax((k.var, A[i, k]), axis=k)`), which also takes
        `where` and `init`; of values alone, it combines these.
    """

    def reducer(
        expr: ValueLike | Sequence[ValueLike],
        axis: ValueLike | Axes,
        *more: ValueLike,
        where: Value | None = None,
        init: ValueLike | Sequence[ValueLike] | None = None,
    ) -> Any:
        if not _is_axes(axis):
            return functools.reduce(fcombine, (expr, axis, *more))
        is_tuple = isinstance(expr, Sequence)
        values = [as_value(v) for v in (expr if isinstance(expr, Sequence) else (expr,))]
        identity = _several(fidentity(*(v.dtype for v in values)))

        def combine(lhs: list[Value], rhs: list[Value]) -> list[Value]:
            if is_tuple:
                return _several(fcombine(tuple(lhs), tuple(rhs)))
            return _several(fcombine(lhs[0], rhs[0]))

        start = identity if init is None else _several(init)
        return _reduction(
            name,
            combine,
            values,
            axis,
            where=where,
            identity=identity,
            start=start,
        )

    return reducer


def _fold(
    name: str,
    combine: Combine,
    expr: ValueLike,
    axis: Axes,
    *,
    where: Value | None,
    init: ValueLike | None,
) -> Reduction:
    value = as_value(expr)
    if value.dtype == "bool":
        raise TypeError(f"te.{name} takes numbers, got bool: convert with astype")
    identity = [_identity(name, value.dtype)]
    start = identity if init is None else [as_value(init, value.dtype)]
    return _reduction(
        name,
        lambda a, b: [combine(a[0], b[0])],
        [value],
        axis,
        where=where,
        identity=identity,
        start=start,
    )


def _extreme(
    name: Any,
    expr: ValueLike,
    axis: ValueLike | Axes,
    where: Value | None,
    init: ValueLike | None,
) -> Value | Reduction:
    def larger(lhs: ValueLike, rhs: ValueLike) -> Value:
        a, b = same_dtype(lhs, rhs, f"te.{name}")
        return Value(BinOp(name, a.expr, b.expr), a, b)

    if _is_axes(axis):
        return _fold(name, larger, expr, axis, where=where, init=init)
    if where is not None or init is not None or isinstance(axis, Sequence):
        raise TypeError(f"te.{name} takes either two values, or one value and an axis")
    return larger(expr, axis)


def _is_axes(axis: ValueLike | Axes) -> TypeGuard[Axes]:
    return isinstance(axis, ReduceAxis | Sequence)


def _reduction(  # noqa: PLR0917 - all that a reduction is
    name: str,
    combine: Callable[[list[Value], list[Value]], list[Value]],
    values: list[Value],
    axis: Axes,
    where: Value | None,
    identity: list[Value],
    start: list[Value],
) -> Reduction:
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    if not axes or not builtins.all(isinstance(a, ReduceAxis) for a in axes):
        raise TypeError("a reduction needs one or more axes made by te.reduce_axis")
    accumulators = tuple(Var(f"x{n}", v.dtype) for n, v in enumerate(values))
    if where is not None:
        pairs = zip(values, identity, strict=True)
        values = [if_then_else(where, value, neutral) for value, neutral in pairs]
    combined = combine([Value(a) for a in accumulators], values)
    for role, operands in (("combination", combined), ("identity", identity), ("init", start)):
        if [v.dtype for v in operands] != [v.dtype for v in values]:
            expected = ", ".join(v.dtype for v in values)
            got = ", ".join(v.dtype for v in operands)
            raise TypeError(f"the {role} of te.{name} has type {got}: expected {expected}")
    return Reduction(axes, tuple(values), tuple(start), accumulators, tuple(combined))


def _several(values: object) -> list[Value]:
    several = values if isinstance(values, tuple | list) else (values,)
    return [as_value(v) for v in several]


def _identity(name: str, dtype: DType) -> Value:
    """Return the identity element of a reduction for `dtype`."""
    match name:
        case "sum":
            return const(0, dtype)
        case "prod":
            return const(1, dtype)
        case "max":
            return min_value(dtype)
        case _:
            return max_value(dtype)
