"""What sort of computation a block is: which of its runs may change places or be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compiler.ir.affine import affine
from compiler.ir.nodes import BinOp, Block, IntImm, Load, Store
from compiler.schedule.access import Facts, facts_of
from compiler.schedule.digits import determined

BlockKind: TypeAlias = Literal["complete", "in_place", "reduction", "update"]
"""How a block computes an element of what it writes:

complete    at one point of its iterators, without reading what it writes; may be repeated
in_place    at one point, from its own old value
reduction   over the reduction iterators, from its init on; may be repeated as a whole
update      as a reduction, its init being in another block
"""

_COMMUTATIVE = frozenset({"+", "*", "min", "max"})


@dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why a block is of no kind."""

    reason: str


def kind_of(block: Block) -> BlockKind | Unknown:
    """Return the kind of a block, or why nothing is known about its runs."""
    facts = facts_of(block)
    reason = _form(block, facts) or _elements(block, facts)
    if reason is not None:
        return Unknown(f"block {block.name} {reason}")
    body_reads = facts.reads[len(facts.init_reads) :]
    reads_own = any(access.buffer in facts.written_buffers() for access in body_reads)
    if block.init is not None:
        return "reduction"
    if any(i.kind == "reduce" and i.extent != IntImm(1) for i in block.iter_vars):
        return "update"
    return "in_place" if reads_own else "complete"


def _form(block: Block, facts: Facts) -> str | None:
    if not facts.is_leaf:
        return "has loops, conditions or blocks of its own"
    if facts.outside:
        names = ", ".join(sorted(var.name for var in facts.outside))
        return f"names loops from outside: {names}"
    for iter_var in block.iter_vars:
        if iter_var.kind not in ("spatial", "reduce"):
            return f"has the {iter_var.kind} iterator {iter_var.var.name}"
        if not isinstance(iter_var.extent, IntImm):
            return f"has the iterator {iter_var.var.name} of symbolic extent"
    return None


def _elements(block: Block, facts: Facts) -> str | None:
    """Check that each spatial point has an element of its own, and touches no other."""
    target = facts.writes[0].indices
    written = facts.written_buffers()
    for access in (*facts.writes, *facts.reads):
        if access.buffer in written and access.indices != target:
            return f"touches {access.buffer.name} at more than one element in a run"
    if any(access.buffer in written for access in facts.init_reads):
        return "reads in its init what it initialises"
    extents = {i.var: i.extent.value for i in block.iter_vars if isinstance(i.extent, IntImm)}
    reduce_vars = {i.var for i in block.iter_vars if i.kind == "reduce"}
    found = determined((affine(index) for index in target), extents)
    for iter_var in block.iter_vars:
        if iter_var.kind == "spatial" and iter_var.var not in found:
            return f"does not write a different element for each {iter_var.var.name}"
        if iter_var.kind == "reduce" and extents[iter_var.var] > 1 and iter_var.var in found:
            return f"writes a different element for each {iter_var.var.name}, a reduction iterator"
    if block.init is None and any(extents[v] > 1 for v in reduce_vars):
        body = facts.reads
        if not any(access.buffer in written for access in body):
            return "has reduction iterators, but does not read what it writes"
    return None


def is_commutative(block: Block) -> bool:
    """Tell whether the points of a reduction may be taken in any order."""
    store = block.body
    if not isinstance(store, Store):
        return False
    value = store.value
    if not isinstance(value, BinOp) or value.op not in _COMMUTATIVE:
        return False
    own = Load(store.buffer, store.indices)
    rest = value.rhs if value.lhs == own else value.lhs if value.rhs == own else None
    facts = facts_of(block)
    num_own = sum(access.buffer == store.buffer for access in facts.reads)
    return rest is not None and num_own == 1
