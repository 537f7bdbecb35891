"""Sums, means and extremes over any axes of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from compiler import te
from compiler.ir.core.dtypes import DType, has_infinity, is_float, sum_dtype
from compiler.ops.error import Numbers, check_axes, check_dtype, check_flags
from compiler.ops.tensors.epilogue import converted
from compiler.ops.tensors.operands import dims_of


class ReductionOnTensor(Protocol):
    """A reduction of a tensor of any shape."""

    __name__: str

    def __call__(
        self, x: te.Tensor, /, *, axis: Numbers | None = None, keepdims: bool = False
    ) -> te.Tensor:
        """Return the result.

        Args:
            x: The tensor.
            axis: The axes that are reduced; by default all.
            keepdims: Whether the result keeps them, with an extent of one.
        """
        ...


def _reduction(
    name: str, reduce: Callable[..., te.Reduction], text: str, *, is_exact: bool = False
) -> ReductionOnTensor:
    """Return a reduction; one that is not exact is computed in the type of sums."""

    def operator(x: te.Tensor, *, axis: Numbers | None = None, keepdims: bool = False) -> te.Tensor:
        axes = _checked(name, x, axis, keepdims)
        if is_exact:
            return _reduced(x, axes, keepdims, reduce, "B", x.dtype)
        return _rounded_once(x, axes, keepdims, reduce)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = f"""Return {text} over some axes, or all.

    Args:
        x: The tensor.
        axis: The axes that are reduced; by default all.
        keepdims: Whether the result keeps them, with an extent of one.

    Raises:
        OperatorError: If an axis or the type is out of range.
    """
    return operator


sum = _reduction("sum", te.sum, "the sum of a tensor")
prod = _reduction("prod", te.prod, "the product of the elements of a tensor")
max = _reduction("max", te.max, "the largest element of a tensor", is_exact=True)
min = _reduction("min", te.min, "the smallest element of a tensor", is_exact=True)


def mean(x: te.Tensor, *, axis: Numbers | None = None, keepdims: bool = False) -> te.Tensor:
    """Return the mean of a tensor over some axes, or all; options as `sum` has them.

    Raises:
        OperatorError: If an axis or the type is out of range.
    """
    axes = _checked("mean", x, axis, keepdims)
    check_dtype("mean", x.dtype, needs_float=True)
    total = _reduced(x, axes, keepdims, te.sum, "total", sum_dtype(x.dtype))
    count = math.prod(dims_of("mean", x)[k] for k in axes)
    return te.compute(total.shape, lambda *i: (total[i] / count).astype(x.dtype), name="B")


def row_sum(x: te.Tensor) -> te.Tensor:
    """Return the sum of each row of `x[m, n]`.

    Raises:
        OperatorError: If the shape or the type does not fit.
    """
    check_dtype("row_sum", x.dtype)
    dims_of("row_sum", x, 2)
    return _rounded_once(x, (1,), False, te.sum)


def argmax(x: te.Tensor, *, axis: Numbers | None = None, keepdims: bool = False) -> te.Tensor:
    """Return the position of the largest element over some axes, or all; of equal ones, the first.

    A position is an int32: the number of an element among those that are compared. If one of them
    is NaN, it is the position of any of them.

    Raises:
        OperatorError: If an axis or the type is out of range.
    """
    return _arg_extreme("argmax", x, axis, keepdims)


def argmin(x: te.Tensor, *, axis: Numbers | None = None, keepdims: bool = False) -> te.Tensor:
    """Return the position of the smallest element over some axes, or all, as `argmax` does.

    Raises:
        OperatorError: If an axis or the type is out of range.
    """
    return _arg_extreme("argmin", x, axis, keepdims)


def _arg_extreme(name: str, x: te.Tensor, axis: Numbers | None, keepdims: bool) -> te.Tensor:
    axes = _checked(name, x, axis, keepdims)
    dims = dims_of(name, x)
    reducer = position_reducer(name, is_max=name == "argmax")
    k = {axis: te.reduce_axis((0, dims[axis]), name=f"k{axis}") for axis in axes}

    def element(*i: te.Value) -> te.Reduction:
        position: te.Value = k[axes[0]].var
        for axis_number in axes[1:]:
            position = position * dims[axis_number] + k[axis_number]
        value = x[_whole_index(i, dims, axes, keepdims, k)]
        reduction: te.Reduction = reducer((position, value), axis=list(k.values()))
        return reduction

    shape = _result_dims(dims, axes, keepdims)
    pair: Any = te.compute(shape, element, name="B_temp")
    positions: te.Tensor = pair[0]
    return te.compute(shape, lambda *i: positions[i], name="B")


def position_reducer(name: str, *, is_max: bool) -> Callable[..., Any]:
    """Return the reducer of positions and values; of equal values, the lowest position counts."""

    def better(a: te.Value, b: te.Value) -> te.Value:
        return a > b if is_max else a < b

    def combine(
        a: tuple[te.Value, te.Value], b: tuple[te.Value, te.Value]
    ) -> tuple[te.Value, te.Value]:
        # NaN is neither better nor worse: the lower position counts, so it is one of an element.
        is_no_worse = ~better(b[1], a[1])
        wins = te.any(better(a[1], b[1]), te.all(is_no_worse, a[0] < b[0]))
        return te.select(wins, a[0], b[0]), te.select(wins, a[1], b[1])

    def identity(position: DType, value: DType) -> tuple[te.Value, te.Value]:
        # Infinite elements tie with it, and have a lower position.
        if is_float(value) and has_infinity(value):
            return te.max_value(position), te.const(-math.inf if is_max else math.inf, value)
        return te.max_value(position), (te.min_value if is_max else te.max_value)(value)

    return te.comm_reducer(combine, identity, name=name)


def _checked(name: str, x: te.Tensor, axis: Numbers | None, keepdims: bool) -> tuple[int, ...]:
    check_dtype(name, x.dtype)
    check_flags(name, keepdims=keepdims)
    return check_axes(name, axis, len(dims_of(name, x)))


def _rounded_once(
    x: te.Tensor, axes: tuple[int, ...], keepdims: bool, reduce: Callable[..., te.Reduction]
) -> te.Tensor:
    """Return a reduction that is computed in the type of sums, in the type of the tensor."""
    return converted(_reduced(x, axes, keepdims, reduce, "B", sum_dtype(x.dtype)), x.dtype)


def _reduced(  # noqa: PLR0917
    x: te.Tensor,
    axes: tuple[int, ...],
    keepdims: bool,
    reduce: Callable[..., te.Reduction],
    name: str,
    dtype: DType,
) -> te.Tensor:
    """Return a reduction that is computed in a type."""
    dims = dims_of(name, x)
    names = {axes[0]: "k"} if len(axes) == 1 else {axis: f"k{axis}" for axis in axes}
    k = {axis: te.reduce_axis((0, dims[axis]), name=names[axis]) for axis in axes}

    def element(*i: te.Value) -> te.Reduction:
        term = x[_whole_index(i, dims, axes, keepdims, k)].astype(dtype)
        return reduce(term, axis=list(k.values()))

    return te.compute(_result_dims(dims, axes, keepdims), element, name=name)


def _result_dims(dims: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if axis in axes else n for axis, n in enumerate(dims))
    return tuple(n for axis, n in enumerate(dims) if axis not in axes)


def _whole_index(
    index: Sequence[te.Value],
    dims: tuple[int, ...],
    axes: tuple[int, ...],
    keepdims: bool,
    k: dict[int, te.ReduceAxis],
) -> tuple[te.Value, ...]:
    """Return the index in the tensor of an element in the domain of the reduction."""
    remaining = iter([i for axis, i in enumerate(index) if not (keepdims and axis in axes)])
    return tuple(k[axis] if axis in axes else next(remaining) for axis in range(len(dims)))
