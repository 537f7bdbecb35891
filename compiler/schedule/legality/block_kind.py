"""Classify blocks by the runs that may be reordered or repeated.

Only accesses that matter outside the block count, whatever loops and blocks it contains. Elements
that it writes and then reads within one run do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import covering_sources, determined
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents, variables, variables_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import BinOp, Block, Expr, IterKind, Load, Store, Var
from compiler.schedule.index.access import BlockAccess, BlockAccesses, facts_of
from compiler.schedule.index.region import contains, span_of
from compiler.schedule.index.row_major import numbered
from compiler.schedule.legality.disjoint_accesses import common_parts
from compiler.schedule.tree.block_cache import by_identity

BlockKind: TypeAlias = Literal["complete", "in_place", "reduction", "update"]
"""The way in which a block computes an element of its output:

complete    at one point of its iterators, without reading its output; may be repeated
in_place    at one point, from the element's old value
reduction   over the reduction iterators, starting with its init; may be repeated as a whole
update      as a reduction whose init is in another block
"""

_COMMUTATIVE = frozenset({"+", "*", "min", "max"})


@dataclass(frozen=True, slots=True)
class Unclassified:
    """The reason why a block has no kind."""

    reason: str


@by_identity
def classify_block(block: Block) -> BlockKind | Unclassified:
    """Return the kind of a block, or the reason why it has none.

    The kind is meaningless for a block that uses outer loop variables: see `PlacedBlock.kind`.
    """
    return _classified(block, frozenset())


@by_identity
def classify_in_scope(block: Block) -> BlockKind | Unclassified:
    """Return the kind of a block within one run of its scope.

    All variables that it takes from outside have one value there.
    """
    return _classified(block, facts_of(block).outside)


def _classified(block: Block, standing: frozenset[Var]) -> BlockKind | Unclassified:
    facts = facts_of(block)
    reason = _form(block, facts) or _elements(block, facts, standing)
    if reason is not None:
        return Unclassified(f"block {block.name} {reason}")
    old = [read for read in facts.reads if _reads_old(block, facts, read, standing)]
    if block.init is not None:
        if old:
            reason = f"reads elements of {old[0].buffer.name} that its init does not write"
            return Unclassified(f"block {block.name} {reason}")
        return "reduction"
    if not _moving(block, "reduce"):
        return "in_place" if old else "complete"
    if not old:
        reason = "has reduction iterators, but does not read what it writes"
        return Unclassified(f"block {block.name} {reason}")
    return "update"


def _form(block: Block, facts: BlockAccesses) -> str | None:
    if facts.hidden:
        names = ", ".join(facts.hidden)
        return f"passes on the storage of {names}, which its T.reads and T.writes do not declare"
    for iter_var in block.iter_vars:
        if iter_var.kind not in ("spatial", "reduce"):
            return f"has the {iter_var.kind} iterator {iter_var.var.name}"
    return None


def extents_of_iterators(block: Block) -> Extents:
    """Return the extents of a block's iterators."""
    return {i.var: extent_or_unknown(i.extent) for i in block.iter_vars}


def _moving(block: Block, kind: IterKind) -> set[Var]:
    """Return the iterators of one kind that take more than one value."""
    return {i.var for i in block.iter_vars if i.kind == kind and extent_or_unknown(i.extent) > 1}


def _elements(block: Block, facts: BlockAccesses, standing: frozenset[Var]) -> str | None:
    """Return why two spatial points may touch the same element, or None if they can't."""
    written = facts.written_buffers()
    for read in facts.init_reads:
        if read.buffer in written:
            return "reads in its init what it initialises"
    extents = extents_of_iterators(block)
    for buffer in dict.fromkeys(write.buffer for write in facts.writes):
        problem = _elements_of(block, facts.accesses(buffer), extents, standing)
        if problem is not None:
            return problem
    return None


