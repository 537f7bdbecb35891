"""The reference semantics of programs: evaluate them one scalar at a time.

The evaluator is deliberately slow and simple: loops run in order, whatever their kind, and blocks
follow TensorIR's semantics. It takes any program, scheduled or not. It shares nothing with lowering
or code generation, so tests compare both with it.

The threads of a GPU's block run in lockstep: each statement for all of them, then the next. So all
data that they exchange through memory is written before it is read, as if a barrier followed every
statement. A statement outside of the loops of an axis is run by the axis' first thread alone,
except stores to memory that each thread has a copy of.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, assert_never

import numpy as np

from compiler.ir.analysis.checked_indices import loaded_names
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.library_calls import RegisteredCall, library_call
from compiler.ir.core.nodes import (
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    Let,
    Load,
    MatchBuffer,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    static_shape,
)
from compiler.ir.core.opaque import OPAQUE
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate_expr import (
    Array,
    EvaluationError,
    ExpressionEvaluator,
    Thread,
    converted,
    unlike_any,
)
from compiler.ir.interpret.evaluator.evaluate_threads import (
    ThreadKernel,
    find_kernels,
    is_block_axis,
)
from compiler.ir.interpret.rounded_conversions import with_rounded_conversions
from compiler.ir.interpret.run_call import CallProblem, run_call
from compiler.ir.interpret.while_steps import WhileSteps

__all__ = ["Array", "EvaluationError", "evaluate", "poisoned"]

# A chosen limit: an iteration takes about 20 microseconds.
_MAX_WHILE_STEPS = 1 << 18


def evaluate(
    func: PrimFunc, inputs: Mapping[str, Array], *, backwards: bool = False
) -> dict[str, Array]:
    """Run a program on copies of its inputs, and return all its parameters by name.

    Parameters that are not among the inputs, and all buffers that the program allocates, start as
    NaN or as an unusual integer, so that a read before the first write shows. With `backwards`, the
    last thread comes first in each statement: if that changes the result, threads race.

    Raises:
        EvaluationError: If an access is out of bounds, if loops bound to one thread axis differ
            in extent, if only some threads of a block reach a barrier, or if a `while` seems to
            have no end.
    """
    func = with_rounded_conversions(func)
    memory: dict[Buffer, Array] = {}
    for buffer in func.buffers:
        input_array = inputs.get(buffer.name)
        memory[buffer] = poisoned(buffer) if input_array is None else input_array.copy()
    with np.errstate(all="ignore"):
        evaluator = _Evaluator(memory, find_kernels(func), backwards=backwards)
        evaluator.names = loaded_names(func.body)
        evaluator.run(func.body, [Thread()])
    return {buffer.name: memory[buffer] for buffer in func.buffers}


def poisoned(buffer: Buffer) -> Array:
    """Return storage whose elements are unlike any result."""
    return np.full(static_shape(buffer), unlike_any(buffer.dtype), dtype=buffer.dtype)


class _Evaluator(ExpressionEvaluator):
    """Runs statements for several threads at once."""

    def __init__(
        self, memory: dict[Buffer, Array], kernels: Mapping[int, ThreadKernel], *, backwards: bool
    ) -> None:
        self.memory = memory
        self.kernels = kernels
        self.backwards = backwards
        self.steps = WhileSteps(EvaluationError, _MAX_WHILE_STEPS)
        # Inside a kernel: its facts, its threads, and the axes whose loops have been entered.
        self.kernel: ThreadKernel | None = None
        self.all_threads: list[Thread] = []
        self.entered: frozenset[str] = frozenset()
        # Private memory, by buffer and the thread's position on some axes.
        self.private: dict[Buffer, tuple[str, ...]] = {}
        self.private_memory: dict[tuple[Buffer, tuple[int, ...]], Array] = {}

    def run(self, stmt: Stmt, threads: list[Thread]) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self._store(buffer, indices, value, threads)
            case Evaluate(value):
                self._effect(value, threads)
            case Let(var, value, body):
                for thread in threads:
                    thread.env[var] = self.value(value, thread)
                self.run(body, threads)
            case Seq(stmts):
                for child in stmts:
                    self.run(child, threads)
            case If(condition, then, otherwise):
                self._branch(condition, then, otherwise, threads)
            case While(condition, body):
                self._while(condition, body, threads)
            case For():
                self._loop(stmt, threads)
            case BlockRealize():
                self._realize(stmt, threads)
            case Allocate(buffer, body):
                self._allocate(buffer, threads)
                self.run(body, threads)
            case _:
                assert_never(stmt)

    def _branch(
        self, condition: Expr, then: Stmt, otherwise: Stmt | None, threads: list[Thread]
    ) -> None:
        holds = [bool(self.value(condition, thread)) for thread in threads]
        for branch, side in ((then, True), (otherwise, False)):
            some = [t for t, h in zip(threads, holds, strict=True) if h == side]
            if branch is not None and some:
                self.run(branch, some)

    def _while(self, condition: Expr, body: Stmt, threads: list[Thread]) -> None:
        running = threads
        while running := [thread for thread in running if self.value(condition, thread)]:
            self.steps.count()
            self.run(body, running)

    def _effect(self, value: Expr, threads: list[Thread]) -> None:
        """Evaluate an opaque call for its effect; hints for passes have none."""
        if not (isinstance(value, Call) and value.name in OPAQUE):
            for thread in threads:
                self.lanes(value, thread)
        elif value.name == "tvm_storage_sync" and len(threads) != len(self.all_threads or threads):
            raise EvaluationError(
                f"{len(threads)} of the {len(self.all_threads)} threads of a block reach a "
                "barrier: the others do not"
            )

    # Loops and threads

    def _loop(self, loop: For, threads: list[Thread]) -> None:
        if loop.thread is not None and self.kernel is None:
            self._launch(loop, self.kernels[id(loop)], threads)
            return
        if loop.thread is not None and self.kernel is not None:
            if not is_block_axis(loop.thread):
                self._enter(loop, loop.thread, threads)
                return
            if loop.thread in self.entered:
                outer = self.kernel.block_vars[loop.thread]
                for thread in threads:
                    thread.env[loop.var] = thread.env[outer]
                self.run(loop.body, threads)
                return
        self._serial(loop, threads)

    def _serial(self, loop: For, threads: list[Thread]) -> None:
        before = self.entered
        if loop.thread is not None and self.kernel is not None:
            self.entered = before | {loop.thread}
            self.kernel.block_vars[loop.thread] = loop.var
        extents = [int(self.value(loop.extent, thread)) for thread in threads]
        for index in range(max(extents)):
            running = [t for t, extent in zip(threads, extents, strict=True) if index < extent]
            for thread in running:
                thread.env[loop.var] = index
            self.run(loop.body, running)
        self.entered = before

    def _launch(self, loop: For, kernel: ThreadKernel, threads: list[Thread]) -> None:
        """Run a kernel: the outermost loop that is bound to an axis, with all threads it needs."""
        (host,) = threads
        axes = {a: n for a, n in kernel.extents.items() if not is_block_axis(a)}
        self.kernel = kernel
        self.all_threads = [
            Thread(dict(host.env), dict(zip(axes, thread_indices, strict=True)), dict(host.views))
            for thread_indices in product(*map(range, axes.values()))
        ]
        if self.backwards:
            self.all_threads.reverse()
        for buffer in kernel.private:
            self._make_private(buffer)
        self._loop(loop, self.all_threads)
        self.kernel, self.all_threads = None, []
        self.private.clear()
        self.private_memory.clear()

    def _enter(self, loop: For, axis: str, threads: list[Thread]) -> None:
        before = self.entered
        self.entered = before | {axis}
        for thread in threads:
            thread.env[loop.var] = thread.indices[axis]
        self.run(loop.body, threads)
        self.entered = before

    # Blocks

    def _realize(self, realize: BlockRealize, threads: list[Thread]) -> None:
        block = realize.block
        threads = [t for t in threads if self.value(realize.predicate, t)]
        if not threads:
            return
        first = []
        for thread in threads:
            values = [self.value(v, thread) for v in realize.iter_values]
            thread.env.update(zip((i.var for i in block.iter_vars), values, strict=True))
            if all(
                value == 0
                for i, value in zip(block.iter_vars, values, strict=True)
                if i.kind == "reduce"
            ):
                first.append(thread)
        self._enter_block(block, threads)
        # Threads that reduce into one buffer run one after another.
        is_ordered = self.kernel is not None and id(block) in self.kernel.one_by_one
        for group in [[t] for t in threads] if is_ordered else [threads]:
            starting = [t for t in group if t in first]
            if block.init is not None and starting:
                self.run(block.init, starting)
            call = library_call(block.body)
            if call is None:
                self.run(block.body, group)
            else:
                for thread in group:
                    self._call_function(block, call, thread)

    def _call_function(self, block: Block, call: RegisteredCall, thread: Thread) -> None:
        """Run a registered function."""
        try:
            written = run_call(
                block,
                call,
                lambda buffer: self.storage(buffer, thread),
                lambda expr: self.value(expr, thread),
            )
        except CallProblem as problem:
            raise EvaluationError(str(problem)) from problem
        for buffer, elements in written:
            self.storage(buffer, thread)[...] = elements

    def _enter_block(self, block: Block, threads: list[Thread]) -> None:
        for buffer in block.alloc_buffers:
            self._allocate(buffer, threads)
        for match in block.match_buffers:
            for thread in threads:
                self._match(match, thread)

    def _match(self, match: MatchBuffer, thread: Thread) -> None:
        """Bind a view for a thread: a region of a buffer under another name."""
        source, view = match.source, match.buffer
        source_array = self.storage(source.buffer, thread)
        corner = [int(self.value(r.minimum, thread)) for r in source.region]
        extents = [int(self.value(r.extent, thread)) for r in source.region]
        if any(
            not 0 <= low <= low + n <= size
            for low, n, size in zip(corner, extents, source_array.shape, strict=True)
        ):
            raise EvaluationError(f"the region that {view.name} views leaves {source.buffer.name}")
        part = source_array[
            tuple(slice(low, low + n) for low, n in zip(corner, extents, strict=True))
        ]
        # With the ellipsis, NumPy returns a view even of a single element.
        first: Any = (*(0,) * (part.ndim - len(view.shape)), ...)
        part = part[first]
        if part.shape != static_shape(view):
            raise EvaluationError(f"{view.name} has another shape than the region that it views")
        thread.views[view] = part
        size = part.itemsize
        base = source_array if source_array.base is None else source_array.base
        offset = part.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        names = [*view.strides, *([] if view.elem_offset is None else [view.elem_offset])]
        values = [*(s // size for s in part.strides), offset // size]
        if not view.strides:
            values = values[-1:]
        for name, value in zip(names, values, strict=False):
            if isinstance(name, Var):
                thread.env[name] = value

    # Memory

    def storage(self, buffer: Buffer, thread: Thread) -> Array:
        view = thread.views.get(buffer)
        if view is not None:
            return view
        axes = self.private.get(buffer)
        if axes is None:
            return self.memory[buffer]
        key = (buffer, tuple(thread.indices[axis] for axis in axes))
        if key not in self.private_memory:
            self.private_memory[key] = poisoned(buffer)
        return self.private_memory[key]

    def _allocate(self, buffer: Buffer, threads: list[Thread]) -> None:
        if self.kernel is not None and not self.kernel.is_shared(buffer, self.entered):
            self._make_private(buffer)
            for thread in threads:
                self.storage(buffer, thread)[...] = unlike_any(buffer.dtype)
        else:
            self.memory[buffer] = poisoned(buffer)

    def _make_private(self, buffer: Buffer) -> None:
        assert self.kernel is not None
        self.private[buffer] = self.kernel.axes_of(buffer, self.entered)

    def _store(
        self, buffer: Buffer, indices: tuple[Expr, ...], value: Expr, threads: list[Thread]
    ) -> None:
        lanes = lanes_of(Load(buffer, indices))
        for thread in self._writers(buffer, threads):
            # Compute the values first: they may read the elements that are overwritten.
            numbers = [self.value(value, thread, lane) for lane in range(lanes)]
            array = self.storage(buffer, thread)
            for lane, number in enumerate(numbers):
                element_index = self.element(buffer, indices, thread, lane)
                if not all(0 <= i < n for i, n in zip(element_index, array.shape, strict=True)):
                    continue  # a loaded index is out of bounds: nothing is stored
                array[element_index] = (
                    number if is_float(buffer.dtype) else converted(number, buffer.dtype)
                )

    def _writers(self, buffer: Buffer, threads: list[Thread]) -> list[Thread]:
        """Return the threads that store: outside of the loops of an axis, only its first thread."""
        if self.kernel is None:
            return threads
        private_axes = self.private.get(buffer, ())
        idle = [
            a for a in self.kernel.thread_axes if a not in self.entered and a not in private_axes
        ]
        return [t for t in threads if not any(t.indices[axis] for axis in idle)]
