"""Operators that find elements by indices, or add them up along the way.

Indices are clipped to what there is: no index makes a kernel read beside its input.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Compare,
    Conditional,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError, verify
from compiler.ops.build import build
from compiler.ops.error import (
    OperatorError,
    check_axis,
    check_dtype,
    check_extents,
    check_shape,
)


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
    dims = check_shape("take", shape)
    which = check_shape("take", indices, "indices")
    check_dtype("take", dtype)
    axis = check_axis("take", axis, len(dims))
    a, numbers = _operands("take", dims, which, dtype, index_dtype)

    def element(*i: te.Value) -> te.Value:
        before, at, after = i[:axis], i[axis : axis + len(which)], i[axis + len(which) :]
        return a[(*before, _clipped(numbers[at], dims[axis]), *after)]

    result = (*dims[:axis], *which, *dims[axis + 1 :])
    check_shape("take", result)
    return build("take", [a, numbers, te.compute(result, element, name="T_take")])


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
        indices: The shape of the indices, which is that of `B`; that of `A` unless it is given.
        axis: The axis that they index.
        dtype: The type of `A`.
        index_dtype: The type of the indices.

    Raises:
        OperatorError: If an extent, the axis or a type is out of range.
    """
    dims = check_shape("gather", shape)
    which = dims if indices is None else check_shape("gather", indices, "indices")
    check_dtype("gather", dtype)
    axis = check_axis("gather", axis, len(dims))
    if len(which) != len(dims) or any(
        n > whole for d, (n, whole) in enumerate(zip(which, dims, strict=True)) if d != axis
    ):
        raise OperatorError(
            f"gather: indices of shape {which} do not fit a tensor of shape {dims}: expected "
            f"as many dimensions, and no more elements in any but {axis}"
        )
    a, numbers = _operands("gather", dims, which, dtype, index_dtype)
    output = te.compute(
        which,
        lambda *i: a[(*i[:axis], _clipped(numbers[i], dims[axis]), *i[axis + 1 :])],
        name="T_gather",
    )
    return build("gather", [a, numbers, output])


def embedding(
    num_embeddings: int,
    embedding_dim: int,
    *indices: int,
    dtype: DType = "float32",
    index_dtype: DType = "int32",
) -> PrimFunc:
    """Look rows of a table up: `B[i, :] = W[indices[i], :]`.

    Raises:
        OperatorError: If an extent or a type is out of range.
    """
    check_extents("embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
    which = check_shape("embedding", indices, "indices")
    check_dtype("embedding", dtype)
    dims = (num_embeddings, embedding_dim)
    table, numbers = _operands("embedding", dims, which, dtype, index_dtype, name="W")
    output = te.compute(
        (*which, embedding_dim),
        lambda *i: table[_clipped(numbers[i[:-1]], num_embeddings), i[-1]],
        name="B",
    )
    return build("embedding", [table, numbers, output])


def cumsum(*shape: int, axis: int = -1, dtype: DType = "float32") -> PrimFunc:
    """Add a tensor up along an axis, keeping each sum on the way.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims = check_shape("cumsum", shape)
    check_dtype("cumsum", dtype)
    axis = check_axis("cumsum", axis, len(dims))
    a, b = make_buffer("A", dims, dtype), make_buffer("B", dims, dtype)
    root = Block("root", (), (), (), _running_sum(a, b, dims, axis))
    func = PrimFunc("cumsum", (a, b), BlockRealize((), TRUE, root), (("tir.noalias", True),))
    try:
        verify(func)
    except VerifyError as error:
        raise OperatorError(f"cumsum: {error.message}") from None
    return func


def _running_sum(a: Buffer, b: Buffer, dims: tuple[int, ...], axis: int) -> Stmt:
    """Return the loops of a scan along one axis; a step adds to the one before it."""
    iters = tuple(
        IterVar(Var(f"v_i{n}"), IntImm(extent), "scan" if n == axis else "spatial")
        for n, extent in enumerate(dims)
    )
    place: tuple[Expr, ...] = tuple(it.var for it in iters)
    step = iters[axis].var
    before = Load(b, (*place[:axis], BinOp("-", step, IntImm(1)), *place[axis + 1 :]))
    start = te.const(0, a.dtype).expr
    so_far = Conditional(Compare("<", IntImm(0), step), before, start)
    store = Store(b, place, BinOp("+", so_far, Load(a, place)))
    block = with_regions(Block("cumsum", iters, (), (), store))
    loops = [Var(f"i{n}") for n in range(len(dims))]
    nest: Stmt = BlockRealize(tuple(loops), TRUE, block)
    for loop, extent in reversed(list(zip(loops, dims, strict=True))):
        nest = For(loop, IntImm(extent), nest)
    return nest


def _operands(  # noqa: PLR0917
    operator: str,
    dims: tuple[int, ...],
    which: tuple[int, ...],
    dtype: DType,
    index_dtype: DType,
    name: str = "A",
) -> tuple[te.Tensor, te.Tensor]:
    if index_dtype not in ("int32", "int64"):
        raise OperatorError(
            f"{operator}: index_dtype is {index_dtype!r}: expected one of int32, int64"
        )
    a = te.placeholder(dims, dtype, name=name)
    return a, te.placeholder(which, index_dtype, name="indices")


def _clipped(index: te.Value, extent: int) -> te.Value:
    return te.max(te.min(index, extent - 1), 0)
