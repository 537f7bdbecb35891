"""The kernels of a program for the evaluator: their thread axes and private memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.scopes import is_private_scope, is_shared_scope
from compiler.ir.core.visit import children, walk, walk_stmts
from compiler.ir.interpret.evaluator.evaluate_expr import EvaluationError


@dataclass(slots=True)
class ThreadKernel:
    """The threads of a kernel: an outermost loop that is bound to an axis starts them.

    Attributes:
        extents: The number of threads, or blocks of threads, on each axis.
        reduced: The axes over which threads reduce into one buffer.
        one_by_one: The blocks that do so, by identity.
        private: The buffers that each thread has a copy of, though they are allocated outside.
        block_vars: The variable of the current loop over each axis of blocks.
    """

    extents: dict[str, int]
    reduced: dict[Buffer, set[str]] = field(default_factory=dict)
    one_by_one: set[int] = field(default_factory=set)
    private: list[Buffer] = field(default_factory=list)
    block_vars: dict[str, Var] = field(default_factory=dict)

    @property
    def thread_axes(self) -> tuple[str, ...]:
        """Return the axes in which threads of one block differ."""
        return tuple(axis for axis in self.extents if not is_block_axis(axis))

    def is_shared(self, buffer: Buffer, entered: frozenset[str]) -> bool:
        """Return whether the threads of a block share a buffer that is allocated at a position."""
        if is_shared_scope(buffer.scope):
            return True
        return not is_private_scope(buffer.scope) and not entered.intersection(self.thread_axes)

    def axes_of(self, buffer: Buffer, entered: frozenset[str]) -> tuple[str, ...]:
        """Return the axes that identify a thread's copy of a buffer."""
        axes = self.thread_axes if is_private_scope(buffer.scope) else tuple(entered)
        reduced = self.reduced.get(buffer, set())
        return tuple(a for a in axes if not is_block_axis(a) and a not in reduced)


def is_block_axis(axis: str) -> bool:
    """Return whether an axis is of blocks, not of the threads in a block."""
    return axis.startswith("blockIdx")


def find_kernels(func: PrimFunc) -> dict[int, ThreadKernel]:
    """Return the kernels of a program by the identity of their outermost loops.

    Raises:
        EvaluationError: If loops bound to one axis have different extents.
    """
    kernels: dict[int, ThreadKernel] = {}
    used: dict[Buffer, set[int]] = {}

    def visit(stmt: Stmt | Block | Expr, kernel: int) -> None:
        match stmt:
            case For(thread=str()) if not kernel:
                kernel = id(stmt)
                kernels[kernel] = _kernel(stmt)
            case Store(buffer) | Load(buffer):
                used.setdefault(buffer, set()).add(kernel)
            case Block(match_buffers=matches):
                for match in matches:
                    used.setdefault(match.source.buffer, set()).add(kernel)
            case _:
                pass
        for child in children(stmt):
            visit(child, kernel)

    visit(func.body, 0)
    for stmt in walk_stmts(func.body):
        for buffer in stmt.block.alloc_buffers if isinstance(stmt, BlockRealize) else ():
            users = used.get(buffer, set())
            if is_private_scope(buffer.scope) and len(users) == 1 and 0 not in users:
                kernels[users.pop()].private.append(buffer)
    return kernels


def _kernel(loop: For) -> ThreadKernel:
    kernel = ThreadKernel({})
    axes: dict[Var, set[str]] = {}
    for stmt in walk_stmts(loop):
        if isinstance(stmt, For) and stmt.thread is not None:
            if not isinstance(stmt.extent, IntImm):
                raise EvaluationError(f"a loop bound to {stmt.thread} has an extent that varies")
            extent = stmt.extent.value
            axes[stmt.var] = {stmt.thread}
            if kernel.extents.setdefault(stmt.thread, extent) != extent:
                raise EvaluationError(
                    f"loops bound to {stmt.thread} have {kernel.extents[stmt.thread]} and "
                    f"{extent} iterations"
                )
        if isinstance(stmt, BlockRealize):
            _note_reduction(kernel, stmt, axes)
    return kernel


def _note_reduction(kernel: ThreadKernel, realize: BlockRealize, axes: dict[Var, set[str]]) -> None:
    block = realize.block
    for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
        over = {axis for v in walk(value) if isinstance(v, Var) for axis in axes.get(v, ())}
        axes[iter_var.var] = over  # inner blocks may take their values from it
        if over and iter_var.kind != "spatial":
            kernel.one_by_one.add(id(block))
            for region in block.writes:
                kernel.reduced.setdefault(region.buffer, set()).update(over)