def _elements_of(
    block: Block,
    accesses: tuple[BlockAccess, ...],
    extents: Extents,
    standing: frozenset[Var],
) -> str | None:
    """Return why two spatial points may touch the same element of a buffer, or None."""
    if _is_plain(block, accesses):
        return None
    all_extents = dict(extents)
    for access in accesses:
        all_extents.update(access.inner)
    forms = [
        tuple(normal(index, all_extents) for index in indices)
        for indices in _separate_indices(block, accesses)
    ]
    reduce = _moving(block, "reduce")
    used = {var for access in forms for index in access for var in variables_of(index)}
    for iter_var in block.iter_vars:
        if iter_var.var in reduce & used:
            return f"writes a different element for each {iter_var.var.name}, a reduction iterator"
    spatial = _moving(block, "spatial")
    parts = common_parts(forms, spatial, standing, all_extents)
    determined_vars = determined(parts, all_extents, standing)
    for iter_var in block.iter_vars:
        if iter_var.var in spatial - determined_vars:
            if any(access.indices != accesses[0].indices for access in accesses):
                return f"touches {accesses[0].buffer.name} at more than one element in a run"
            return f"does not write a different element for each {iter_var.var.name}"
    return None


def _separate_indices(block: Block, accesses: tuple[BlockAccess, ...]) -> list[tuple[Expr, ...]]:
    """Return the indices of each access, with row-major numbers as their digits.

    Digits of different numbers can't be compared: all accesses must have the same ones.
    """
    sizes = {i.var: i.extent for i in block.iter_vars}
    digits = [[numbered(index, sizes) for index in access.indices] for access in accesses]
    if any(of_access != digits[0] for of_access in digits):
        return [access.indices for access in accesses]
    return [
        tuple(
            part
            for index, parts in zip(access.indices, digits[0], strict=True)
            for part in (parts or (index,))
        )
        for access in accesses
    ]


def _is_plain(block: Block, accesses: tuple[BlockAccess, ...]) -> bool:
    """Check the usual case: a block touches a buffer exactly at its spatial iterators."""
    indices = accesses[0].indices
    if any(access.indices != indices for access in accesses[1:]):
        return False
    spatial = {i.var for i in block.iter_vars if i.kind == "spatial"}
    named = {index for index in indices if isinstance(index, Var)}
    return len(named) == len(indices) and named == spatial


def _reads_old(
    block: Block, facts: BlockAccesses, read: BlockAccess, standing: frozenset[Var]
) -> bool:
    """Check whether a read may see a value from before the run, of a buffer the block writes."""
    if read.is_fresh or read.buffer not in facts.written_buffers():
        return False
    return not any(
        write.buffer == read.buffer
        and write.is_certain
        and write.order < read.order
        and _covers(block, write, read, standing)
        for write in facts.writes
    )


def _covers(block: Block, write: BlockAccess, read: BlockAccess, standing: frozenset[Var]) -> bool:
    """Check that a write, over its inner loops, covers all that a later read of the run touches."""
    extents = {**extents_of_iterators(block), **write.inner, **read.inner}
    write_loops = write.inner.keys() - read.inner.keys()
    read_loops = read.inner.keys() - write.inner.keys()
    forms: list[Affine] = []
    sizes: list[int] = []
    for written, read_index, size in zip(
        write.indices, read.indices, read.buffer.shape, strict=True
    ):
        form = normal(written, extents)
        span = span_of(form, (extents.keys() - write_loops) | standing, extents)
        fixed = (extents.keys() - read_loops) | standing
        inner = span_of(normal(read_index, extents), fixed, extents)
        moving = tuple((a, c) for a, c in form.terms if variables(a) & write_loops)
        mixed = any(not variables(a) <= write_loops for a, _ in moving)
        if span is None or mixed or not contains(span, inner, extent_or_unknown(size), extents):
            return False
        forms.append(Affine(moving, 0, form.dtype))
        sizes.append(span.extent)
    return covering_sources(forms, sizes, extents) is not None


def is_commutative(block: Block) -> bool:
    """Check that a reduction may take its points in any order."""
    store = block.body
    if not isinstance(store, Store):
        return False
    value = store.value
    if not isinstance(value, BinOp) or value.op not in _COMMUTATIVE:
        return False
    old_value = Load(store.buffer, store.indices)
    addend = value.rhs if value.lhs == old_value else value.lhs if value.rhs == old_value else None
    facts = facts_of(block)
    num_own = sum(access.buffer == store.buffer for access in facts.reads)
    return addend is not None and num_own == 1
