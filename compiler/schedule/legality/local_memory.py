"""Find reads, in private memory of a thread, of values that another thread wrote.

    for tx in 32:  # threadIdx.x
        L[tx] = A[tx]                 # "local"
    for tx in 32:  # threadIdx.x
        B[tx] = L[31 - tx]            # wrong: another thread wrote this element

A thread finds only its own writes, and those that all threads made outside of the loops over
threads. What it wrote is lost at the end of these loops: a loop around them starts other threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import takewhile

from compiler.ir.analysis.dependence import Touch, agree_on
from compiler.ir.arith.iter_map import variables_of
from compiler.ir.core.nodes import Buffer, For, IntImm, Var
from compiler.ir.core.scopes import is_private_scope
from compiler.ir.core.visit import walk, walk_stmts
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import starts_anew
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.tree.tree import extents_of, loops_on


def foreign_reads(scope: BlockScope) -> Iterator[tuple[PlacedBlock, Buffer]]:
    """Yield each block of a scope that may read what another thread wrote, and the buffer."""
    local = [b for b in scope.realize.block.alloc_buffers if is_private_scope(b.scope)]
    if not local:
        return
    is_inside = any(loop.thread for loop in loops_on(scope.path))
    for buffer in local:
        touching = [site for site in scope.sites if site.touches(buffer)]
        if not is_inside and not _is_one_kernel(touching):
            continue  # several kernels share it, so it is not in the memory of a thread
        together = [s for s in touching if s.writes(buffer) and _reducing_threads(s)]
        if together:
            # The result of a reduction over threads is complete only after their loop.
            inside = {loop for site in together for loop in _reducing_threads(site)}
            for site in touching:
                if site not in together and not inside.isdisjoint(loop.var for loop in site.loops):
                    yield site, buffer
            continue
        around = frozenset() if is_inside else _loops_around_threads(touching[0])
        for position, site in enumerate(touching):
            if site.reads(buffer) and not _is_thread_private(
                site, touching, position, buffer, around
            ):
                yield site, buffer


def _loops_around_threads(site: PlacedBlock) -> frozenset[Var]:
    """Return the loops around those over the threads of a block: each iteration starts threads."""
    around = takewhile(lambda loop: not loop.thread, site.loops)
    return frozenset(loop.var for loop in around if loop.extent != IntImm(1))


def _is_one_kernel(sites: Sequence[PlacedBlock]) -> bool:
    kernels = {next((loop.var for loop in site.loops if loop.thread), None) for site in sites}
    return len(kernels) == 1 and None not in kernels


def _threads(site: PlacedBlock) -> list[For]:
    """Return the loops around a block of the program that run over the threads of a GPU block."""
    return [loop for loop in site.loops if _is_thread(loop)]


def _is_thread(loop: For) -> bool:
    has_several = loop.extent != IntImm(1)
    return loop.thread is not None and not loop.thread.startswith("blockIdx") and has_several


def _reducing_threads(site: PlacedBlock) -> set[Var]:
    """Return the loops over whose threads a block reduces."""
    threads = {loop.var for loop in _threads(site)}
    pairs = zip(site.block.iter_vars, site.values, strict=True)
    named = (variables_of(value) for iter_var, value in pairs if iter_var.kind != "spatial")
    return {var for variables in named for var in variables & threads}


def _is_thread_private(
    site: PlacedBlock,
    touching: Sequence[PlacedBlock],
    position: int,
    buffer: Buffer,
    around: AbstractSet[Var],
) -> bool:
    """Check that a thread reads in a block only what it, or every thread, wrote.

    Args:
        around: The loops around those over threads.
    """
    if site.writes(buffer) and _sums_over(site, around):
        return False
    writers = [other for other in touching if other.writes(buffer)]
    if not any(_holds_threads(other) for other in (site, *writers)):
        if site.writes(buffer) and (site.kind == "complete" or starts_anew(site)):
            return True
        for writer in touching[:position]:
            is_for_each = all(loop in site.loops for loop in _threads(writer))
            if writer.writes(buffer) and is_for_each and covers_reads(writer, site, buffer):
                return True
    # Only one thread accesses an element, anywhere in the program.
    return all(_are_one_thread(writer, site, buffer, around) for writer in writers)


def _sums_over(site: PlacedBlock, loops: AbstractSet[Var]) -> bool:
    """Return whether a block reduces over some loops."""
    pairs = zip(site.block.iter_vars, site.values, strict=True)
    summed = (variables_of(value) for iter_var, value in pairs if iter_var.kind != "spatial")
    return any(not loops.isdisjoint(variables) for variables in summed)


def _holds_threads(site: PlacedBlock) -> bool:
    return any(isinstance(s, For) and _is_thread(s) for s in walk_stmts(site.block.body))


def _are_one_thread(
    writer: PlacedBlock, reader: PlacedBlock, buffer: Buffer, around: AbstractSet[Var]
) -> bool:
    if _holds_threads(writer) or _holds_threads(reader):
        return False
    axes = {str(loop.thread) for site in (writer, reader) for loop in _threads(site)}
    return all(
        agree_on((write, other), (*axes, *(around & _variables(write, other))))
        for write in _touches(writer, buffer, around, is_store=True)
        for other in _touches(reader, buffer, around, is_store=False)
    )


def _variables(*touches: Touch) -> set[Var]:
    nodes = (node for touch in touches for index in touch.indices for node in walk(index))
    return {node for node in nodes if isinstance(node, Var)}


def _touches(
    site: PlacedBlock, buffer: Buffer, around: AbstractSet[Var], *, is_store: bool
) -> list[Touch]:
    names: dict[Var, Hashable] = {loop.var: loop.thread for loop in site.loops if loop.thread}
    names |= {var: var for var in around}
    extents = extents_of(site.loops)
    accesses = site.facts.writes if is_store else site.facts.reads
    return [
        Touch(
            buffer,
            tuple(form.to_expr() for form in site.indices(access)),
            is_store,
            {**extents, **access.inner},
            names,
        )
        for access in accesses
        if access.buffer == buffer
    ]
