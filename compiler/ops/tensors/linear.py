"""Matrix products, alone and with the usual epilogues."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ops.error import OperatorError, check_flags
from compiler.ops.tensors.epilogue import Types, add_bias, apply_epilogue, check_types, converted
from compiler.ops.tensors.operands import check_factors, dims_of


def matmul(
    a: te.Tensor,
    b: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Return `a[..., m, k] @ b[..., k, n]`, a product for each index of the first dimensions.

    Args:
        a: The left operand.
        b: The right operand, with the same first dimensions.
        bias: `[n]`, added to each row.
        transpose_a: Whether `a` is stored as `[..., k, m]`.
        transpose_b: Whether `b` is stored as `[..., n, k]`.
        activation: The function applied last; see `ops.matmul`.
        out_dtype: The type of the result.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    types = check_types("matmul", a.dtype, out_dtype, acc_dtype)
    product = _product("matmul", a, b, types, transpose_a=transpose_a, transpose_b=transpose_b)
    return apply_epilogue("matmul", product, product.ndim - 1, types, bias, activation)


def batch_matmul(
    a: te.Tensor,
    b: te.Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Return `a[batch, m, k] @ b[batch, k, n]`; options as `matmul` has them.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    operator = "batch_matmul"
    dims_of(operator, a, 3)
    types = check_types(operator, a.dtype, out_dtype, acc_dtype)
    product = _product(operator, a, b, types, transpose_a=transpose_a, transpose_b=transpose_b)
    return apply_epilogue(operator, product, 2, types)


def dense(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Return `x[m, k] @ weight[n, k].T`: weights as frameworks store them.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    dims_of("dense", x, 2)
    types = check_types("dense", x.dtype, out_dtype, acc_dtype)
    product = _product("dense", x, weight, types, transpose_b=True)
    return apply_epilogue("dense", product, 1, types, bias, activation)


def linear_relu(x: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """Return `max(x[m, k] @ weight[n, k].T, 0)`.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    types = check_types("linear_relu", x.dtype, None, None)
    dims_of("linear_relu", x, 2)
    product = _product("linear_relu", x, weight, types, transpose_b=True, name="linear")
    return _relu(product, types, "out")


def mm_relu(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    """Return `max(a[m, k] @ b[k, n], 0)`.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    types = check_types("mm_relu", a.dtype, None, None)
    dims_of("mm_relu", a, 2)
    return _relu(_product("mm_relu", a, b, types, name="Y"), types, "C")


def matmul_bias_relu(a: te.Tensor, b: te.Tensor, bias: te.Tensor) -> te.Tensor:
    """Return `max(a[m, k] @ b[k, n] + bias[n], 0)`.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    operator = "matmul_bias_relu"
    types = check_types(operator, a.dtype, None, None)
    dims_of(operator, a, 2)
    product = _product(operator, a, b, types)
    return _relu(add_bias(operator, product, 1, bias), types, "D")


def _relu(x: te.Tensor, types: Types, name: str) -> te.Tensor:
    positive = te.compute(x.shape, lambda i, j: te.max(x[i, j], 0), name=name)
    return converted(positive, types.result)


def _product(
    operator: str,
    a: te.Tensor,
    b: te.Tensor,
    types: Types,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str = "C",
) -> te.Tensor:
    """Return the product of two operands in the type of the sum."""
    check_flags(operator, transpose_a=transpose_a, transpose_b=transpose_b)
    check_factors(operator, a, b)
    a_dims, b_dims = dims_of(operator, a), dims_of(operator, b)
    if len(a_dims) < 2 or len(b_dims) != len(a_dims):
        raise OperatorError(f"{operator}: shapes {a_dims} and {b_dims} have no product")
    *batch, m, k = (*a_dims[:-2], *(a_dims[:-3:-1] if transpose_a else a_dims[-2:]))
    *b_batch, b_k, n = (*b_dims[:-2], *(b_dims[:-3:-1] if transpose_b else b_dims[-2:]))
    if (batch, k) != (b_batch, b_k):
        raise OperatorError(f"{operator}: shapes {a_dims} and {b_dims} have no product")
    axis = te.reduce_axis((0, k), name="k")

    def element(*index: te.Value) -> te.Reduction:
        *s, i, j = index
        left = a[(*s, axis, i)] if transpose_a else a[(*s, i, axis)]
        right = b[(*s, j, axis)] if transpose_b else b[(*s, axis, j)]
        return te.sum(types.product(left, right), axis=axis)

    letters = ["s"] if len(batch) == 1 else [f"s{number}" for number in range(len(batch))]
    return te.compute((*batch, m, n), element, name=name, varargs_names=[*letters, "i", "j"])
