"""Integers that depend on symbolic axes: what `Shape` returns of a tensor with such an axis.

They exist only while a model is read. Operators that models compute shapes with are applied to them
at once; a conversion reads the outcome with `OnnxCall.extents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, is_static, show_shape
from compiler.graph.nodes import Array, Constant, Operand, TensorType, constant
from compiler.ir.core.dtypes import DType

FIX_AXES = "fix the axes of the model's inputs: shapes={...}"
"""What a user can do about symbolic axes."""


@dataclass(frozen=True, eq=False)
class SymbolicInts:
    """A tensor of integers of which at least one element is a symbolic extent.

    Attributes:
        array: The elements, `int` or `Expr`, as NumPy objects.
        dtype: The type of the integers: extents are int64, and models convert them to int32.
    """

    array: Array
    dtype: DType = "int64"

    @property
    def type(self) -> TensorType:
        """Return the shape, which is static, and the type of the integers."""
        return TensorType(self.array.shape, self.dtype)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """Return the elements in order."""
        return tuple(self.array.reshape(-1))

    def refusal(self, what: str) -> ModelError:
        """Return the error of an operator that needs numbers."""
        return ModelError(
            f"{what} depends on symbolic axes: it is {show_shape(self.extents)}",
            advice=FIX_AXES,
        )


@dataclass(frozen=True, eq=False)
class TensorSequence:
    """A list of tensors of one data type; it exists only while a model is read.

    Attributes:
        dtype: The type of the tensors.
        elements: The tensors, whose shapes may differ.
    """

    dtype: DType
    elements: tuple[Operand, ...] = ()

    def refusal(self, what: str) -> ModelError:
        """Return the error of an operator that needs a tensor."""
        return ModelError(f"{what} is a sequence of tensors: expected a tensor")


Result: TypeAlias = Operand | SymbolicInts | TensorSequence
"""What a name of a model stands for."""


def ints_operand(array: Array, name: str, dtype: DType) -> SymbolicInts | Constant:
    """Return integers and extents, given as NumPy objects, as a constant if all are integers."""
    if is_static(tuple(array.reshape(-1))):
        return constant(array.astype(dtype), name)
    return SymbolicInts(array, dtype)


def extents_operand(extents: Sequence[Extent], name: str = "") -> SymbolicInts | Constant:
    """Return extents as a vector."""
    array = np.empty(len(extents), object)
    array[:] = extents
    return ints_operand(array, name, "int64")
