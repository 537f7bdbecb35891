"""Operators that gather elements by indices, and cumulative sums.

Indices are clipped to the extent that they index: no index makes a kernel read out of bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler import te
from compiler.ir.core.dtypes import DType, sum_dtype
from compiler.ops.error import OperatorError, check_axis, check_choice, check_dtype, check_shape
from compiler.ops.tensors.cumulative import cumulated
from compiler.ops.tensors.epilogue import converted
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of


def take(x: te.Tensor, indices: te.Tensor, *, axis: int = 0) -> te.Tensor:
    """Return slices of `x` along an axis: `x[indices[i], ...]` for `axis=0`.

    Raises:
        OperatorError: If the axis or a type is out of range.
    """
    dims, which = _operands("take", x, indices)
    axis = check_axis("take", axis, len(dims))

    def element(*i: te.Value) -> te.Value:
        before, at, after = i[:axis], i[axis : axis + len(which)], i[axis + len(which) :]
        return x[(*before, _clipped(indices[at], dims[axis]), *after)]

    result = (*dims[:axis], *which, *dims[axis + 1 :])
    return te.compute(check_shape("take", result), element, name="T_take")


def gather(x: te.Tensor, indices: te.Tensor, *, axis: int = 0) -> te.Tensor:
    """Return elements of `x` along an axis: `x[indices[i, j], j]` for `axis=0`.

    Raises:
        OperatorError: If a shape, the axis or a type does not fit.
    """
    dims, which = _operands("gather", x, indices)
    axis = check_axis("gather", axis, len(dims))
    if len(which) != len(dims) or any(
        n > extent for d, (n, extent) in enumerate(zip(which, dims, strict=True)) if d != axis
    ):
        raise OperatorError(
            f"gather: indices of shape {which} do not fit a tensor of shape {dims}: expected "
            f"as many dimensions, and no more elements in any but {axis}"
        )
    return te.compute(
        which,
        lambda *i: x[(*i[:axis], _clipped(indices[i], dims[axis]), *i[axis + 1 :])],
        name="T_gather",
    )


def embedding(table: te.Tensor, indices: te.Tensor) -> te.Tensor:
    """Return rows of a table: `table[indices[i], :]`.

    Raises:
        OperatorError: If a shape or a type does not fit.
    """
    (rows, width), which = _operands("embedding", table, indices, 2)
    return te.compute(
        (*which, width), lambda *i: table[_clipped(indices[i[:-1]], rows), i[-1]], name="B"
    )


def embedding_bag(
    table: te.Tensor,
    indices: te.Tensor,
    weights: te.Tensor | None = None,
    offsets: te.Tensor | None = None,
    *,
    mode: str = "sum",
    length: int | None = None,
) -> te.Tensor:
    """Return the sum or the mean of rows of a table for each bag: of `table[indices[i, :], :]`.

    Args:
        table: `[rows, width]`.
        indices: `[bags, length]`; with offsets `[total]`.
        weights: The factors of the rows in a sum, in the shape of the indices.
        offsets: `[bags + 1]`: bag `i` has the indices from `offsets[i]` to `offsets[i + 1]`. An
            empty bag has sum and mean 0.
        mode: Either "sum" or "mean".
        length: The greatest number of indices in a bag: with offsets, those beyond it do not count.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "embedding_bag"
    (rows, width), which = _operands(operator, table, indices, 2)
    bags = _bags(operator, which, offsets, length)
    check_choice(operator, "mode", mode, ("sum", "mean"))
    check_dtype(operator, table.dtype, needs_float=mode == "mean" or weights is not None)
    if weights is not None:
        check_same_dtype(operator, table, weights)
        check_dims(operator, weights, which)
        if mode == "mean":
            raise OperatorError(
                f"{operator}: weights are given, and mode is 'mean': expected 'sum'"
            )
    total_dtype = sum_dtype(table.dtype)
    k = te.reduce_axis((0, bags.length), name="k")

    def element(i: te.Value, j: te.Value) -> te.Reduction:
        at = bags.position(i, k)
        row = table[_clipped(indices[at], rows), j].astype(total_dtype)
        if weights is not None:
            row = row * weights[at].astype(total_dtype)
        return te.sum(bags.counted(row, i, k), axis=k)

    total = te.compute((bags.number, width), element, name="total" if mode == "mean" else "B")
    if mode == "sum":
        return converted(total, table.dtype)
    return te.compute(
        (bags.number, width),
        lambda i, j: (total[i, j] / bags.size(i, total_dtype)).astype(table.dtype),
        name="B",
    )


@dataclass(frozen=True)
class _Bags:
    """Bags of indices.

    Attributes:
        number: The number of bags.
        length: The greatest number of indices in a bag.
        total: The number of indices in all bags.
        offsets: Where the bags begin in the indices, then their end; None if all have one length.
    """

    number: int
    length: int
    total: int
    offsets: te.Tensor | None

    def position(self, bag: te.Value, k: te.Value) -> tuple[te.Value, ...]:
        """Return where index `k` of a bag is, clipped to the indices."""
        if self.offsets is None:
            return bag, k
        return (_clipped(self.offsets[bag] + k, self.total),)

    def counted(self, value: te.Value, bag: te.Value, k: te.Value) -> te.Value:
        """Return a value, or 0 if a bag has no index `k`."""
        if self.offsets is None:
            return value
        is_in_bag = self.offsets[bag] + k < self.offsets[bag + 1]
        return te.if_then_else(is_in_bag, value, te.const(0, value.dtype))

    def size(self, bag: te.Value, dtype: DType) -> te.Value | int:
        """Return the divisor of a mean, at least 1."""
        if self.offsets is None:
            return self.length
        size = te.min(self.offsets[bag + 1] - self.offsets[bag], self.length)
        return te.max(size, 1).astype(dtype)


def _bags(
    operator: str, which: tuple[int, ...], offsets: te.Tensor | None, length: int | None
) -> _Bags:
    """Return the bags of indices of a shape, or refuse."""
    if offsets is None:
        if len(which) != 2 or length not in (None, which[1]):
            raise OperatorError(
                f"{operator}: indices have shape {which}: expected [bags, length], or offsets"
            )
        return _Bags(*which, which[0] * which[1], None)
    check_choice(operator, "index_dtype", offsets.dtype, ("int32", "int64"))
    (ends,) = dims_of(operator, offsets, 1)
    if len(which) != 1 or length is None or length < 1 or ends < 2:
        raise OperatorError(
            f"{operator}: indices have shape {which}, offsets ({ends},), and the length is "
            f"{length}: expected [total], [bags + 1], and a length of at least 1"
        )
    return _Bags(ends - 1, length, which[0], offsets)


def cumsum(x: te.Tensor, *, axis: int = -1) -> te.Tensor:
    """Return the cumulative sums along an axis.

    Raises:
        OperatorError: If the axis or the type is out of range.
    """
    check_dtype("cumsum", x.dtype)
    return cumulated(x, check_axis("cumsum", axis, len(dims_of("cumsum", x))), "cumsum")


def _operands(
    operator: str, x: te.Tensor, indices: te.Tensor, ndim: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of a tensor and of indices into it."""
    check_dtype(operator, x.dtype)
    check_choice(operator, "index_dtype", indices.dtype, ("int32", "int64"))
    return dims_of(operator, x, ndim), dims_of(operator, indices)


def _clipped(index: te.Value, extent: int) -> te.Value:
    return te.max(te.min(index, extent - 1), 0)
