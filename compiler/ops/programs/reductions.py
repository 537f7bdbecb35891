"""Sums, means and extremes over any axes of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import Numbers, check_shape
from compiler.ops.operator import Array, operator
from compiler.ops.recognizers import rows as recognizers
from compiler.ops.references import reductions as references
from compiler.ops.tensors import partial_sort
from compiler.ops.tensors import reductions as tensors


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
            axis: The axes that are reduced; by default all.
            keepdims: Whether the result keeps them, with an extent of one.
            dtype: The type of the tensor.
        """
        ...


def _reduction(
    reduce: tensors.ReductionOnTensor, function: Callable[..., Array], text: str
) -> Reduce:
    name = reduce.__name__

    def program(
        *shape: int,
        axis: Numbers | None = None,
        keepdims: bool = False,
        dtype: DType = "float32",
    ) -> PrimFunc:
        x = operand(check_shape(name, shape), dtype, "A")
        return build(name, [x], reduce(x, axis=axis, keepdims=keepdims))

    program.__name__ = program.__qualname__ = name
    program.__doc__ = f"""{text} over some axes, or all.

    Args:
        shape: The shape of the tensor.
        axis: The axes that are reduced; by default all.
        keepdims: Whether the result keeps them, with an extent of one.
        dtype: The type of the tensor.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    declare = operator(
        reduce, reference=references.reduction(function), recognize=recognizers.reductions
    )
    return declare(program)


sum = _reduction(tensors.sum, np.sum, "Sum a tensor")
prod = _reduction(tensors.prod, np.prod, "Multiply the elements of a tensor")
max = _reduction(tensors.max, np.max, "Take the largest element of a tensor")
min = _reduction(tensors.min, np.min, "Take the smallest element of a tensor")


@operator(tensors.mean, reference=references.reduction(np.mean), recognize=recognizers.reductions)
def mean(
    *shape: int, axis: Numbers | None = None, keepdims: bool = False, dtype: DType = "float32"
) -> PrimFunc:
    """Take the mean of a tensor over some axes, or all; arguments as `sum` has them.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    x = operand(check_shape("mean", shape), dtype, "A")
    return build("mean", [x], tensors.mean(x, axis=axis, keepdims=keepdims))


@operator(tensors.row_sum, reference=references.row_sum)
def row_sum(m: int, n: int, dtype: DType = "float32") -> PrimFunc:
    """`B[i] = sum(A[i, :])`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    x = operand(check_shape("row_sum", (m, n)), dtype, "A")
    return build("row_sum", [x], tensors.row_sum(x))


@operator(tensors.argmax, reference=references.arg_extreme(np.argmax))
def argmax(
    *shape: int, axis: Numbers | None = None, keepdims: bool = False, dtype: DType = "float32"
) -> PrimFunc:
    """Find the largest element over some axes, or all; of equal ones, the first.

    The result is its position, an int32: its number among the elements that are compared.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    x = operand(check_shape("argmax", shape), dtype, "A")
    return build("argmax", [x], tensors.argmax(x, axis=axis, keepdims=keepdims))


@operator(tensors.argmin, reference=references.arg_extreme(np.argmin))
def argmin(
    *shape: int, axis: Numbers | None = None, keepdims: bool = False, dtype: DType = "float32"
) -> PrimFunc:
    """Find the smallest element over some axes, or all; of equal ones, the first.

    The result is its position, an int32: its number among the elements that are compared.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    x = operand(check_shape("argmin", shape), dtype, "A")
    return build("argmin", [x], tensors.argmin(x, axis=axis, keepdims=keepdims))


@operator(partial_sort.topk, reference=references.topk)
def topk(*shape: int, k: int, largest: bool = True, dtype: DType = "float32") -> PrimFunc:
    """Find the `k` largest elements of each row, in descending order, and their positions.

    Of equal elements, those with lower positions come first. The outputs are `values` and
    `indices`, of type int32.

    Args:
        shape: The shape of `A`, whose last axis runs along rows.
        k: The number of elements, at most 16.
        largest: Whether the largest elements are found, or the smallest in ascending order.
        dtype: The type of `A` and of the values.

    Raises:
        OperatorError: If an extent, an option or the type is out of range.
    """
    x = operand(check_shape("topk", shape), dtype, "A")
    return build("topk", [x], *partial_sort.topk(x, k=k, largest=largest))
