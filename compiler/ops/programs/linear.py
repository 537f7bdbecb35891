"""Matrix products, alone and with the usual epilogues."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import bias_operand, build, operand
from compiler.ops.error import check_extents, check_shape
from compiler.ops.operator import operator
from compiler.ops.recognizers.linear import products
from compiler.ops.references import linear as references
from compiler.ops.tensors import linear as tensors


@operator(tensors.matmul, reference=references.matmul, recognize=products)
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
    """`C[m, n] = A[m, k] @ B[k, n]`, a product for each index of `batch`.

    Args:
        m: The rows of the result.
        n: The columns of the result.
        k: The length of the sums.
        dtype: The type of the operands.
        batch: Extents that come before the others in all of `A`, `B` and `C`.
        transpose_a: Whether `A` is stored as `[k, m]`.
        transpose_b: Whether `B` is stored as `[n, k]`, as frameworks store weights.
        bias: Whether `bias[n]` is added.
        activation: The function applied last: "relu", "gelu", "gelu_tanh", "silu", "sigmoid",
            "tanh" or "leaky_relu".
        out_dtype: The type of the result, such as "int32" for "int8".
        acc_dtype: The type of the sum, such as "float32" for "bfloat16".

    Raises:
        OperatorError: If an extent, a type or an option is out of range.
    """
    extents = check_shape("matmul", batch, "batch") if batch != () else ()
    inputs = [
        *_operands(
            "matmul", (*extents, m, n, k), dtype, transpose_a=transpose_a, transpose_b=transpose_b
        ),
        *bias_operand("matmul", n, dtype, bias=bias),
    ]
    output = tensors.matmul(
        *inputs,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        activation=activation,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build("matmul", inputs, output)


@operator(tensors.batch_matmul, reference=references.matmul, recognize=products)
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
    check_extents("batch_matmul", batch=batch)
    inputs = _operands(
        "batch_matmul", (batch, m, n, k), dtype, transpose_a=transpose_a, transpose_b=transpose_b
    )
    output = tensors.batch_matmul(
        *inputs,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build("batch_matmul", inputs, output)


@operator(tensors.dense, reference=references.dense, recognize=products)
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
    inputs = [
        *_operands("dense", (m, n, k), dtype, transpose_b=True, names=("A", "W")),
        *bias_operand("dense", n, dtype, bias=bias),
    ]
    output = tensors.dense(*inputs, activation=activation, out_dtype=out_dtype, acc_dtype=acc_dtype)
    return build("dense", inputs, output)


@operator(tensors.linear_relu, reference=references.linear_relu, recognize=products)
def linear_relu(m: int = 1, n: int = 200, k: int = 3072, dtype: DType = "float32") -> PrimFunc:
    """`out[m, n] = max(x[m, k] @ w[n, k].T, 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    inputs = _operands("linear_relu", (m, n, k), dtype, transpose_b=True, names=("x", "w"))
    return build("linear_relu", inputs, tensors.linear_relu(*inputs))


@operator(tensors.mm_relu, reference=references.mm_relu, recognize=products)
def mm_relu(m: int = 128, n: int = 128, k: int = 128, dtype: DType = "float32") -> PrimFunc:
    """`C[m, n] = max(A[m, k] @ B[k, n], 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    inputs = _operands("mm_relu", (m, n, k), dtype)
    return build("mm_relu", inputs, tensors.mm_relu(*inputs))


@operator(tensors.matmul_bias_relu, reference=references.matmul_bias_relu, recognize=products)
def matmul_bias_relu(m: int, n: int, k: int, dtype: DType = "float32") -> PrimFunc:
    """`D[m, n] = max(A[m, k] @ B[k, n] + bias[n], 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    a, b = _operands("matmul_bias_relu", (m, n, k), dtype)
    bias = operand((n,), dtype, "bias")
    output = tensors.matmul_bias_relu(a, b, bias)
    return build("matmul_bias_relu", [a, b, bias], output)


def _operands(
    name: str,
    extents: tuple[int, ...],
    dtype: DType,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    names: tuple[str, str] = ("A", "B"),
) -> list[te.Tensor]:
    """Return two operands; `extents` are the batch's, then m, n and k."""
    *batch, m, n, k = extents
    check_extents(name, m=m, n=n, k=k)
    shapes = ((k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n))
    return [
        operand((*batch, *shape), dtype, operand_name)
        for shape, operand_name in zip(shapes, names, strict=True)
    ]
