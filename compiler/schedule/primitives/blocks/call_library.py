"""Replace a product or a convolution by a call of a library: `call_library`."""

from __future__ import annotations

from compiler.executor.functions.registry import BUILT_IN, PACKED
from compiler.ir.core.library_calls import whole
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Call,
    Evaluate,
    For,
    IntImm,
    StringImm,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.legality.library_operators import OPERATORS
from compiler.schedule.tree.tree import block_path, realize_at, replace_at

NUM_THREADS = "library_threads"
"""The annotation of a block with the most threads that the library should use."""


def call_library(func: PrimFunc, block: str, function: str) -> PrimFunc:
    """Replace a matrix product or a convolution, with all its loops, by a call of a library.

    The function computes the same sums in an order of its own, so results differ by rounding, as
    they do between schedules. The kernel then requires the library where it is loaded.

    Args:
        block: The product or the convolution.
        function: `blas.matmul`, `torch.matmul` or `torch.conv2d`.

    Requires:
        The block stands in the program's root below loops of its own, all serial and not divided.
        It sets each element of its output to 0 and adds products, as
        `compiler.schedule.legality.library_operators` says. The buffers have one type, float32 or
        float64, and are accessed whole.

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
    recognised, words = OPERATORS[function.partition(".")[2]]
    operator = recognised(realize.block)
    if operator is None:
        reason = f"block {block} is not {words}, of float32 or float64"
        raise refuse(reason, realize, "block_kind")
    passed = (operator.left, operator.right, operator.output)
    options = map(IntImm, operator.options)
    call = Call(PACKED, (StringImm(function), *(b.data for b in passed), *options), "int32")
    new = Block(
        block,
        (),
        tuple(whole(buffer) for buffer in dict.fromkeys(passed[:2])),
        (whole(operator.output),),
        Evaluate(call),
        annotations=realize.block.annotations,
    )
    return replace_at(func, path[: depth + 1], BlockRealize((), TRUE, new))
