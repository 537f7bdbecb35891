"""Lower a scheduled program for CPUs: to loops over small buffers, with registers for tiles."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.analysis.resolve_views import resolve_views
from compiler.ir.analysis.while_loops import apart_from_while, has_while
from compiler.ir.core.nodes import Buffer, Load, Stmt, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.align_buffers import alignments_of
from compiler.passes.common.check_indices import check_indices
from compiler.passes.common.check_parameters import check_parameters
from compiler.passes.common.compact_buffers import compact_buffers, private_buffers
from compiler.passes.common.error import LoweringError
from compiler.passes.common.fixed_sizes import fix_sizes
from compiler.passes.common.mark_pipelines import is_pipelined, mark_pipelines
from compiler.passes.common.pipeline_loops import pipeline_loops
from compiler.passes.common.realize_blocks import NOTHING, Realized, realize_blocks
from compiler.passes.common.thread_loops import has_threads
from compiler.passes.common.tile_buffers import tile_buffers, tiles_of
from compiler.passes.common.widen_buffers import wide_types_of, widen_buffers
from compiler.passes.cpu.bound_loops import bound_loops
from compiler.passes.cpu.drop_guards import drop_guards
from compiler.passes.cpu.fill_vectors import fill_vectors
from compiler.passes.cpu.hoist_constants import constant_copies, split_copies, with_room
from compiler.passes.cpu.hoist_loads import hoist_loads
from compiler.passes.cpu.interleave_loops import interleave_loops
from compiler.passes.cpu.partial_tiles import split_partial_tiles
from compiler.passes.cpu.position_in_lanes import position_in_lanes
from compiler.passes.cpu.promote_accumulators import promote_accumulators
from compiler.passes.cpu.reduce_in_lanes import reduce_in_lanes
from compiler.passes.cpu.scan_in_lanes import scan_in_lanes
from compiler.passes.cpu.unswitch_guards import unswitch_guards
from compiler.passes.cpu.unswitch_paddings import unswitch_paddings
from compiler.passes.cpu.widen_accumulators import widen_accumulators
from compiler.passes.threads.insert_barriers import insert_barriers
from compiler.passes.threads.separate_threads import separate_threads
from compiler.passes.threads.split_threads import split_threads
from compiler.passes.threads.unify_threads import unify_threads
from compiler.target.cpu import CpuTarget


def lower_for_cpu(func: PrimFunc, target: CpuTarget) -> Stmt:
    """Turn a scheduled program into loops over small buffers, ready for code generation.

    Raises:
        LoweringError: If extents are symbolic, or threads can't run one after another.
    """
    body = _prepared(func)
    _require_steps(body)
    return _finished(_lower_threads(body) if has_threads(body) else _lower_loops(body), target)


def lower_split(
    func: PrimFunc, constants: set[Buffer], target: CpuTarget
) -> tuple[tuple[Buffer, ...], Stmt, Stmt]:
    """Lower the copies of constants and the program that uses them separately.

    Returns:
        The buffers of the copies, the statement that makes them, and the rest.

    Raises:
        LoweringError: As `lower_for_cpu`.
    """
    body = _prepared(func)
    _require_steps(body)
    if has_threads(body):
        return (), NOTHING, _finished(_lower_threads(body), target)
    realized, tiled = _realized(body)
    # The stages of a pipelined loop number its statements, so a copy can't leave it.
    has_pipelines = any(map(is_pipelined, walk_stmts(body)))
    hoisted = () if has_pipelines or has_while(body) else constant_copies(body, constants)
    copies = tuple(tiled.get(copy, copy) for copy in hoisted)
    first, remaining = split_copies(realized.stmt, set(copies))
    others = {n.buffer for n in walk(first) if isinstance(n, Load)} - constants - set(copies)
    if others or any(isinstance(n, Var) and n.limits is not None for n in walk(first)):
        copies, first, remaining = (), NOTHING, realized.stmt
    room = with_room(copies, remaining)
    parts = (
        _compacted(replace(realized, stmt=replace_buffers(stmt, room)), body)
        for stmt in (first, remaining)
    )
    packing, kernel = (_finished(stmt, target) for stmt in parts)
    return tuple(room.get(copy, copy) for copy in copies), packing, kernel


def _prepared(func: PrimFunc) -> Stmt:
    check_parameters(func, has_symbols=True)
    return mark_pipelines(resolve_views(check_indices(fix_sizes(func.body))))


def _require_steps(body: Stmt) -> None:
    """Refuse threads, which run one after another in steps, around a loop of unknown length."""
    if has_threads(body) and has_while(body):
        raise LoweringError("a `while` loop can't run in programs with loops of threads")


def _finished(stmt: Stmt, target: CpuTarget) -> Stmt:
    """Keep accumulators in registers, and the like; statements with a `while` stay as they are."""
    return apart_from_while(stmt, lambda part: _improved(part, target))


def _improved(stmt: Stmt, target: CpuTarget) -> Stmt:
    register_file_bytes = target.num_vector_registers * target.vector_bits // 8
    stmt = drop_guards(bound_loops(split_partial_tiles(stmt)))
    stmt = fill_vectors(stmt, target.vector_bits)
    stmt = scan_in_lanes(stmt, target.vector_bits)
    stmt = interleave_loops(reduce_in_lanes(position_in_lanes(stmt)))
    stmt = promote_accumulators(stmt, register_file_bytes)
    unswitched = unswitch_guards(unswitch_paddings(stmt))
    if unswitched is not stmt:
        # Run again: whole tiles have no guards any more, which may have prevented accumulators.
        stmt = promote_accumulators(unswitched, register_file_bytes, is_unswitched=True)
    return hoist_loads(widen_accumulators(stmt, has_half_arithmetic=target.has_half_arithmetic))


def _lower_loops(body: Stmt) -> Stmt:
    return _compacted(_realized(body)[0], body)


def _realized(body: Stmt) -> tuple[Realized, dict[Buffer, Buffer]]:
    """Return a program without blocks, with its copies as requested, and those by the old ones."""
    realized = realize_blocks(body)
    stmt, wide = widen_buffers(realized.stmt, wide_types_of(body))
    tiles = {wide.get(buffer, buffer): tile for buffer, tile in tiles_of(body).items()}
    stmt, tiled = tile_buffers(stmt, tiles)
    changed = tiled | {old: tiled.get(new, new) for old, new in wide.items()}
    carried = {changed.get(buffer, buffer): loops for buffer, loops in realized.carried.items()}
    return Realized(stmt, carried), changed


def _compacted(realized: Realized, body: Stmt) -> Stmt:
    return pipeline_loops(compact_buffers(realized.stmt, realized.carried, alignments_of(body)))


def _lower_threads(body: Stmt) -> Stmt:
    """Lower a program with threads to loops that run them one after another."""
    aligned = alignments_of(body)
    body, unified = unify_threads(body)
    realized = separate_threads(realize_blocks(body), unified)
    stmt = compact_buffers(realized.stmt, realized.carried, aligned)
    stmt = pipeline_loops(stmt)
    private = {b for b, thread in private_buffers(stmt).items() if thread is not None}
    return split_threads(insert_barriers(stmt, private), private)
