"""Check that threads use shared memory without conflicts.

    for tx in 32:  # threadIdx.x
        for k in 8:
            S[0] += A[k]
        B[tx] = A[tx] + S[0]

All threads add to one sum, unless it is "local" and so private to each thread. "shared" memory is
common to all threads even if a block that each thread runs allocates it.

`bind` checks the loop that it binds; all other primitives may move blocks and buffers into loops
that are bound already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.arith.iter_map import variables, variables_of
from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    For,
    If,
    IntImm,
    Load,
    Stmt,
    Store,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.scopes import is_private_scope, is_shared_scope
from compiler.ir.core.visit import walk
from compiler.ir.text.print_expr import show_expr
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.legality.independence import IterationNest, has_disjoint_iterations
from compiler.schedule.legality.local_memory import foreign_reads
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.legality.thread_reductions import thread_reduction_problem
from compiler.schedule.tree.tree import (
    Path,
    block_path,
    blocks,
    children,
    loops_on,
    statement_paths,
)


@dataclass(frozen=True)
class _Fault:
    """A conflict of threads: the node, the buffer and the axis."""

    reason: str
    at: Stmt
    key: tuple[str, str, str]


def require_sound_threads(primitive: str, before: PrimFunc, after: PrimFunc) -> None:
    """Refuse a change that makes threads conflict with each other.

    Conflicts that the program already had are accepted.

    Raises:
        ScheduleError: Naming the block, the buffer and the loop.
    """
    faults = list(_faults(after))
    if faults:
        old_faults = {fault.key for fault in _faults(before)}
        for fault in faults:
            if fault.key not in old_faults:
                raise refusal(primitive, after)(fault.reason, fault.at, "threads")


def _faults(func: PrimFunc) -> Iterator[_Fault]:
    if not statement_paths(func).has_threads:
        return
    yield from _extents(func)
    yield from _shared_storage(func)
    refuse = refusal("bind", func)
    for realize in blocks(func):
        # With the loops around the block, which may be bound: then its buffers are in one kernel.
        scope = BlockScope(func, block_path(func, realize.block.name, refuse), refuse)
        try:
            sites = scope.sites
        except ScheduleError:
            continue  # accesses of code outside of blocks are unknown
        for site, buffer in foreign_reads(scope):
            yield _Fault(
                f"block {site.name} may read of {buffer.name} what another thread wrote, and it is "
                f'"{buffer.scope}": each thread has its own; what threads share is "shared"',
                site.realize,
                (site.name, buffer.name, "local"),
            )
        for site in sites:
            for loop in _threads(site):
                yield from _reductions(site, loop)
                yield from _shared_sums(scope, site, loop)


def _extents(func: PrimFunc) -> Iterator[_Fault]:
    """Find loops over threads whose extents vary, or differ along one axis of a kernel.

    A kernel is a bound loop without another bound loop around it: it starts one number of threads
    along each of its axes.
    """
    symbols = set(symbolic_vars(func))
    waiting: list[tuple[Stmt, dict[str, For] | None]] = [(func.body, None)]
    while waiting:
        stmt, kernel = waiting.pop()
        if isinstance(stmt, For) and stmt.thread is not None:
            kernel = {} if kernel is None else kernel
            first = kernel.setdefault(stmt.thread, stmt)
            reason = None
            if not variables(stmt.extent) <= symbols:
                reason = f"but its extent varies: {show_expr(stmt.extent)}"
            elif first.extent != stmt.extent:
                reason = f"as loop {first.var.name} in the same kernel, and they have extents"
                reason = f"{reason} {show_expr(stmt.extent)} and {show_expr(first.extent)}"
            if reason is not None:
                reason = f"loop {stmt.var.name} is bound to {stmt.thread}, {reason}"
                yield _Fault(reason, stmt, (stmt.var.name, "", stmt.thread))
        waiting += [(child, kernel) for child in reversed(children(stmt))]


def _shared_storage(func: PrimFunc) -> Iterator[_Fault]:
    """Find shared buffers that are allocated in blocks that differ from thread to thread."""
    for realize in blocks(func):
        shared = [b for b in realize.block.alloc_buffers if is_shared_scope(b.scope)]
        if not shared:
            continue
        path = block_path(func, realize.block.name, refusal("bind", func))
        for loop in loops_on(path):
            if not loop.thread or loop.thread.startswith("blockIdx") or loop.extent == IntImm(1):
                continue
            if any(node in _dependent(path, loop) for node in walk(realize)):
                yield _Fault(
                    f"block {realize.block.name} runs in each thread of loop {loop.var.name}, and "
                    f'{shared[0].name}, which is "{shared[0].scope}", is one for all of them',
                    realize,
                    (realize.block.name, shared[0].name, loop.thread),
                )


def _dependent(path: Path, loop: For) -> set[object]:
    """Return the variable of a loop and the iterators on a path that take their values from it."""
    dependent: set[object] = {loop.var}
    for stmt in path:
        if isinstance(stmt, BlockRealize):
            for iter_var, value in zip(stmt.block.iter_vars, stmt.iter_values, strict=True):
                if not dependent.isdisjoint(variables(value)):
                    dependent.add(iter_var.var)
    return dependent


def _threads(site: PlacedBlock) -> list[For]:
    return [loop for loop in site.loops if loop.thread and loop.extent != IntImm(1)]


def _reductions(site: PlacedBlock, loop: For) -> Iterator[_Fault]:
    """Find reductions of a block over threads that can't be done together."""
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        if iter_var.kind == "spatial" or loop.var not in variables_of(value):
            continue
        problem: str | None = (
            f"{iter_var.var.name}, a {iter_var.kind} iterator of block {site.name},"
        )
        problem = f"{problem} would follow loop {loop.var.name}, which is {loop.thread}"
        if iter_var.kind == "reduce" and str(loop.thread).startswith("threadIdx"):
            problem = thread_reduction_problem(site, loop)
        if problem is not None:
            yield _Fault(problem, site.realize, (site.name, iter_var.var.name, str(loop.thread)))


