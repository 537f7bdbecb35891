"""Prove that a scheduled program may write a result over an operand, element by element.

    for i in parallel(64):                          for i in parallel(64):
        for j in vectorized(32):                        for j in vectorized(32):
            C[i, j] = relu(A[i, j] + B[j])     ->           C[i, j] = relu(C[i, j] + B[j])

One statement reads the operand, at the element that it writes, and no two iterations write the same
element: each element is read before it is overwritten, by its own iteration. This holds of the
loops of the schedule, whatever made them. A reduction, a copy of the operand, a tile that overlaps
another one, or a transposed access is refused.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.analysis.constant_params import constant_params, with_constants, without_constants
from compiler.ir.arith.bijectivity import determined
from compiler.ir.core.nodes import Block, BlockRealize, Buffer, Expr, Load, Store, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope


def overwriting(func: PrimFunc, operand: str, result: str) -> PrimFunc | None:
    """Return the program that reads an operand from the memory of a result, and overwrites it.

    Args:
        func: The program, scheduled or not.
        operand: The name of a parameter that it reads; the new program has no such parameter.
        result: The name of a parameter that it writes.

    Returns:
        The program; None if it is not proved to compute the same.
    """
    buffers = {buffer.name: buffer for buffer in func.buffers}
    source, target = buffers[operand], buffers[result]
    if not _have_one_layout(source, target) or source in constant_params(func):
        return None
    body = replace_buffers(func.body, {source: target})
    assert isinstance(body, BlockRealize), "replacement keeps the kind of a statement"
    params = tuple(param for param in func.params if param is not source)
    merged = replace(without_constants(func), params=params, body=body)
    if not _overwrites_each_element(merged, target):
        return None
    constants = [buffer.name for buffer in constant_params(func)]
    return with_constants(merged, constants) if constants else merged


def _have_one_layout(a: Buffer, b: Buffer) -> bool:
    layouts = [(x.dtype, x.shape, x.strides, x.elem_offset) for x in (a, b)]
    return layouts[0] == layouts[1]


def _overwrites_each_element(func: PrimFunc, buffer: Buffer) -> bool:
    """Return whether all accesses to a buffer are of one statement, each to its own element."""
    store = _only_store(func, buffer)
    scope = BlockScope(func, (func.body,), refusal("overwriting", func))
    try:
        sites = scope.sites
    except ScheduleError:
        return False
    return any(site.block.body is store and _runs_once_for_each_element(site) for site in sites)


def _only_store(func: PrimFunc, buffer: Buffer) -> Store | None:
    """Return the statement that has all accesses to a buffer, if it reads what it overwrites."""
    nodes = list(walk(func.body))
    if any(node is buffer.data or _has_view(node, buffer) for node in nodes):
        return None
    accesses = [n for n in nodes if isinstance(n, Load | Store) and n.buffer == buffer]
    stores = [access for access in accesses if isinstance(access, Store)]
    if len(stores) != 1:
        return None
    element = _element(stores[0])
    reads = [n for n in walk(stores[0].value) if isinstance(n, Load) and n.buffer == buffer]
    is_only = len(reads) == len(accesses) - 1
    return stores[0] if is_only and all(_element(read) == element for read in reads) else None


def _element(access: Load | Store) -> list[Expr]:
    """Return the indices of an access in the dimensions with more than one element."""
    shape = static_shape(access.buffer)
    return [index for index, extent in zip(access.indices, shape, strict=True) if extent > 1]


def _has_view(node: object, buffer: Buffer) -> bool:
    return isinstance(node, Block) and any(m.source.buffer == buffer for m in node.match_buffers)


def _runs_once_for_each_element(site: PlacedBlock) -> bool:
    """Return whether no two iterations of the loops around a block touch the same element."""
    loops = {loop.var for loop in site.loops}
    return site.kind == "in_place" and loops <= determined(site.values, site.extents)
