"""The common type of operands of several types, as PyTorch finds it.

See https://docs.pytorch.org/docs/stable/tensor_attributes.html: numbers and tensors of rank 0
change a tensor's type only if their category is higher; the categories are bool, integers, floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import cast

import numpy as np

from compiler.graph.nodes import Operand
from compiler.ir.core.dtypes import DType, is_float, size_bytes


def common_dtype(values: Sequence[Operand | float]) -> DType:
    """Return the type in which PyTorch computes an operator of tensors and numbers."""
    groups: list[list[DType]] = [[], [], []]
    for value in values:
        if isinstance(value, int | float):
            groups[2].append(_number_dtype(value))
        else:
            groups[0 if value.type.rank else 1].append(value.type.dtype)
    return reduce(_with_lower, (reduce(_promoted, group) for group in groups if group))


def _number_dtype(number: float) -> DType:
    if isinstance(number, bool):
        return "bool"
    return "int64" if isinstance(number, int) else "float32"


def _with_lower(dtype: DType, lower: DType) -> DType:
    return lower if _category(lower) > _category(dtype) else dtype


def _promoted(left: DType, right: DType) -> DType:
    if _category(left) != _category(right):
        return max(left, right, key=_category)
    if {left, right} == {"float16", "bfloat16"}:
        return "float32"
    if left == right:
        return left
    if is_float(left):
        return max(left, right, key=size_bytes)
    return cast("DType", np.promote_types(left, right).name)


def _category(dtype: DType) -> int:
    if dtype == "bool":
        return 0
    return 2 if is_float(dtype) else 1