def _shared_sums(scope: BlockScope, site: PlacedBlock, loop: For) -> Iterator[_Fault]:
    """Find sums to which several threads of a loop add at the same time."""
    if _reduces(site, loop) or _is_chosen(site, loop):
        return
    for buffer in _updated(site):
        if _is_private(buffer, loop):
            continue
        if not has_disjoint_iterations(_Alone(scope, (loop,), site), buffer):
            yield _Fault(
                f"each thread of loop {loop.var.name} would add to the same elements of "
                f"{buffer.name} in block {site.name}, as they share it: set_scope can make it "
                '"local", so that each has its own',
                site.realize,
                (site.name, buffer.name, str(loop.thread)),
            )


@dataclass(frozen=True)
class _Alone(IterationNest):
    """A nest with only one of its blocks."""

    site: PlacedBlock

    @property
    def sites(self) -> list[PlacedBlock]:
        """Return the only block."""
        return [self.site]


def _is_private(buffer: Buffer, loop: For) -> bool:
    """Return whether each thread, or block of threads, has a copy of a buffer."""
    if str(loop.thread).startswith("blockIdx"):
        return is_private_scope(buffer.scope) or is_shared_scope(buffer.scope)
    return is_private_scope(buffer.scope)


def _updated(site: PlacedBlock) -> list[Buffer]:
    """Return the buffers in which a block stores values that depend on the old ones."""
    both = site.facts.written_buffers() & site.facts.read_buffers()
    stores = [node for node in walk(site.block) if isinstance(node, Store)]
    has_views = any(getattr(node, "match_buffers", ()) for node in walk(site.block))
    return [
        buffer
        for buffer in sorted(both, key=lambda b: b.name)
        if has_views
        or any(
            store.buffer == buffer
            and any(isinstance(n, Load) and n.buffer == buffer for n in walk(store.value))
            for store in stores
        )
    ]


def _reduces(site: PlacedBlock, loop: For) -> bool:
    """Return whether the threads of a loop reduce together."""
    return any(
        iter_var.kind != "spatial" and loop.var in variables_of(value)
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True)
    )


def _is_chosen(site: PlacedBlock, loop: For) -> bool:
    """Return whether a condition around a block depends on the thread that runs it."""
    path: Path = site.path
    return any(isinstance(s, If) and loop.var in variables(s.condition) for s in path)
