"""Operators on each element alone; any number of dimensions."""

from __future__ import annotations

from compiler import te
from compiler.ir.dtypes import DType
from compiler.ir.nodes import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import check_dtype, check_extents


def relu(*shape: int, dtype: DType = "float32") -> PrimFunc:
    """`B = max(A, 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    _check("relu", shape, dtype)
    a = te.placeholder(shape, dtype, name="A")
    b = te.compute(shape, lambda *i: te.max(a[i], 0), name="B")
    return build("relu", [a, b])


def add(*shape: int, dtype: DType = "float32") -> PrimFunc:
    """`C = A + B`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    _check("add", shape, dtype)
    a = te.placeholder(shape, dtype, name="A")
    b = te.placeholder(shape, dtype, name="B")
    c = te.compute(shape, lambda *i: a[i] + b[i], name="C")
    return build("add", [a, b, c])


def _check(operator: str, shape: tuple[int, ...], dtype: DType) -> None:
    check_extents(operator, **{f"d{axis}": extent for axis, extent in enumerate(shape)})
    check_dtype(operator, dtype)
