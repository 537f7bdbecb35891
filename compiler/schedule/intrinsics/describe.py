"""Descriptions of tensor intrinsics from tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    Seq,
    Stmt,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.primitives.blocks.decompose_reduction import decompose_reduction
from compiler.schedule.tree.tree import child_blocks, loops_below


def describe(tensors: Sequence[te.Tensor]) -> dict[str, PrimFunc]:
    """Return the descriptions of a tensor expression: `compute`, and of a reduction its parts."""
    whole = te.create_prim_func(tensors, "compute")
    found = {"compute": whole}
    (realize,) = child_blocks(whole.body)
    if realize.block.init is None:
        return found
    outermost = next(loops_below(whole.body))
    halves, _, _ = decompose_reduction(whole, realize.block.name, outermost.var)
    init, update = halves.root.body.stmts if isinstance(halves.root.body, Seq) else ()
    found["reset"] = _with_body("reset", halves.buffers[-1:], init)
    found["update"] = _with_body("update", halves.buffers, update)
    return found


def _with_body(name: str, params: tuple[Buffer, ...], body: Stmt) -> PrimFunc:
    return PrimFunc(name, params, BlockRealize((), TRUE, Block("root", (), (), (), body)))
