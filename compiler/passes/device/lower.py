"""Lower a scheduled program for a GPU: to kernels, and the launches of them."""

from __future__ import annotations

from compiler.ir.analysis.resolve_views import resolve_views
from compiler.ir.analysis.while_loops import has_while
from compiler.ir.core.lane_calls import SHUFFLE
from compiler.ir.core.nodes import Call, Stmt
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.align_buffers import alignments_of
from compiler.passes.common.check_indices import check_indices
from compiler.passes.common.check_parameters import check_parameters
from compiler.passes.common.compact_buffers import compact_buffers, private_buffers
from compiler.passes.common.error import LoweringError
from compiler.passes.common.mark_pipelines import mark_pipelines
from compiler.passes.common.pipeline_loops import pipeline_loops
from compiler.passes.common.realize_blocks import realize_blocks
from compiler.passes.common.thread_loops import is_one_by_one
from compiler.passes.device.async_copies import copy_asynchronously
from compiler.passes.device.bind_unbound import bind_unbound
from compiler.passes.device.check_limits import check_limits, check_virtual_threads
from compiler.passes.device.form_kernels import form_kernels
from compiler.passes.device.fragments.lower_fragments import lower_fragments
from compiler.passes.device.hoist_guards import hoist_guards, simplify_guards
from compiler.passes.device.kernel import DeviceProgram
from compiler.passes.device.list_launches import list_launches
from compiler.passes.device.private_memory import privatize
from compiler.passes.device.separate_lanes import separate_lanes
from compiler.passes.device.share_copies import share_copies
from compiler.passes.device.shared_memory import overlapping, place_shared
from compiler.passes.device.swizzle import mark_swizzled, swizzle_shared
from compiler.passes.device.thread_reductions import reduce_across_threads
from compiler.passes.device.virtual_threads import unroll_virtual_threads
from compiler.passes.threads.insert_barriers import insert_barriers
from compiler.passes.threads.unify_threads import unify_threads
from compiler.target.gpus import GpuArch


def lower_for_device(func: PrimFunc, limits: GpuArch) -> DeviceProgram:
    """Turn a scheduled program into kernels for a GPU.

    Args:
        func: The program; its parameters are dense, its extents numbers.
        limits: The limits of the GPU's architecture.

    Raises:
        LoweringError: If the program can't run on such a GPU.
    """
    check_parameters(func)
    _refuse_parts_of_cpus(func)
    func = bind_unbound(func)
    body = mark_swizzled(resolve_views(check_indices(func.body)))
    body, _ = unify_threads(mark_pipelines(body))
    check_virtual_threads(body)
    realized = realize_blocks(reduce_across_threads(share_copies(body)))
    _refuse_thread_reductions(realized.stmt)
    formed = form_kernels(realized.stmt)
    stmt = unroll_virtual_threads(formed.stmt, realized.carried)
    stmt, workspaces = privatize(stmt, formed.workspaces)
    stmt = simplify_guards(stmt)
    stmt = compact_buffers(stmt, realized.carried, alignments_of(body))
    stmt = separate_lanes(lower_fragments(pipeline_loops(stmt, is_device=True)))
    stmt = hoist_guards(stmt)
    stmt = insert_barriers(stmt, private_buffers(stmt), overlapping(place_shared(stmt)))
    stmt = swizzle_shared(copy_asynchronously(stmt))
    program = list_launches(func, stmt, tuple(workspaces), place_shared(stmt))
    check_limits(program.kernels, limits)
    return program


def _refuse_parts_of_cpus(func: PrimFunc) -> None:
    if has_while(func.body):
        raise LoweringError("a `while` loop is compiled for CPUs only")
    if any(isinstance(node, Call) and node.name == SHUFFLE for node in walk(func.body)):
        raise LoweringError("T.Shuffle is compiled for CPUs only")


def _refuse_thread_reductions(stmt: Stmt) -> None:
    if any(is_one_by_one(node) for node in walk_stmts(stmt)):
        raise LoweringError("threads reduce together into one element: bind a spatial loop instead")
