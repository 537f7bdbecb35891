"""Matrix products, alone and with what often follows them."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import check_extents, check_flags, check_shape
from compiler.ops.tensors.epilogue import Epilogue, Types, check_types


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: DType = "float32",
    *,
    batch: Sequence[int] | int = (),
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """`C[m, n] = A[m, k] @ B[k, n]`, a product for each place of `batch`.

    Args:
        m: The rows of the result.
        n: The columns of the result.
        k: The length of the sums.
        dtype: The type of the operands.
        batch: Extents that come before the others in all of `A`, `B` and `C`.
        transpose_a: Whether `A` is stored as `[k, m]`.
        transpose_b: Whether `B` is stored as `[n, k]`, as frameworks store weights.
        bias: Whether `bias[n]` is added.
        activation: What follows: "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh" or
            "leaky_relu".
        out_dtype: The type of the result, such as "int32" for "int8".
        acc_dtype: The type that is added up in, such as "float32" for "bfloat16".

    Raises:
        OperatorError: If an extent, a type or an option is out of range.
    """
    epilogue = Epilogue("matmul", bias, activation)
    types = check_types("matmul", dtype, out_dtype, acc_dtype)
    epilogue.check(types.sum)
    extents = _batch("matmul", batch)
    a, b, c = _product(
        "matmul", (*extents, m, n, k), types, transpose_a=transpose_a, transpose_b=transpose_b
    )
    shape = (*extents, m, n)
    return build("matmul", [a, b, *epilogue.apply(c, shape, len(shape) - 1, types)])


def batch_matmul(
    batch: int,
    m: int,
    n: int,
    k: int,
    dtype: DType = "float32",
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """`C[batch, m, n] = A[batch, m, k] @ B[batch, k, n]`; options as `matmul` has them.

    Raises:
        OperatorError: If an extent or a type is out of range.
    """
    types = check_types("batch_matmul", dtype, out_dtype, acc_dtype)
    check_extents("batch_matmul", batch=batch)
    a, b, c = _product(
        "batch_matmul", (batch, m, n, k), types, transpose_a=transpose_a, transpose_b=transpose_b
    )
    result = Epilogue("batch_matmul").apply(c, (batch, m, n), 2, types)
    return build("batch_matmul", [a, b, *result])


def dense(
    m: int,
    n: int,
    k: int,
    dtype: DType = "float32",
    *,
    bias: bool = False,
    activation: str | None = None,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """`C[m, n] = A[m, k] @ W[n, k].T`: weights as frameworks store them; options as `matmul`'s.

    Raises:
        OperatorError: If an extent, a type or an option is out of range.
    """
    epilogue = Epilogue("dense", bias, activation)
    types = check_types("dense", dtype, out_dtype, acc_dtype)
    epilogue.check(types.sum)
    a, weights, c = _product("dense", (m, n, k), types, transpose_b=True, names=("A", "W", "C"))
    return build("dense", [a, weights, *epilogue.apply(c, (m, n), 1, types)])


def linear_relu(m: int = 1, n: int = 200, k: int = 3072, dtype: DType = "float32") -> PrimFunc:
    """`out[m, n] = max(x[m, k] @ w[n, k].T, 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    types = check_types("linear_relu", dtype, None, None)
    names = ("x", "w", "linear")
    x, w, linear = _product("linear_relu", (m, n, k), types, transpose_b=True, names=names)
    out = te.compute((m, n), lambda i, j: te.max(linear[i, j], 0), name="out")
    return build("linear_relu", [x, w, out])


def mm_relu(m: int = 128, n: int = 128, k: int = 128, dtype: DType = "float32") -> PrimFunc:
    """`C[m, n] = max(A[m, k] @ B[k, n], 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    types = check_types("mm_relu", dtype, None, None)
    a, b, product = _product("mm_relu", (m, n, k), types, names=("A", "B", "Y"))
    c = te.compute((m, n), lambda i, j: te.max(product[i, j], 0), name="C")
    return build("mm_relu", [a, b, c])


def matmul_bias_relu(m: int, n: int, k: int, dtype: DType = "float32") -> PrimFunc:
    """`D[m, n] = max(A[m, k] @ B[k, n] + bias[n], 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    types = check_types("matmul_bias_relu", dtype, None, None)
    a, b, c = _product("matmul_bias_relu", (m, n, k), types)
    bias, biased = Epilogue("matmul_bias_relu", bias=True).apply(c, (m, n), 1, types)
    d = te.compute((m, n), lambda i, j: te.max(biased[i, j], 0), name="D")
    return build("matmul_bias_relu", [a, b, bias, d])


def _batch(operator: str, batch: Sequence[int] | int) -> tuple[int, ...]:
    return check_shape(operator, batch, "batch") if batch != () else ()


def _product(
    operator: str,
    extents: tuple[int, ...],
    types: Types,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    names: tuple[str, str, str] = ("A", "B", "C"),
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return two operands and their product; `extents` are the batch's, then m, n and k."""
    *batch, m, n, k = extents
    check_extents(operator, m=m, n=n, k=k)
    check_flags(operator, transpose_a=transpose_a, transpose_b=transpose_b)
    a_shape = (*batch, k, m) if transpose_a else (*batch, m, k)
    b_shape = (*batch, n, k) if transpose_b else (*batch, k, n)
    a = te.placeholder(a_shape, types.given, name=names[0])
    b = te.placeholder(b_shape, types.given, name=names[1])
    axis = te.reduce_axis((0, k), name="k")

    def element(*place: te.Value) -> te.Reduction:
        *s, i, j = place
        left = a[(*s, axis, i)] if transpose_a else a[(*s, i, axis)]
        right = b[(*s, j, axis)] if transpose_b else b[(*s, axis, j)]
        return te.sum(types.product(left, right), axis=axis)

    letters = ["s"] if len(batch) == 1 else [f"s{number}" for number in range(len(batch))]
    c = te.compute((*batch, m, n), element, name=names[2], varargs_names=[*letters, "i", "j"])
    return a, b, c
