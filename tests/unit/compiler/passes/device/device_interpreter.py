"""A helper: run a device program on NumPy, thread by thread, in orders that expose races.

Between two barriers the threads of a block run one after another: forwards, backwards, or
shuffled. Memory of threads and blocks is NaN, or an unusual integer, until it is written. A value
that a thread reads too early is therefore wrong in some order. An asynchronous copy arrives as late
as the program allows. The meaning of expressions is that of the evaluator.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Call,
    Evaluate,
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
from compiler.ir.core.visit import transform_expr, walk
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.evaluator.evaluate_expr import (
    Array,
    EvaluationError,
    ExpressionEvaluator,
    Thread,
    converted,
    unlike_any,
)
from compiler.passes.common.thread_loops import is_barrier
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram

WARP = 32
ORDERS = ("forwards", "backwards", "shuffled")


@dataclass
class Exchange:
    """A request of a thread: the value that another lane of its warp computes."""

    value: Any
    distance: int


Copy = tuple[Array, Array]
"""The destination and the source of an asynchronous copy."""
Steps = Generator[Exchange | None, Any, None]
"""A thread: it yields at each barrier (None) and at each exchange within its warp."""


def run_device(
    program: DeviceProgram, inputs: Mapping[str, Array], order: str = "forwards"
) -> dict[str, Array]:
    """Run a program on copies of its inputs, and return all its parameters by name.

    Raises:
        EvaluationError: If an access is out of bounds, or if threads wait at different barriers.
    """
    memory: dict[Buffer, Array] = {buffer: poisoned(buffer) for buffer in program.workspaces}
    for param in program.params:
        memory[param] = inputs[param.name].copy() if param.name in inputs else poisoned(param)
    kernels = {kernel.name: kernel for kernel in program.kernels}
    with np.errstate(all="ignore"):
        for launch in program.launches:
            kernel = kernels[launch.kernel]
            scalars = dict(zip(kernel.scalars, launch.scalars, strict=True))
            for block in _points(kernel, "blockIdx", order):
                _run_block(kernel, memory, {**scalars, **block}, order)
    return {param.name: memory[param] for param in program.params}


def _points(kernel: DeviceKernel, prefix: str, order: str = "forwards") -> Iterator[dict[Var, int]]:
    axes = [axis for axis in kernel.axes if axis.thread.startswith(prefix)]
    axes.sort(key=lambda axis: axis.thread, reverse=True)  # x varies fastest
    points = list(product(*(range(axis.extent) for axis in axes)))
    for point in _ordered(points, order):
        yield dict(zip((axis.var for axis in axes), point, strict=True))


def _ordered(items: list[Any], order: str) -> list[Any]:
    if order == "backwards":
        return items[::-1]
    if order == "shuffled":
        return [items[i] for i in np.random.default_rng(len(items)).permutation(len(items))]
    return items


def _run_block(
    kernel: DeviceKernel, memory: dict[Buffer, Array], env: Mapping[Var, int], order: str
) -> None:
    shared: dict[Buffer, Array] = {}
    arena = np.full(kernel.shared_bytes, 0xFF, dtype=np.uint8)
    for buffer, offset in kernel.shared_offsets.items():
        like = poisoned(buffer)
        view = arena[offset : offset + like.nbytes].view(like.dtype).reshape(like.shape)
        if not is_float(buffer.dtype):
            view[...] = like
        shared[buffer] = view
    threads = [
        _ThreadRun({**memory, **shared}, set(shared)).steps(kernel.body, Thread({**env, **point}))
        for point in _points(kernel, "threadIdx")
    ]
    states: list[Exchange | str | None] = ["start"] * len(threads)
    replies: list[Any] = [None] * len(threads)
    while True:
        for number in _ordered(list(range(len(threads))), order):
            if states[number] == "end":
                continue
            try:
                states[number] = threads[number].send(replies[number])
            except StopIteration:
                states[number] = "end"
            replies[number] = None
        if _exchange(states, replies):
            continue
        if all(state == "end" for state in states):
            return
        if any(state != states[0] for state in states):
            raise EvaluationError("only some threads of a block reach a barrier")


def _exchange(states: list[Exchange | str | None], replies: list[Any]) -> bool:
    """Answer the requests of a warp; return whether there are any."""
    waits = False
    for number, state in enumerate(states):
        if isinstance(state, Exchange):
            waits = True
            lane = (number % WARP) ^ state.distance
            other = states[number - number % WARP + lane] if lane < WARP else None
            if not isinstance(other, Exchange) or other.distance != state.distance:
                raise EvaluationError("a lane reads from a lane that does not take part")
            replies[number] = other.value
    if waits and not all(isinstance(state, Exchange) for state in states):
        raise EvaluationError("only some threads of a block exchange values")
    return waits


class _ThreadRun(ExpressionEvaluator):
    """Runs one thread."""

    def __init__(self, memory: dict[Buffer, Array], shared: set[Buffer]) -> None:
        self._memory = memory
        self._shared = shared
        self._groups: list[list[Copy]] = [[]]  # of asynchronous copies; the last is open

    def storage(self, buffer: Buffer, thread: Thread) -> Array:
        return self._memory[buffer]

    def steps(self, stmt: Stmt, thread: Thread) -> Steps:  # noqa: C901 - one case a node
        match stmt:
            case Evaluate(Call() as call):
                if is_barrier(stmt):
                    yield None
                self._run_call(call, thread)
            case Evaluate():
                pass
            case Seq(stmts):
                for child in stmts:
                    yield from self.steps(child, thread)
            case Let(var, value, body):
                thread.env[var] = self.value((yield from self._exchanged(value, thread)), thread)
                yield from self.steps(body, thread)
            case If(condition, then, otherwise):
                branch = then if self.value(condition, thread) else otherwise
                if branch is not None:
                    yield from self.steps(branch, thread)
            case For(var, extent, body):
                assert stmt.thread is None, "kernels have no bound loops"
                for index in range(int(self.value(extent, thread))):
                    thread.env[var] = index
                    yield from self.steps(body, thread)
            case Allocate(buffer, body):
                if buffer not in self._shared:
                    self._memory[buffer] = poisoned(buffer)
                yield from self.steps(body, thread)
            case Store(buffer, indices, value):
                value = yield from self._exchanged(value, thread)
                self._store(buffer, indices, value, thread)
            case _:
                raise AssertionError(stmt)

    def _run_call(self, call: Call, thread: Thread) -> None:
        match call:
            case Call("async_copy", (Load() as target, Load() as source, IntImm(size), *valid)):
                count = size // self._memory[target.buffer].itemsize
                to = self._elements(target, count, thread)
                is_valid = all(self.value(condition, thread) for condition in valid)
                origin = self._elements(source, count, thread) if is_valid else np.zeros_like(to)
                to[...] = unlike_any(target.buffer.dtype)
                self._groups[-1].append((to, origin))
            case Call("async_commit_group"):
                self._groups.append([])
            case Call("async_wait_group", (IntImm(in_flight),)):
                while len(self._groups) - 1 > in_flight:
                    for to, origin in self._groups.pop(0):
                        to[...] = origin
            case _:
                pass

    def _elements(self, first: Load, count: int, thread: Thread) -> Array:
        """Return the place of some elements that follow each other."""
        array = self._memory[first.buffer]
        index = self.element(first.buffer, first.indices, thread, 0)
        offset = int(np.ravel_multi_index(index, array.shape))
        assert offset % count == 0, "a copy is aligned to its size"
        return array.reshape(-1)[offset : offset + count]

    def _exchanged(self, value: Expr, thread: Thread) -> Generator[Exchange, Any, Expr]:
        """Replace the calls that exchange values by variables that have these values."""
        answers: dict[Expr, Var] = {}
        for node in walk(value):
            if isinstance(node, Call) and node.name == "shuffle_xor":
                own, distance = node.args
                assert isinstance(distance, IntImm)
                answers[node] = Var("answer", node.dtype)
                request = Exchange(self.value(own, thread), distance.value)
                thread.env[answers[node]] = yield request
        return transform_expr(value, answers.get) if answers else value

    def _store(
        self, buffer: Buffer, indices: tuple[Expr, ...], value: Expr, thread: Thread
    ) -> None:
        numbers = [
            self.value(value, thread, lane) for lane in range(lanes_of(Load(buffer, indices)))
        ]
        array = self._memory[buffer]
        for lane, number in enumerate(numbers):
            index = self.element(buffer, indices, thread, lane)
            if all(0 <= i < n for i, n in zip(index, array.shape, strict=True)):
                array[index] = number if is_float(buffer.dtype) else converted(number, buffer.dtype)
