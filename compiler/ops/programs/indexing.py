"""Operators that gather elements by indices, and cumulative sums.

Indices are clipped to the extent that they index: no index makes a kernel read out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import check_choice, check_extents, check_flags, check_shape
from compiler.ops.operator import operator
from compiler.ops.references import indexing as references
from compiler.ops.tensors import indexing as tensors


@operator(tensors.take, reference=references.take)
def take(
    *shape: int,
    indices: Sequence[int] | int = 1,
    axis: int = 0,
    dtype: DType = "float32",
    index_dtype: DType = "int32",
) -> PrimFunc:
    """Take slices of `A` along an axis, by `indices`: `B[i, ...] = A[indices[i], ...]`.

    Args:
        shape: The shape of `A`.
        indices: The shape of the indices.
        axis: The axis that they index.
        dtype: The type of `A`.
        index_dtype: The type of the indices.

    Raises:
        OperatorError: If an extent, the axis or a type is out of range.
    """
    which = check_shape("take", indices, "indices")
    inputs = _inputs("take", check_shape("take", shape), dtype, which, index_dtype)
    return build("take", inputs, tensors.take(*inputs, axis=axis))


@operator(tensors.gather, reference=references.gather)
def gather(
    *shape: int,
    indices: Sequence[int] | int | None = None,
    axis: int = 0,
    dtype: DType = "float32",
    index_dtype: DType = "int32",
) -> PrimFunc:
    """Take elements of `A` along an axis: `B[i, j] = A[indices[i, j], j]` for `axis=0`.

    Args:
        shape: The shape of `A`.
        indices: The shape of the indices, which is that of `B`; by default that of `A`.
        axis: The axis that they index.
        dtype: The type of `A`.
        index_dtype: The type of the indices.

    Raises:
        OperatorError: If an extent, the axis or a type is out of range.
    """
    dims = check_shape("gather", shape)
    which = dims if indices is None else check_shape("gather", indices, "indices")
    inputs = _inputs("gather", dims, dtype, which, index_dtype)
    return build("gather", inputs, tensors.gather(*inputs, axis=axis))


@operator(tensors.embedding, reference=references.embedding)
def embedding(
    num_embeddings: int,
    embedding_dim: int,
    *indices: int,
    dtype: DType = "float32",
    index_dtype: DType = "int32",
) -> PrimFunc:
    """Look up rows of a table: `B[i, :] = W[indices[i], :]`.

    Raises:
        OperatorError: If an extent or a type is out of range.
    """
    check_extents("embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
    which = check_shape("embedding", indices, "indices")
    table = (num_embeddings, embedding_dim)
    inputs = _inputs("embedding", table, dtype, which, index_dtype, name="W")
    return build("embedding", inputs, tensors.embedding(*inputs))


@operator(tensors.embedding_bag, reference=references.embedding_bag)
def embedding_bag(  # noqa: PLR0917
    num_embeddings: int,
    embedding_dim: int,
    bags: int,
    length: int,
    dtype: DType = "float32",
    index_dtype: DType = "int32",
    *,
    mode: str = "sum",
    weights: bool = False,
    total: int | None = None,
) -> PrimFunc:
    """Sum rows of a table for each bag of indices: `B[i, :] = sum of W[indices[i, k], :]`.

    Args:
        num_embeddings: The rows of the table.
        embedding_dim: The width of a row.
        bags: The number of bags.
        length: The number of indices in each; with `total`, the greatest one.
        dtype: The type of the table.
        index_dtype: The type of the indices.
        mode: "sum", or "mean" for the mean of the rows.
        weights: Whether each row is multiplied by `weights[i, k]`; for sums.
        total: The number of indices in all bags, if bags have different numbers. Bag `i` then has
            the indices from `offsets[i]` to `offsets[i + 1]`, and its sum and mean are 0 if it is
            empty. Indices of a bag beyond `length` do not count.

    Raises:
        OperatorError: If an extent, an option or a type is out of range.
    """
    name = "embedding_bag"
    check_extents(name, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
    check_extents(name, bags=bags, length=length)
    check_flags(name, weights=weights)
    which: tuple[int, ...] = (bags, length)
    if total is not None:
        check_extents(name, total=total)
        which = (total,)
    table = (num_embeddings, embedding_dim)
    rows, indices = _inputs(name, table, dtype, which, index_dtype, name="W")
    factors = operand(which, dtype, "weights") if weights else None
    offsets = None if total is None else operand((bags + 1,), index_dtype, "offsets")
    out = tensors.embedding_bag(rows, indices, factors, offsets, mode=mode, length=length)
    return build(name, [rows, indices, *(x for x in (factors, offsets) if x is not None)], out)


@operator(tensors.cumsum, reference=references.cumsum)
def cumsum(*shape: int, axis: int = -1, dtype: DType = "float32") -> PrimFunc:
    """Return the cumulative sums of a tensor along an axis.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    x = operand(check_shape("cumsum", shape), dtype, "A")
    return build("cumsum", [x], tensors.cumsum(x, axis=axis))


def _inputs(  # noqa: PLR0917
    operator_name: str,
    dims: tuple[int, ...],
    dtype: DType,
    which: tuple[int, ...],
    index_dtype: DType,
    name: str = "A",
) -> list[te.Tensor]:
    """Return a tensor, and indices of the shape `which` into it."""
    check_choice(operator_name, "index_dtype", index_dtype, ("int32", "int64"))
    return [operand(dims, dtype, name), operand(which, index_dtype, "indices")]
