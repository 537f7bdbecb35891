"""Weights that a block unpacks from fewer bytes, such as two weights of 4 bits in a byte.

A packed product computes them in its panels, where they stay in the caches: they would be many
times larger in memory.
"""

from __future__ import annotations

from compiler.ir.core.nodes import BinOp, IntImm, Store, Var
from compiler.ir.core.visit import walk
from tuner.space.analysis.block_facts import BlockPosition, block_facts, sites
from tuner.space.analysis.product_roles import Operand
from tuner.space.rules.sketch_builder import SketchBuilder


def unpacked_periods(draft: SketchBuilder, operand: Operand) -> tuple[int, ...]:
    """Return the numbers by which the unpacking of an operand divides its index along the sum.

    For groups of 128, whose bytes have weights half a group apart, they are 128 and 64. Between
    multiples of the last one, the packed bytes are contiguous. Each divides the one before. Empty
    if no block unpacks the operand, or another one reads it, too.
    """
    for site in sites(draft.schedule.func):
        facts = block_facts(site)
        if facts is None or facts.write.buffer != operand.read.buffer or facts.is_reduction:
            continue
        is_smaller = sum(read.size_bytes for read in facts.reads) < facts.write.size_bytes
        if is_smaller and len(draft.consumers(facts.name)) == 1:
            return _periods(site, operand.along, facts.axes[operand.along].extent)
    return ()


def _periods(site: BlockPosition, dim: int, extent: int) -> tuple[int, ...]:
    store = site.block.body
    index = store.indices[dim] if isinstance(store, Store) else None
    divisors = {
        node.rhs.value
        for node in walk(store)
        if isinstance(node, BinOp) and node.op in ("//", "%") and isinstance(node.rhs, IntImm)
        if index in [n for n in walk(node.lhs) if isinstance(n, Var)]
    }
    periods = sorted(divisors, reverse=True)
    is_nested = all(a % b == 0 for a, b in zip([extent, *periods], periods, strict=False))
    return tuple(periods) if is_nested else ()
