"""Replace a product by a call of a library's: `call_library`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.executor.functions.registry import BUILT_IN, PACKED
from compiler.ir.core.library_calls import whole
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IntImm,
    Load,
    Store,
    StringImm,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.tree.tree import block_path, realize_at, replace_at

NUM_THREADS = "library_threads"
"""The annotation of a block with the most threads that the library should use."""
_TYPES = ("float32", "float64")


def call_library(func: PrimFunc, block: str, function: str) -> PrimFunc:
    """Replace a matrix product, with all its loops, by a call of a library's function.

    The function computes the same sums in an order of its own, so results differ by rounding, as
    they do between schedules. The kernel then requires the library where it is loaded.

    Args:
        block: The product.
        function: `blas.matmul` or `torch.matmul`.

    Requires:
        The block stands in the program's root below loops of its own, all serial and not divided.
        It sets each element of `C` to 0 and adds products: `C[..., i, j] += A[..., i, k] *
        B[..., k, j]`, where the last two dimensions of `A` and of `B` may be exchanged. The buffers
        have one type, float32 or float64, and are accessed whole.

    Rewrites:
        for i, j, k in ...:                     with block(C):
            with block(C):                          reads(A[0:m, 0:k], B[0:k, 0:n])
                with init(): C[i, j] = 0    ->      writes(C[0:m, 0:n])
                C[i, j] += A[i, k] * B[k, j]        call_packed("blas.matmul", A, B, C, 0, 0)

    Raises:
        ScheduleError: If a requirement does not hold, or there is no such function.
    """
    refuse = refusal("call_library", func)
    path = block_path(func, block, refuse)
    realize = realize_at(path)
    if function not in BUILT_IN:
        expected = " or ".join(f'"{name}"' for name in BUILT_IN)
        raise refuse(f'no library has "{function}": expected {expected}', realize, "not_found")
    depth = next((i for i, stmt in enumerate(path) if isinstance(stmt, For)), len(path) - 1)
    loops = [stmt for stmt in path[depth:-1] if isinstance(stmt, For)]
    is_in_root = not any(isinstance(stmt, BlockRealize) for stmt in path[1:-1])
    if not is_in_root or len(path) - 1 - depth != len(loops) or not loops:
        reason = f"block {block} must stand in the root, below loops of its own"
        raise refuse(reason, realize, "structure")
    if any(loop.kind != "serial" or loop.annotations for loop in loops):
        raise refuse(f"the loops of block {block} must be serial", loops[0], "loop_kind")
    values = {loop.var: loop.extent for loop in loops}
    extents = {i.var: i.extent for i in realize.block.iter_vars}
    bound = {v for v in realize.iter_values if isinstance(v, Var)}
    is_plain = realize.predicate == TRUE and len(bound) == len(loops) == len(extents)
    if not is_plain or any(
        not isinstance(value, Var) or values.get(value) != iterator.extent
        for iterator, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
    ):
        raise refuse(f"the loops of block {block} must not be divided", realize, "structure")
    product = _product_of(realize.block, refuse, realize)
    passed = (product.left, product.right, product.output)
    flags = (IntImm(int(product.is_left_transposed)), IntImm(int(product.is_right_transposed)))
    call = Call(PACKED, (StringImm(function), *(b.data for b in passed), *flags), "int32")
    new = Block(
        block,
        (),
        tuple(whole(buffer) for buffer in dict.fromkeys(passed[:2])),
        (whole(product.output),),
        Evaluate(call),
        annotations=realize.block.annotations,
    )
    return replace_at(func, path[: depth + 1], BlockRealize((), TRUE, new))


@dataclass(frozen=True)
class _MatchedProduct:
    left: Buffer
    right: Buffer
    output: Buffer
    is_left_transposed: bool
    is_right_transposed: bool


def _product_of(block: Block, refuse: Refuse, at: BlockRealize) -> _MatchedProduct:
    """Return the operands of a block that is a matrix product, or refuse."""
    product = None
    match block.body, block.init:
        case (
            Store(output, indices, BinOp("+", Load() as old, BinOp("*", Load() as a, Load() as b))),
            Store(first, zeroed, IntImm(0) | FloatImm(0.0)),
        ) if (old.buffer, old.indices) == (output, indices) == (first, zeroed):
            product = _matched(block, Load(output, indices), a, b)
            product = product or _matched(block, Load(output, indices), b, a)
        case _:
            pass
    has_more = block.alloc_buffers or block.match_buffers
    if product is None or has_more:
        reason = f"block {block.name} is not a product of two matrices, each accessed whole"
        raise refuse(f"{reason}, of float32 or float64", at, "block_kind")
    return product


def _matched(block: Block, output: Load, left: Load, right: Load) -> _MatchedProduct | None:
    """Return the product of two operands; None if they have other roles."""
    kinds = {iterator.var: iterator.kind for iterator in block.iter_vars}
    extents = {iterator.var: iterator.extent for iterator in block.iter_vars}
    steps = [var for var, kind in kinds.items() if kind == "reduce"]
    loads = (output, left, right)
    buffers = [load.buffer for load in loads]
    is_whole = all(
        isinstance(index, Var) and index in extents and _equal(extents[index], size)
        for load in loads
        for index, size in zip(load.indices, load.buffer.shape, strict=True)
    )
    has_types = buffers[0].dtype in _TYPES and len({buffer.dtype for buffer in buffers}) == 1
    has_scopes = all(buffer.scope == "global" and not buffer.strides for buffer in buffers)
    is_apart = buffers[0] not in buffers[1:]
    if not (is_whole and has_types and has_scopes and is_apart) or len(steps) != 1:
        return None
    if any(len(load.indices) < 2 for load in loads) or any(
        kind not in ("spatial", "reduce") for kind in kinds.values()
    ):
        return None
    *batch, row, column = output.indices
    if len({*batch, row, column}) != len(kinds) - 1 or steps[0] in output.indices:
        return None
    flags = [
        _is_transposed(load, batch, pair)
        for load, pair in ((left, (row, steps[0])), (right, (steps[0], column)))
    ]
    if flags[0] is None or flags[1] is None:
        return None
    return _MatchedProduct(buffers[1], buffers[2], buffers[0], flags[0], flags[1])


def _is_transposed(load: Load, batch: Sequence[Expr], pair: tuple[Expr, Expr]) -> bool | None:
    """Return whether the last two dimensions are exchanged; None if it is no such operand."""
    *outer, first, second = load.indices
    if list(outer) not in ([], list(batch)):
        return None
    if (first, second) == pair:
        return False
    return True if (second, first) == pair else None


def _equal(left: Expr, right: Expr) -> bool:
    both = isinstance(left, IntImm) and isinstance(right, IntImm)
    return both and left.value == right.value  # type: ignore[union-attr]
