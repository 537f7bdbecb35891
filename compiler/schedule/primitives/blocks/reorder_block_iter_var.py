"""Reorder the iterators of a block: `reorder_block_iter_var`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.core.nodes import (
    BlockRealize,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.tree.tree import block_path, realize_at, replace_at


def reorder_block_iter_var(func: PrimFunc, block: str, new_order: Sequence[int]) -> PrimFunc:
    """Reorder the iterators of a block; its results do not change.

    Args:
        new_order: The old position of each iterator.

    Requires:
        The order contains each position once.

    Rewrites:
        vi, vj = T.axis.remap("SS", [i, j])   ->   vj, vi = T.axis.remap("SS", [j, i])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reorder_block_iter_var", func)
    path = block_path(func, block, refuse)
    realize = realize_at(path)
    count = len(realize.iter_values)
    if not count or sorted(new_order) != list(range(count)):
        reason = f"{list(new_order)} is not an order of the {count} iterators of block {block}"
        raise refuse(reason, realize, "invalid_argument")
    iter_vars = tuple(realize.block.iter_vars[position] for position in new_order)
    values = tuple(realize.iter_values[position] for position in new_order)
    new = BlockRealize(values, realize.predicate, replace(realize.block, iter_vars=iter_vars))
    return replace_at(func, path, new)
