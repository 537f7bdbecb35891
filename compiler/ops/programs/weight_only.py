"""Products of floats with quantized weights."""

from __future__ import annotations

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import OperatorError, check_extents, check_flags
from compiler.ops.operator import operator
from compiler.ops.references import weight_only as references
from compiler.ops.tensors import weight_only as tensors


@operator(tensors.dense_int4, reference=references.dense_int4)
def dense_int4(
    m: int,
    n: int,
    k: int,
    group: int = 32,
    dtype: DType = "float32",
    *,
    zero_point: bool = False,
) -> PrimFunc:
    """`C[m, n] = A[m, k] @ W.T` of weights in 4 bits, with a scale for each `group` along `k`.

    `W[n, k / group, group / 2]` has two weights in a byte: byte `b` of a group holds weight `b` in
    its lower half and weight `b + group / 2` in its upper half, as GGUF's Q4_0 stores them. A
    weight stands for `scale[n, k / group] * (weight - 8)`.

    Args:
        m: The rows of the result.
        n: The columns of the result.
        k: The length of the sums.
        group: The weights with one scale.
        dtype: The type of `A`, of the scales and of the result, a float.
        zero_point: Whether weights are relative to bytes `zero_point[n, k / group]` instead of 8.

    Raises:
        OperatorError: If an extent, a type or an option is out of range.
    """
    check_extents("dense_int4", m=m, n=n, k=k, group=group)
    check_flags("dense_int4", zero_point=zero_point)
    if group % 2 or k % group:
        raise OperatorError(f"dense_int4: group is {group}: expected an even divisor of k = {k}")
    groups = k // group
    inputs = [
        operand((m, k), dtype, "A"),
        operand((n, groups, group // 2), "uint8", "W"),
        operand((n, groups), dtype, "scale"),
        *([operand((n, groups), "uint8", "zero_point")] if zero_point else []),
    ]
    return build("dense_int4", inputs, tensors.dense_int4(*inputs))


@operator(tensors.dense_int8, reference=references.dense_int8)
def dense_int8(
    m: int,
    n: int,
    k: int,
    group: int | None = None,
    dtype: DType = "float32",
) -> PrimFunc:
    """`C[m, n] = A[m, k] @ W[n, k].T` of int8 weights, with a scale for each `group` along `k`.

    A weight stands for `scale[n, k / group] * weight`.

    Args:
        m: The rows of the result.
        n: The columns of the result.
        k: The length of the sums.
        group: The weights with one scale; by default all `k` of a column.
        dtype: The type of `A`, of the scales and of the result, a float.

    Raises:
        OperatorError: If an extent or a type is out of range.
    """
    size = k if group is None else group
    check_extents("dense_int8", m=m, n=n, k=k, group=size)
    if k % size:
        raise OperatorError(f"dense_int8: group is {size}: expected a divisor of k = {k}")
    inputs = [
        operand((m, k), dtype, "A"),
        operand((n, k), "int8", "W"),
        operand((n, k // size), dtype, "scale"),
    ]
    return build("dense_int8", inputs, tensors.dense_int8(*inputs))
