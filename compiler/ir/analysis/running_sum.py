"""Recognize running sums: each element is an earlier one of the same buffer plus a term."""

from __future__ import annotations

from compiler.ir.core.nodes import BinOp, Block, Conditional, Load, Store


def running_sum(block: Block) -> Store | None:
    """Return the store of a block that computes a running sum along its scanned axes, if it does.

    The earlier element may be conditional, since the first element has none.
    """
    store = block.body
    kinds = {iterator.kind for iterator in block.iter_vars}
    if "scan" not in kinds or "reduce" in kinds or not isinstance(store, Store):
        return None
    if not isinstance(store.value, BinOp) or store.value.op != "+":
        return None
    sides = (store.value.lhs, store.value.rhs)
    terms = [side.then if isinstance(side, Conditional) else side for side in sides]
    is_sum = any(isinstance(term, Load) and term.buffer == store.buffer for term in terms)
    return store if is_sum else None
