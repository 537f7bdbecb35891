"""Bind the loops of a program that no schedule has bound, so that any program runs on a GPU.

    for i in 100:                         for i_j_fused_0 in 40:  # blockIdx.x
        for j in 101:               ->        for i_j_fused_1 in 256:  # threadIdx.x
            B[i, j] = A[i, j]                     B[...] = A[...]  # where i, j are in bounds

Of each nest the outermost loops whose iterations are independent are fused, split and bound.
Reductions stay in the thread; if nothing else can be bound, the threads of one block reduce
together. A loop that carries values from one iteration to the next stays on the host, if a loop
inside it can be bound: each iteration becomes a launch. What can't be bound is the work of one
thread. The schedule's own primitives bind, and refuse what would be wrong. The
numbers are those of TVM's AutoBind.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

from compiler.ir.core.nodes import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import children, walk_stmts
from compiler.passes.common.mark_pipelines import is_pipelined
from compiler.passes.common.thread_loops import has_threads
from compiler.passes.device.list_launches import MAX_LAUNCHES
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.loops.bind import bind
from compiler.schedule.primitives.loops.fuse import fuse
from compiler.schedule.primitives.loops.reorder import reorder
from compiler.schedule.primitives.loops.split import split
from compiler.schedule.rewrite.plain_loops.derive_blocks import derive_blocks
from compiler.schedule.rewrite.plain_loops.statements import UnderivableError
from compiler.schedule.tree.tree import find_loop, loop_at, replace_at
from compiler.target.gpus import WARP_SIZE

_THREADS = 256
# No other block runs, so this one has as many threads as CUDA allows.
_REDUCING_THREADS = 1024
_MAX_EXTENT = 2**31 - 1  # of a loop, and of a grid along x


def bind_unbound(func: PrimFunc) -> PrimFunc:
    """Return a program each of whose nests is bound, as far as its iterations are independent."""
    if not has_threads(func.body):
        # Loops without blocks are bound, too, as far as that is proved to be legal.
        with suppress(UnderivableError):
            func = derive_blocks(func)
    return _Binder(func).bound()


@dataclass(slots=True)
class _Binder:
    """Binds the nests of a program one after another; `launches` counts those of the host."""

    func: PrimFunc
    launches: int = 0

    def bound(self) -> PrimFunc:
        self.func = _with_global_memory(self.func)
        for loop in _nests(self.func.root.body):
            self._nest(loop.var, 1)
        return self.func

    def _nest(self, outermost: Var, repeats: int) -> None:
        """Bind a nest that loops of the host run `repeats` times."""
        self._make_plain(outermost)
        chain = self._chain(outermost)
        independent = [loop for loop in chain if self._is_independent(loop)]
        if independent and independent[0] is not chain[0]:
            moved = [*independent, *(loop for loop in chain if loop not in independent)]
            try:
                self.func = reorder(self.func, [loop.var for loop in moved])
                chain = self._chain(moved[0].var)
                independent = [self._loop(loop.var) for loop in independent]
            except ScheduleError:
                pass
        inner = [] if independent else [self._loop(loop.var) for loop in _nests(chain[-1].body)]
        if not independent and not inner:
            self._reduce_together(chain)
            return
        on_host = [loop for loop in chain if loop not in independent]
        if independent:
            on_host = chain[: chain.index(independent[0])]
        repeats *= prod(_extent(loop) for loop in on_host)
        if self.launches + repeats * max(len(inner), 1) > MAX_LAUNCHES:
            return
        for loop in inner:
            self._nest(loop.var, repeats)
        if independent:
            self.launches += repeats
            first = chain.index(independent[0])
            run = [a for a, b in zip(chain[first:], independent, strict=False) if a is b]
            self._bind(run)

    def _reduce_together(self, chain: Sequence[For]) -> None:
        """Let the threads of one block share a reduction, if their results can be combined."""
        steps = prod(map(_extent, chain))
        threads = min(_REDUCING_THREADS, max(WARP_SIZE, 1 << (steps - 1).bit_length()))
        try:
            loops = [loop.var for loop in chain]
            func, loop = fuse(self.func, loops) if len(loops) > 1 else (self.func, loops[0])
            func, (_, thread) = split(func, loop, [None, threads])
            self.func = bind(func, thread, "threadIdx.x")
        except ScheduleError:
            pass

    def _bind(self, loops: Sequence[For]) -> None:
        """Bind nested independent loops to blocks of threads."""
        while len(loops) > 1 and prod(map(_extent, loops)) > _MAX_EXTENT:
            loops = loops[:-1]
        for count in (len(loops), 1):
            try:
                self.func = _bind_fused(self.func, [loop.var for loop in loops[:count]])
            except ScheduleError:
                continue
            return

    def _make_plain(self, outermost: Var) -> None:
        """Drop what a schedule for CPUs says of the loops of a nest that may be bound."""
        for loop in self._chain(outermost):
            path = find_loop(self.func, loop.var)
            assert path is not None
            plain = replace(loop_at(path), kind="serial", annotations=())
            self.func = replace_at(self.func, path, plain)

    def _chain(self, outermost: Var) -> list[For]:
        """Return the loops of a nest, each the whole body of the one before."""
        chain = [self._loop(outermost)]
        while isinstance(inner := chain[-1].body, For) and _is_plain(inner):
            chain.append(inner)
        return chain

    def _loop(self, var: Var) -> For:
        path = find_loop(self.func, var)
        assert path is not None, "loops keep their variables"
        return loop_at(path)

    def _is_independent(self, loop: For) -> bool:
        if not isinstance(loop.extent, IntImm) or loop.extent.value == 1:
            return False
        try:
            bind(self.func, loop.var, "blockIdx.x")
        except ScheduleError:
            return False
        return True


def _with_global_memory(func: PrimFunc) -> PrimFunc:
    """Put buffers that no bound loop uses into global memory: they are of no thread yet."""
    bound: set[Buffer] = set()

    def note(node: Stmt | Expr | Block, *, is_bound: bool) -> None:
        is_bound = is_bound or (isinstance(node, For) and node.thread is not None)
        if isinstance(node, Load | Store) and is_bound:
            bound.add(node.buffer)
        if isinstance(node, Block) and is_bound:
            bound.update(match.source.buffer for match in node.match_buffers)
        for child in children(node):
            note(child, is_bound=is_bound)

    note(func.body, is_bound=False)
    moved = {
        buffer: replace(buffer, scope="global")
        for node in walk_stmts(func.body)
        if isinstance(node, BlockRealize)
        for buffer in node.block.alloc_buffers
        if buffer not in bound and buffer.scope != "global"
    }
    if not moved:
        return func
    body = replace_buffers(func.body, moved)
    assert isinstance(body, BlockRealize), "the body of a program is its root block"
    return replace(func, body=body)


def _bind_fused(func: PrimFunc, loops: Sequence[Var]) -> PrimFunc:
    loop = loops[0]
    if len(loops) > 1:
        func, loop = fuse(func, loops)
    path = find_loop(func, loop)
    assert path is not None
    if _extent(loop_at(path)) <= _THREADS:
        return bind(func, loop, "threadIdx.x")
    func, (block, thread) = split(func, loop, [None, _THREADS])
    return bind(bind(func, block, "blockIdx.x"), thread, "threadIdx.x")


def _nests(stmt: Stmt) -> list[For]:
    """Return the outermost loops of a statement that hold no bound loop."""
    match stmt:
        case Seq(stmts):
            return [loop for child in stmts for loop in _nests(child)]
        case If(_, then, otherwise):
            return [*_nests(then), *([] if otherwise is None else _nests(otherwise))]
        case Let(body=body) | Allocate(body=body):
            return _nests(body)
        case For() if _is_plain(stmt) and not has_threads(stmt):
            return [stmt]
        case _:
            return []


def _is_plain(loop: For) -> bool:
    return loop.kind in ("serial", "parallel", "unrolled") and not is_pipelined(loop)


def _extent(loop: For) -> int:
    """Return the number of iterations of a loop; if it varies, more than the host may run."""
    return loop.extent.value if isinstance(loop.extent, IntImm) else MAX_LAUNCHES + 1
