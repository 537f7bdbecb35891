"""Which loops may run their iterations in any order, or at once.

The iterations of some loops are independent if, for every buffer that is written below them, one
of these holds:

apart     different iterations touch different elements of it
own       each iteration writes all that it reads, and nobody else looks at the buffer
one       a single block touches it, whose runs may change places (see
`compiler.schedule.legality.block_kind`)

The last allows another order, but not two iterations at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from compiler.ir.arith.affine import Affine
from compiler.ir.core.nodes import Buffer, For, Var
from compiler.schedule.index.iter_map import Guards, Terms, variables_of
from compiler.schedule.legality.block_kind import Unclassified, is_commutative
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.disjoint_accesses import separates_iterations
from compiler.schedule.legality.guard import bounds_of, conjuncts, derived
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import why_not_once
from compiler.schedule.legality.scope import BlockScope


@dataclass(frozen=True)
class IterationNest:
    """A chain of loops in a scope, each the whole body of the one before."""

    scope: BlockScope
    chain: tuple[For, ...]

    @cached_property
    def sites(self) -> list[PlacedBlock]:
        """The blocks below the chain."""
        return [site for site in self.scope.sites if site.is_under(self.chain[-1])]

    @property
    def moving(self) -> frozenset[Var]:
        """The variables of the chain."""
        return frozenset(loop.var for loop in self.chain)

    def inner(self, site: PlacedBlock) -> frozenset[Var]:
        """Return the variables of the loops around a block that lie below the chain."""
        return frozenset(loop.var for loop in site.loops_inside(self.chain[-1]))

    def outer(self, site: PlacedBlock) -> frozenset[Var]:
        """Return the variables that stand still while the chain runs."""
        return frozenset(site.extents) - self.moving - self.inner(site)

    def written(self) -> list[Buffer]:
        """Return the buffers written below the chain, in program order."""
        found: dict[Buffer, None] = {}
        for site in self.sites:
            found.update((access.buffer, None) for access in site.facts.writes)
        return list(found)


def is_apart(nest: IterationNest, buffer: Buffer) -> bool:
    """Tell whether different iterations of a nest touch different elements of a buffer."""
    sites = [site for site in nest.sites if site.touches(buffer)]
    accesses = [(site, access) for site in sites for access in site.facts.accesses(buffer)]
    extents: dict[Var, int] = {}
    guards: dict[Terms, int] | None = None
    for site in sites:
        extents.update(site.extents)
        own = bounds_of(conjuncts(site.realize.predicate), site.extents)
        guards = _common_guards(guards, own)
    for _, access in accesses:
        extents.update(access.inner)
    for terms, bound in (guards or {}).items():
        if all(scale > 0 for _, scale in terms):
            # Where i * 8 + j is below 20, i is below 3.
            for atom, scale in terms:
                if isinstance(atom, Var) and atom in extents:
                    extents[atom] = min(extents[atom], max(-(-bound // scale), 1))

    def is_told(forms: Sequence[tuple[Affine, ...]], known: Guards) -> bool:
        return separates_iterations(forms, nest.moving, nest.outer(sites[0]), extents, known)

    forms = _distinct(site.indices(access) for site, access in accesses)
    flat = [form for indices in forms for form in indices]
    if is_told(forms, derived(guards or {}, flat, extents)):
        return True
    # Simplifying takes digits of one number apart: they may tell more as they are.
    plain = _distinct(site.indices_as_they_are(access) for site, access in accesses)
    return is_told(plain, guards or {})


def _distinct(forms: Iterable[tuple[Affine, ...]]) -> list[tuple[Affine, ...]]:
    """Leave out repeated indices: what a sum stores it has loaded at the same place."""
    found: list[tuple[Affine, ...]] = []
    for form in forms:
        if form not in found:
            found.append(form)
    return found


def _common_guards(known: dict[Terms, int] | None, more: Guards) -> dict[Terms, int]:
    """Return what holds in several blocks, given the guards of each."""
    if known is None:
        return dict(more)
    return {terms: max(known[terms], more[terms]) for terms in known.keys() & more.keys()}


def is_own(nest: IterationNest, buffer: Buffer) -> bool:
    """Tell whether each iteration of a nest could have a buffer of its own.

    Nobody outside the nest touches it, and whatever is read in an iteration was written before in
    that same iteration.
    """
    scope = nest.scope
    if not scope.is_local(buffer):
        return False
    touching = [site for site in scope.sites if site.touches(buffer)]
    if not all(site.is_under(nest.chain[-1]) for site in touching):
        return False
    for reader in (site for site in touching if site.reads(buffer)):
        if reader.writes(buffer) and not _accumulates_inside(nest, reader):
            return False
        starts_anew = reader.writes(buffer) and reader.kind == "reduction"
        if not starts_anew and not any(
            covers_reads(writer, reader, buffer)
            for writer in touching[: touching.index(reader)]
            if writer.writes(buffer)
        ):
            return False
    return True


def _accumulates_inside(nest: IterationNest, site: PlacedBlock) -> bool:
    """Tell whether all the reduction loops of a block lie below a nest."""
    inner = nest.inner(site)
    return all(
        variables_of(value) <= inner
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True)
        if iter_var.kind != "spatial"
    )


def why_not_one(nest: IterationNest, buffer: Buffer, order: Sequence[Var]) -> str | None:
    """Return None if one block alone touches a buffer, and may in another order of the loops.

    Else return the reason why not.
    """
    touching = [site for site in nest.sites if site.touches(buffer)]
    if len(touching) > 1:
        names = ", ".join(site.name for site in touching)
        return f"blocks {names} share {buffer.name} across iterations"
    kind = touching[0].kind
    if isinstance(kind, Unclassified):
        return kind.reason
    return (
        None if kind in ("complete", "in_place") else _why_not_reduction(nest, touching[0], order)
    )


def _why_not_reduction(nest: IterationNest, site: PlacedBlock, order: Sequence[Var]) -> str | None:
    """Check that a reduction may take its points in another order of the nest's loops."""
    if not is_commutative(site.block) and not _keeps_order(nest, site, order):
        return f"the reduction of block {site.name} is not known to be commutative"
    return why_not_once(site, nest.moving | nest.inner(site), nest.moving)


def _keeps_order(nest: IterationNest, site: PlacedBlock, order: Sequence[Var]) -> bool:
    """Tell whether the loops that reduce stay in their order; the others tell elements apart."""
    spatial: set[Var] = set()
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        if iter_var.kind == "spatial":
            spatial |= variables_of(value)
    old = [loop.var for loop in nest.chain if loop.var not in spatial]
    return old == [var for var in order if var not in spatial]
