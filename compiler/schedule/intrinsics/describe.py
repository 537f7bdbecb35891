"""Descriptions of tensor intrinsics from tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler import te
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    Stmt,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.init_nest import init_nest, reads_without_init
from compiler.schedule.tree.tree import (
    block_path,
    child_blocks,
    loops_below,
    replace_at,
    with_block,
)


def describe(tensors: Sequence[te.Tensor]) -> dict[str, PrimFunc]:
    """Return the descriptions of a tensor expression: `compute`, and the parts of a reduction."""
    compute = te.create_prim_func(tensors, "compute")
    descriptions = {"compute": compute}
    (realize,) = child_blocks(compute.body)
    if realize.block.init is None:
        return descriptions
    name, loops = realize.block.name, tuple(loops_below(compute.body))
    extents = {loop.var: extent_or_unknown(loop.extent) for loop in loops}
    refuse = refusal("describe", compute)
    init = init_nest(realize, loops, f"{name}_init", extents, refuse, loop_suffix="_init")
    update = replace(
        realize.block, name=f"{name}_update", init=None, reads=reads_without_init(realize.block)
    )
    descriptions["reset"] = _with_body("reset", compute.buffers[-1:], init)
    path = block_path(compute, name, refuse)
    updated = replace_at(compute, path, with_block(realize, update))
    descriptions["update"] = _with_body("update", compute.buffers, updated.root.body)
    return descriptions


def _with_body(name: str, params: tuple[Buffer, ...], body: Stmt) -> PrimFunc:
    return PrimFunc(name, params, BlockRealize((), TRUE, Block("root", (), (), (), body)))
