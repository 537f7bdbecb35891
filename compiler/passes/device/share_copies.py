"""Divide the copies of tiles in shared memory among the threads of a block.

    for tx in 32:  # threadIdx.x           for tx in 32:  # threadIdx.x
        block S:  # auto_copy                  for step in 2:
            for i, j in 8, 8:      ->              block S:  # p = step * 32 + tx
                S[i, j] = A[i, j]                      S[p // 8, p % 8] = A[p // 8, p % 8]

The block that `read_at` or `write_at` made says that each thread copies the whole tile. If all
threads get there, each may do a part instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    BlockRealize,
    Buffer,
    Compare,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.scopes import is_private_scope, is_shared_scope
from compiler.ir.core.visit import map_stmt, substitute, uses
from compiler.passes.common.thread_loops import is_thread
from compiler.passes.device.virtual_threads import is_virtual

_AUTO_COPY = ("auto_copy", True)


def share_copies(stmt: Stmt) -> Stmt:
    """Return a program whose threads share the copies of tiles."""
    return _Position().rewritten(stmt)


@dataclass(frozen=True, slots=True)
class _Position:
    """A position in a program.

    Attributes:
        threads: The loops over threads that reach it together and run it alike.
        is_in_thread: Whether it is in a loop over threads.
        private: The buffers that each thread has for itself.
    """

    threads: tuple[For, ...] = ()
    is_in_thread: bool = False
    private: frozenset[Buffer] = frozenset()

    def rewritten(self, stmt: Stmt) -> Stmt:
        """Return a statement at the position whose copies are shared."""
        inside = self
        match stmt:
            case BlockRealize(iter_values=values, predicate=predicate, block=block):
                if predicate != TRUE:
                    return stmt
                threads = (t for t in self.threads if not any(uses(v, t.var) for v in values))
                allocated = block.alloc_buffers if self.is_in_thread else ()
                inside = replace(self, threads=tuple(threads), private=self.private | {*allocated})
                if _AUTO_COPY in block.annotations and inside.threads:
                    return inside._shared(stmt)
            case For(extent=IntImm()):
                if is_thread(stmt):
                    # Virtual threads share what does not depend on them anyway.
                    together = self.threads if is_virtual(stmt) else (*self.threads, stmt)
                    inside = replace(self, threads=together, is_in_thread=True)
            case Seq():
                pass
            case _:
                return stmt
        return map_stmt(stmt, inside.rewritten, lambda expr: expr)

    def _shared(self, realize: BlockRealize) -> Stmt:
        """Return a loop in which the threads copy one element of a tile after another."""
        loops, store = _tile(realize.block.body)
        if not loops or not self._is_copy(store) or realize.block.alloc_buffers:
            return realize
        step, element = Var("step"), Var("p")
        number: Expr = step
        for thread in sorted(self.threads, key=lambda loop: str(loop.thread), reverse=True):
            number = BinOp("+", BinOp("*", number, thread.extent), thread.var)
        indices: dict[Var, Expr] = {}
        rest: Expr = element
        for loop in reversed(loops):
            indices[loop.var] = BinOp("%", rest, loop.extent) if loop is not loops[0] else rest
            rest = BinOp("//", rest, loop.extent)
        total, num_threads = _iterations(loops), _iterations(self.threads)
        block = replace(
            realize.block,
            iter_vars=(*realize.block.iter_vars, IterVar(element, IntImm(total), "spatial")),
            body=substitute(store, indices),
        )
        is_exact = total % num_threads == 0
        predicate = TRUE if is_exact else Compare("<", number, IntImm(total))
        copy = BlockRealize((*realize.iter_values, number), predicate, block)
        return For(step, IntImm(-(-total // num_threads)), copy)

    def _is_copy(self, stmt: Stmt) -> bool:
        """Return whether a statement copies an element between memories of all threads."""
        if not (isinstance(stmt, Store) and isinstance(stmt.value, Load)):
            return False
        target, source = stmt.buffer, stmt.value.buffer
        return (
            target != source
            and (is_shared_scope(target.scope) or is_shared_scope(source.scope))
            and not any(b in self.private or is_private_scope(b.scope) for b in (target, source))
        )


def _tile(stmt: Stmt) -> tuple[list[For], Stmt]:
    """Return the loops of a nest, and the statement in them."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind == "serial" and isinstance(stmt.extent, IntImm):
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def _iterations(loops: Sequence[For]) -> int:
    return prod(loop.extent.value for loop in loops if isinstance(loop.extent, IntImm))
