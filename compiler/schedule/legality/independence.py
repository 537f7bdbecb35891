"""Find loops whose iterations may run in any order, or at the same time.

The iterations of some loops are independent if one of these holds for every buffer that is written
below them:

disjoint  different iterations touch different elements of the buffer
private   each iteration writes all that it reads, and nothing outside the loops uses the buffer
single    a single block touches the buffer, and its runs may be reordered (see
          `compiler.schedule.legality.block_kind`)

The last allows another order, but not two iterations at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.guards import bounds_of, conjuncts
from compiler.ir.arith.iter_map import Guards, Terms, variables_of
from compiler.ir.core.nodes import Buffer, For, Var
from compiler.schedule.legality.block_kind import Unclassified, is_commutative
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.disjoint_accesses import separates_iterations
from compiler.schedule.legality.guard import derived
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import single_pass_problem
from compiler.schedule.legality.scope import BlockScope


@dataclass(frozen=True)
class IterationNest:
    """A chain of loops in a scope, each the whole body of the previous one."""

    scope: BlockScope
    chain: tuple[For, ...]

    @cached_property
    def sites(self) -> list[PlacedBlock]:
        """Return the blocks below the chain."""
        return [site for site in self.scope.sites if site.is_under(self.chain[-1])]

    @property
    def moving(self) -> frozenset[Var]:
        """Return the variables of the chain."""
        return frozenset(loop.var for loop in self.chain)

    def inner(self, site: PlacedBlock) -> frozenset[Var]:
        """Return the variables of the loops around a block that lie below the chain."""
        return frozenset(loop.var for loop in site.loops_inside(self.chain[-1]))

    def outer(self, site: PlacedBlock) -> frozenset[Var]:
        """Return the variables that are constant while the chain runs."""
        return frozenset(site.extents) - self.moving - self.inner(site)

    def written(self) -> list[Buffer]:
        """Return the buffers written below the chain, in program order."""
        buffers: dict[Buffer, None] = {}
        for site in self.sites:
            buffers.update((access.buffer, None) for access in site.facts.writes)
        return list(buffers)


def has_disjoint_iterations(nest: IterationNest, buffer: Buffer) -> bool:
    """Check that different iterations of a nest touch different elements of a buffer."""
    sites = [site for site in nest.sites if site.touches(buffer)]
    accesses = [(site, access) for site in sites for access in site.facts.accesses(buffer)]
    extents: dict[Var, int] = {}
    guards: dict[Terms, int] | None = None
    for site in sites:
        extents.update(site.extents)
        site_guards = bounds_of(conjuncts(site.realize.predicate), site.extents)
        guards = _common_guards(guards, site_guards)
    for _, access in accesses:
        extents.update(access.inner)
    _tighten(extents, guards or {}, extents.keys())
    for site in sites:
        # Loops around one block only run under its guards, whatever those of the others are.
        others = (other.extents.keys() for other in sites if other is not site)
        own_loops = nest.inner(site).difference(*others)
        _tighten(extents, bounds_of(conjuncts(site.realize.predicate), site.extents), own_loops)

    def is_separated(forms: Sequence[tuple[Affine, ...]], known_guards: Guards) -> bool:
        return separates_iterations(forms, nest.moving, nest.outer(sites[0]), extents, known_guards)

    forms = _distinct(site.indices(access) for site, access in accesses)
    flat = [form for indices in forms for form in indices]
    if is_separated(forms, derived(guards or {}, flat, extents)):
        return True
    # Simplification separates the splits of one number; unsimplified forms may prove more.
    unsimplified = _distinct(site.indices_as_they_are(access) for site, access in accesses)
    return is_separated(unsimplified, guards or {})


def _tighten(extents: dict[Var, int], guards: Guards, loops: AbstractSet[Var]) -> None:
    """Reduce the extents of some loops to the iterations that guards allow."""
    for terms, bound in guards.items():
        if all(scale > 0 for _, scale in terms):
            # If i * 8 + j < 20, then i < 3.
            for atom, scale in terms:
                if isinstance(atom, Var) and atom in loops and atom in extents:
                    extents[atom] = min(extents[atom], max(-(-bound // scale), 1))


def _distinct(forms: Iterable[tuple[Affine, ...]]) -> list[tuple[Affine, ...]]:
    """Return the indices without repetitions: a sum loads and stores the same element."""
    distinct: list[tuple[Affine, ...]] = []
    for form in forms:
        if form not in distinct:
            distinct.append(form)
    return distinct


def _common_guards(common: dict[Terms, int] | None, more: Guards) -> dict[Terms, int]:
    """Return the guards that hold in both of two blocks or groups of blocks."""
    if common is None:
        return dict(more)
    return {terms: max(common[terms], more[terms]) for terms in common.keys() & more.keys()}


def is_iteration_private(nest: IterationNest, buffer: Buffer) -> bool:
    """Check that each iteration of a nest could have a private copy of a buffer.

    Nothing outside the nest may touch the buffer, and each iteration must write an element before
    it reads it.
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
    """Check that all the reduction loops of a block lie below a nest."""
    inner = nest.inner(site)
    return all(
        variables_of(value) <= inner
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True)
        if iter_var.kind != "spatial"
    )


def reordering_problem(nest: IterationNest, buffer: Buffer, order: Sequence[Var]) -> str | None:
    """Return why a buffer forbids another order of the loops, or None if it allows the order.

    It allows the order if a single block touches it, and the runs of the block may be reordered.
    """
    touching = [site for site in nest.sites if site.touches(buffer)]
    if len(touching) > 1:
        names = ", ".join(site.name for site in touching)
        return f"blocks {names} share {buffer.name} across iterations"
    kind = touching[0].kind
    if isinstance(kind, Unclassified):
        return kind.reason
    return (
        None if kind in ("complete", "in_place") else _reduction_problem(nest, touching[0], order)
    )


def _reduction_problem(nest: IterationNest, site: PlacedBlock, order: Sequence[Var]) -> str | None:
    """Check that a reduction may take its points in another order of the nest's loops."""
    if not is_commutative(site.block) and not _keeps_order(nest, site, order):
        return f"the reduction of block {site.name} is not known to be commutative"
    return single_pass_problem(site, nest.moving | nest.inner(site), nest.moving)


def _keeps_order(nest: IterationNest, site: PlacedBlock, order: Sequence[Var]) -> bool:
    """Check that the reduction loops stay in their order; the others select the element."""
    spatial: set[Var] = set()
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        if iter_var.kind == "spatial":
            spatial |= variables_of(value)
    old = [loop.var for loop in nest.chain if loop.var not in spatial]
    return old == [var for var in order if var not in spatial]
