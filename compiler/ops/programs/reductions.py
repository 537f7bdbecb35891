"""Sums, means and extremes over any axes of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import Numbers, check_axes, check_dtype, check_flags, check_shape


class Reduce(Protocol):
    """A reduction of a tensor of any shape."""

    def __call__(
        self,
        *shape: int,
        axis: Numbers | None = None,
        keepdims: bool = False,
        dtype: DType = "float32",
    ) -> PrimFunc:
        """Return its program.

        Args:
            shape: The shape of the tensor.
            axis: The axes that are reduced; all of them unless they are given.
            keepdims: Whether the result keeps them, with an extent of one.
            dtype: The type of the tensor.
        """
        ...


def _reduction(name: str, reduce: Callable[..., te.Reduction], text: str) -> Reduce:
    def operator(
        *shape: int,
        axis: Numbers | None = None,
        keepdims: bool = False,
        dtype: DType = "float32",
    ) -> PrimFunc:
        dims, axes = _checked(name, shape, axis, keepdims, dtype)
        a = te.placeholder(dims, dtype, name="A")
        return build(name, [a, _reduced(a, dims, axes, keepdims, reduce, "B")])

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = f"""{text} over some axes, or all.

    Args:
        shape: The shape of the tensor.
        axis: The axes that are reduced; all of them unless they are given.
        keepdims: Whether the result keeps them, with an extent of one.
        dtype: The type of the tensor.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    return operator


sum = _reduction("sum", te.sum, "Add a tensor up")
prod = _reduction("prod", te.prod, "Multiply a tensor up")
max = _reduction("max", te.max, "Take the largest element of a tensor")
min = _reduction("min", te.min, "Take the smallest element of a tensor")


def mean(
    *shape: int, axis: Numbers | None = None, keepdims: bool = False, dtype: DType = "float32"
) -> PrimFunc:
    """Take the mean of a tensor over some axes, or all; arguments as `sum` has them.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    dims, axes = _checked("mean", shape, axis, keepdims, dtype)
    check_dtype("mean", dtype, needs_float=True)
    a = te.placeholder(dims, dtype, name="A")
    total = _reduced(a, dims, axes, keepdims, te.sum, "total")
    count = math.prod(dims[k] for k in axes)
    kept = _kept(dims, axes, keepdims)
    return build("mean", [a, te.compute(kept, lambda *i: total[i] / count, name="B")])


def row_sum(m: int, n: int, dtype: DType = "float32") -> PrimFunc:
    """`B[i] = sum(A[i, :])`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    dims, axes = _checked("row_sum", (m, n), 1, False, dtype)
    a = te.placeholder(dims, dtype, name="A")
    return build("row_sum", [a, _reduced(a, dims, axes, False, te.sum, "B")])


def argmax(
    *shape: int, axis: Numbers | None = None, keepdims: bool = False, dtype: DType = "float32"
) -> PrimFunc:
    """Find the largest element over some axes, or all; of equal ones, the first.

    The result is its place, an int32: its number among the elements that are compared.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    return _arg_extreme("argmax", shape, axis, keepdims, dtype)


def argmin(
    *shape: int, axis: Numbers | None = None, keepdims: bool = False, dtype: DType = "float32"
) -> PrimFunc:
    """Find the smallest element over some axes, or all; of equal ones, the first.

    The result is its place, an int32: its number among the elements that are compared.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    return _arg_extreme("argmin", shape, axis, keepdims, dtype)


def _arg_extreme(
    name: str, shape: tuple[int, ...], axis: Numbers | None, keepdims: bool, dtype: DType
) -> PrimFunc:
    dims, axes = _checked(name, shape, axis, keepdims, dtype)
    is_max = name == "argmax"

    def better(x: te.Value, y: te.Value) -> te.Value:
        return x > y if is_max else x < y

    def combine(
        x: tuple[te.Value, te.Value], y: tuple[te.Value, te.Value]
    ) -> tuple[te.Value, te.Value]:
        wins = better(x[1], y[1])
        first = te.any(wins, te.all(x[1] == y[1], x[0] < y[0]))
        return te.select(first, x[0], y[0]), te.select(wins, x[1], y[1])

    worst = te.min_value if is_max else te.max_value
    reducer = te.comm_reducer(combine, lambda t0, t1: (te.const(-1, t0), worst(t1)), name=name)
    a = te.placeholder(dims, dtype, name="A")
    k = {axis: te.reduce_axis((0, dims[axis]), name=f"k{axis}") for axis in axes}

    def element(*i: te.Value) -> te.Reduction:
        number: te.Value = k[axes[0]].var
        for each in axes[1:]:
            number = number * dims[each] + k[each]
        place = _whole(i, dims, axes, keepdims, k)
        reduction: te.Reduction = reducer((number, a[place]), axis=list(k.values()))
        return reduction

    kept = _kept(dims, axes, keepdims)
    found: Any = te.compute(kept, element, name="B_temp")
    numbers: te.Tensor = found[0]
    return build(name, [a, te.compute(kept, lambda *i: numbers[i], name="B")])


def _checked(
    name: str, shape: tuple[int, ...], axis: Numbers | None, keepdims: bool, dtype: DType
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    dims = check_shape(name, shape)
    check_dtype(name, dtype)
    check_flags(name, keepdims=keepdims)
    return dims, check_axes(name, axis, len(dims))


def _reduced(  # noqa: PLR0917
    a: te.Tensor,
    dims: tuple[int, ...],
    axes: tuple[int, ...],
    keepdims: bool,
    reduce: Callable[..., te.Reduction],
    name: str,
) -> te.Tensor:
    names = {axes[0]: "k"} if len(axes) == 1 else {axis: f"k{axis}" for axis in axes}
    k = {axis: te.reduce_axis((0, dims[axis]), name=names[axis]) for axis in axes}
    return te.compute(
        _kept(dims, axes, keepdims),
        lambda *i: reduce(a[_whole(i, dims, axes, keepdims, k)], axis=list(k.values())),
        name=name,
    )


def _kept(dims: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if axis in axes else n for axis, n in enumerate(dims))
    return tuple(n for axis, n in enumerate(dims) if axis not in axes)


def _whole(
    index: Sequence[te.Value],
    dims: tuple[int, ...],
    axes: tuple[int, ...],
    keepdims: bool,
    k: dict[int, te.ReduceAxis],
) -> tuple[te.Value, ...]:
    """Return the place in the tensor of an element that the reduction runs over."""
    rest = iter([i for axis, i in enumerate(index) if not (keepdims and axis in axes)])
    return tuple(k[axis] if axis in axes else next(rest) for axis in range(len(dims)))
