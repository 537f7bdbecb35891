"""Products of floats with quantized weights: small integers, each with the scale of its group.

With one row, each weight is read once, and used as it is read. Several rows share weights: if these
have scales in groups, a block of its own unpacks them, so that schedules do it once for all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import static_shape
from compiler.ops.error import OperatorError, check_dtype
from compiler.ops.tensors.epilogue import Types, check_types, converted
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of
from compiler.ops.tensors.quantized import check_type
from compiler.te.functions import reinterpret

Element: TypeAlias = Callable[[te.Value, te.Value], te.Value]
"""Returns the value of two indices or numbers, such as a column and a group."""

_Int4Product: TypeAlias = Callable[[te.Tensor, te.Tensor, te.Tensor, Element, DType], te.Tensor]
MAX_GROUPED_ROWS = 32
"""With more rows, weights are unpacked to float32, whose scales are multiplied once. On a Zen 4, 32
rows of float32 and 4096 x 4096 weights take 0.85 of the time of that.
"""
MIN_GROUP = 16
"""Sums of smaller groups are too short for register tiles. Chosen."""
_BITS_OF_128 = 0x4300
"""128 in bfloat16: its last 7 bits are those of an integer."""


def dense_int4(
    x: te.Tensor, weight: te.Tensor, scale: te.Tensor, zero_point: te.Tensor | None = None
) -> te.Tensor:
    """Return `x[m, k] @ w[n, k].T` of weights in 4 bits, scaled in groups along `k`.

    Args:
        x: `[m, k]`, of a float type.
        weight: `[n, groups, bytes]` in uint8; see `ops.dense_int4`.
        scale: `[n, groups]`, of the type of `x`.
        zero_point: `[n, groups]` in uint8, the weight that stands for zero; by default 8.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    operator = "dense_int4"
    n, groups, half = dims_of(operator, weight, 3)
    types = _check_operands(operator, x, scale, (n, 2 * groups * half))
    check_dims(operator, scale, (n, groups))
    check_type(operator, weight.dtype, ("uint8",))
    if zero_point is not None:
        check_type(operator, zero_point.dtype, ("uint8",))
        check_dims(operator, zero_point, (n, groups))

    def zero(j: te.Value, g: te.Value) -> te.Value:
        return te.const(8, types.sum) if zero_point is None else zero_point[j, g].astype(types.sum)

    product = _int4_product(x.dtype, static_shape(x.buffer)[0], 2 * half)
    return converted(product(x, weight, scale, zero, types.sum), types.result)


def dense_int8(x: te.Tensor, weight: te.Tensor, scale: te.Tensor) -> te.Tensor:
    """Return `x[m, k] @ w[n, k].T` of weights in 8 bits, scaled in groups along `k`.

    If a row of weights is a single group, its sums are scaled instead.

    Args:
        x: `[m, k]`, of a float type.
        weight: `[n, k]` in int8.
        scale: `[n, groups]`, of the type of `x`.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    operator = "dense_int8"
    n, k = dims_of(operator, weight, 2)
    types = _check_operands(operator, x, scale, (n, k))
    check_type(operator, weight.dtype, ("int8",))
    groups = dims_of(operator, scale, 2)[1]
    if k % groups:
        raise OperatorError(f"{operator}: {groups} groups do not divide the {k} weights of a row")
    check_dims(operator, scale, (n, groups))
    if groups == 1:
        product = _product(x, n, lambda j, k: weight[j, k].astype(types.sum), types.sum)
        total = te.compute(
            product.shape, lambda i, j: product[i, j] * scale[j, 0].astype(types.sum), name="scaled"
        )
    else:
        grouped = _int8_row if x.shape[0] == 1 else _int8_tiles
        total = grouped(x, weight, scale, types.sum)
    return converted(total, types.result)


def _check_operands(
    operator: str, x: te.Tensor, scale: te.Tensor, weights: tuple[int, int]
) -> Types:
    """Refuse operands that do not fit weights of a shape; return the types of the product."""
    types = check_types(operator, x.dtype, None, None)
    check_dtype(operator, x.dtype, needs_float=True)
    check_same_dtype(operator, x, scale)
    check_dims(operator, x, (dims_of(operator, x, 2)[0], weights[1]))
    return types


def _int4_product(dtype: DType, rows: int, size: int) -> _Int4Product:
    """Return the form of a product with weights of 4 bits.

    Args:
        dtype: The type of the rows.
        rows: The number of rows.
        size: The weights with one scale.
    """
    if rows == 1:
        return _int4_row
    are_few = rows <= MAX_GROUPED_ROWS and size >= MIN_GROUP and size % 4 == 0
    return _int4_groups if dtype in ("bfloat16", "float32") and are_few else _int4_tiles


def _int4_row(
    x: te.Tensor, weight: te.Tensor, scale: te.Tensor, zero: Element, dtype: DType
) -> te.Tensor:
    """Return the product with one row, which reads each weight once.

    A byte is `16 * upper + lower`, so that the products of its halves need no shift:

        lower * first + upper * second = lower * (first - second / 16) + byte * (second / 16)

    These factors of the row, and the sums that zero points are multiplied by, are computed once for
    all columns.
    """
    n, groups, half = static_shape(weight.buffer)

    def row_factors(name: str, factor: Element) -> te.Tensor:
        def element(g: te.Value, b: te.Value) -> te.Value:
            first = g * (2 * half) + b
            return factor(x[0, first].astype(dtype), x[0, first + half].astype(dtype))

        return te.compute((groups, half), element, name=name)

    of_lower = row_factors("of_lower", lambda first, second: first - second * (1 / 16))
    of_byte = row_factors("of_byte", lambda _, second: second * (1 / 16))
    of_zero = row_factors("of_zero", lambda first, second: first + second)
    g, b = te.reduce_axis((0, groups), name="g"), te.reduce_axis((0, half), name="b")

    def element(_: te.Value, j: te.Value) -> te.Reduction:
        byte = weight[j, g, b].astype("int32")
        whole, lower = byte.astype(dtype), (byte & 15).astype(dtype)
        shifted = whole * of_byte[g, b] - zero(j, g) * of_zero[g, b]
        total = lower * of_lower[g, b] + shifted
        return te.sum(total * scale[j, g].astype(dtype), axis=[g, b])

    return te.compute((1, n), element, name="C")


def _int4_tiles(
    x: te.Tensor, weight: te.Tensor, scale: te.Tensor, zero: Element, dtype: DType
) -> te.Tensor:
    """Return the product with several rows, which share the unpacked weights."""
    n, groups, half = static_shape(weight.buffer)
    size = 2 * half

    def unpacked(j: te.Value, k: te.Value) -> te.Value:
        pair = weight[j, k // size, k % half].astype("int32")
        value = (pair >> (k % size // half * 4)) & 15
        return (value.astype(dtype) - zero(j, k // size)) * scale[j, k // size].astype(dtype)

    weights = te.compute((n, groups * size), unpacked, name="weights")
    return _product(x, n, lambda j, k: weights[j, k], dtype)


def _int4_groups(
    x: te.Tensor, weight: te.Tensor, scale: te.Tensor, zero: Element, dtype: DType
) -> te.Tensor:
    """Return the product with a few rows as scaled sums of groups.

    A scale is multiplied once by the sum of a group, not by each of its weights.

    The bits of `128 + weight` in bfloat16 are those of 128 with the weight as its last bits. So
    weights are unpacked exactly and without arithmetic, to numbers that CPUs multiply as bfloat16:

        sum of x * (weight - zero) = sum of x * (128 + weight) - (128 + zero) * sum of x

    Those of rows of float32 are converted, and nothing is added to them.
    """
    n, groups, half = static_shape(weight.buffer)
    m, size = static_shape(x.buffer)[0], 2 * half
    b, g = te.reduce_axis((0, size), name="b"), te.reduce_axis((0, groups), name="g")
    offset = 128 if x.dtype == "bfloat16" else 0

    def unpacked(j: te.Value, k: te.Value) -> te.Value:
        byte = weight[j, k // size, k % half].astype("uint16" if offset else "int32")
        number = te.if_then_else(k % size < half, byte & 15, byte >> 4)
        return reinterpret("bfloat16", number | _BITS_OF_128) if offset else number.astype(dtype)

    weights = te.compute((n, groups * size), unpacked, name="weights")

    def partial(g: te.Value, i: te.Value, j: te.Value) -> te.Reduction:
        step = g * size + b
        return te.sum(x[i, step].astype(dtype) * weights[j, step].astype(dtype), axis=b)

    partials = te.compute((groups, m, n), partial, name="partial")
    in_group = te.reduce_axis((0, size), name="b")
    rows = te.compute(
        (m, groups),
        lambda i, g: te.sum(x[i, g * size + in_group].astype(dtype), axis=in_group),
        name="row_sums",
    )

    def element(i: te.Value, j: te.Value) -> te.Reduction:
        excess = (zero(j, g) + offset) * rows[i, g]
        return te.sum((partials[g, i, j] - excess) * scale[j, g].astype(dtype), axis=g)

    return te.compute((m, n), element, name="C")


def _int8_row(x: te.Tensor, weight: te.Tensor, scale: te.Tensor, dtype: DType) -> te.Tensor:
    """Return the product with one row."""
    (n, groups), k = static_shape(scale.buffer), static_shape(weight.buffer)[1]
    size = k // groups
    g, b = te.reduce_axis((0, groups), name="g"), te.reduce_axis((0, size), name="b")

    def element(i: te.Value, j: te.Value) -> te.Reduction:
        index = g * size + b
        product = x[i, index].astype(dtype) * weight[j, index].astype(dtype)
        return te.sum(product * scale[j, g].astype(dtype), axis=[g, b])

    return te.compute((1, n), element, name="C")


def _int8_tiles(x: te.Tensor, weight: te.Tensor, scale: te.Tensor, dtype: DType) -> te.Tensor:
    """Return the product with several rows, which share the scaled weights."""
    (n, groups), k = static_shape(scale.buffer), static_shape(weight.buffer)[1]
    size = k // groups

    def scaled(j: te.Value, k: te.Value) -> te.Value:
        return weight[j, k].astype(dtype) * scale[j, k // size].astype(dtype)

    weights = te.compute((n, k), scaled, name="weights")
    return _product(x, n, lambda j, k: weights[j, k], dtype)


def _product(x: te.Tensor, n: int, weight: Element, dtype: DType) -> te.Tensor:
    """Return the product of `x[m, k]` and `n` rows of weights, the sums in `dtype`.

    Args:
        x: The left operand.
        n: The columns of the product.
        weight: Returns the weight of a column and an index along the sum.
        dtype: The type of the weights and of the sums.
    """
    m, k = static_shape(x.buffer)
    axis = te.reduce_axis((0, k), name="k")

    def element(i: te.Value, j: te.Value) -> te.Reduction:
        return te.sum(x[i, axis].astype(dtype) * weight(j, axis), axis=axis)

    return te.compute((m, n), element, name="C")
