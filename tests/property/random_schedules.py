"""Small programs and random traces of them, for property tests of schedules.

Every random choice goes through one function, so that hypothesis (which shrinks) and a seeded
generator (which counts) can make them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from compiler import te
from compiler.ir.inputs import param_roles
from compiler.ir.nodes import (
    BinOp,
    BlockRealize,
    Expr,
    For,
    IntImm,
    PrimFunc,
    Stmt,
    Var,
    dtype_of,
    static_shape,
)
from compiler.ir.visit import substitute, transform
from compiler.schedule.error import ScheduleError
from compiler.schedule.handle import BlockRV, LoopRV
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree import blocks

T = TypeVar("T")
Choose = Callable[[Sequence[T]], T]
Array = NDArray[Any]


def matmul_relu(choose: Choose[int]) -> PrimFunc:
    n, m, k = choose((4, 6, 7)), choose((3, 8)), choose((4, 5))
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), "r")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "Y")
    C = te.compute((n, m), lambda i, j: te.max(Y[i, j], 0.0), "C")
    return te.create_prim_func([A, B, C])


def matmul_bias(choose: Choose[int]) -> PrimFunc:
    n, m, k = choose((4, 5)), choose((4, 6)), choose((3, 4))
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    bias = te.placeholder((m,), name="bias")
    r = te.reduce_axis((0, k), "r")
    S = te.compute((m,), lambda j: bias[j] * 2.0, "S")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "Y")
    C = te.compute((n, m), lambda i, j: Y[i, j] + S[j], "C")
    return te.create_prim_func([A, B, bias, C])


def elementwise(choose: Choose[int]) -> PrimFunc:
    n, m = choose((4, 7)), choose((6, 8))
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, "B")
    C = te.compute((n, m), lambda i, j: B[i, j] + 1.0, "C")
    D = te.compute((n, m), lambda i, j: C[i, j] * B[i, j], "D")
    return te.create_prim_func([A, D])


def transposed(choose: Choose[int]) -> PrimFunc:
    n, m = choose((4, 6)), choose((5, 8))
    A = te.placeholder((n, m), name="A")
    B = te.compute((m, n), lambda i, j: A[j, i] + 1.0, "B")
    C = te.compute((n, m), lambda i, j: B[j, i] * 2.0, "C")
    return te.create_prim_func([A, C])


def convolution(choose: Choose[int]) -> PrimFunc:
    size, stride, dilation = choose((9, 12)), choose((1, 2)), choose((1, 2))
    out = (size + 2 - 2 * dilation - 1) // stride + 1
    A, W = te.placeholder((2, size), name="A"), te.placeholder((3, 2, 3), name="W")
    c, r = te.reduce_axis((0, 2), "c"), te.reduce_axis((0, 3), "r")
    P = te.compute(
        (2, size + 2),
        lambda i, x: te.if_then_else(te.all(x >= 1, x < size + 1), A[i, x - 1], 0.0),
        "P",
    )
    Y = te.compute(
        (3, out),
        lambda o, x: te.sum(P[c, x * stride + r * dilation] * W[o, c, r], axis=[c, r]),
        "Y",
    )
    Z = te.compute((3, out), lambda o, x: te.max(Y[o, x], 0.0), "Z")
    return te.create_prim_func([A, W, Z])


def stencil(choose: Choose[int]) -> PrimFunc:
    n = choose((9, 12))
    A = te.placeholder((n + 2,), name="A")
    B = te.compute((n + 2,), lambda i: A[i] * 3.0, "B")
    C = te.compute((n,), lambda i: B[i] + B[i + 1] + B[i + 2], "C")
    D = te.compute((n,), lambda i: C[i] - 1.0, "D")
    return te.create_prim_func([A, D])


def rows(choose: Choose[int]) -> PrimFunc:
    n, m = choose((4, 5)), choose((6, 7))
    A = te.placeholder((n, m), name="A")
    k, q = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "q")
    M = te.compute((n,), lambda i: te.max(A[i, k], axis=k), "M")
    E = te.compute((n, m), lambda i, j: A[i, j] - M[i], "E")
    S = te.compute((n,), lambda i: te.sum(E[i, q], axis=q), "S")
    D = te.compute((n, m), lambda i, j: E[i, j] + S[i], "D")
    return te.create_prim_func([A, D])


def pooling(choose: Choose[int]) -> PrimFunc:
    n = choose((4, 5))
    A = te.placeholder((2, 2 * n + 1), name="A")
    B = te.compute((2, 2 * n + 1), lambda c, i: A[c, i] * 2.0, "B")
    k = te.reduce_axis((0, 3), "k")
    C = te.compute((2, n), lambda c, i: te.max(B[c, i * 2 + k], axis=k), "C")
    return te.create_prim_func([A, C])


def two_outputs(choose: Choose[int]) -> PrimFunc:
    n, k = choose((6, 7)), choose((4, 5))
    A = te.placeholder((n, k), name="A")
    r = te.reduce_axis((0, k), "r")
    S = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), "S")
    D = te.compute((n,), lambda i: S[i] * 2.0, "D")
    return te.create_prim_func([A, S, D])


PROGRAMS: tuple[Callable[[Choose[int]], PrimFunc], ...] = (
    matmul_relu,
    matmul_bias,
    elementwise,
    transposed,
    convolution,
    stencil,
    rows,
    pooling,
    two_outputs,
)

FACTORS: tuple[tuple[int | None, ...], ...] = (
    (None, 2),
    (None, 3),
    (None, 4),
    (2, None),
    (None, 2, 2),
    (None, 1),
)
SCOPES = ("global", "local", "shared")


@dataclass
class RandomTrace:
    """Does random primitives to a schedule, and counts which were accepted and refused."""

    schedule: Schedule
    choose: Choose[Any]
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def step(self) -> None:
        """Try one random primitive."""
        name = self.choose(STEPS)
        before = self.schedule.func
        try:
            getattr(self, f"_{name}")()
        except ScheduleError:
            assert self.schedule.func is before, "a refused primitive leaves the program as it was"
            self.refused[name] += 1
        else:
            self.accepted[name] += self.schedule.func is not before

    def _block(self) -> BlockRV:
        names = [realize.block.name for realize in blocks(self.schedule.func)][1:]
        return self.schedule.get_block(self.choose(names))

    def _loops(self) -> list[LoopRV]:
        return self.schedule.get_loops(self._block())

    def _loop(self, loops: Sequence[LoopRV] | None = None) -> LoopRV:
        """Choose a loop; what would be done to it is refused where there is none."""
        candidates = self._loops() if loops is None else loops
        if not candidates:
            raise ScheduleError("choose", "no loop", self.schedule.func, self.schedule.func)
        loop: LoopRV = self.choose(candidates)
        return loop

    def _split(self) -> None:
        self.schedule.split(self._loop(), self.choose(FACTORS))

    def _tile(self) -> None:
        loop = self._loop()
        extent = self.schedule.get(loop)
        assert isinstance(extent, For)
        self.schedule.split(loop, self.schedule.sample_perfect_tile(loop, self.choose((2, 3)), 4))

    def _fuse(self) -> None:
        loops = self._loops()
        start = self.choose(range(len(loops) or 1))
        self.schedule.fuse(*loops[start : start + self.choose((2, 2, 3))])

    def _reorder(self) -> None:
        loops = self._loops()
        picked: list[LoopRV] = []
        while loops and len(picked) < 4:
            picked.append(loops.pop(self.choose(range(len(loops)))))
        self.schedule.reorder(*picked)

    def _parallel(self) -> None:
        self.schedule.parallel(self._loop())

    def _vectorize(self) -> None:
        self.schedule.vectorize(self._loop(self._loops()[-2:]))

    def _unroll(self) -> None:
        self.schedule.unroll(self._loop())

    def _compute_at(self) -> None:
        block = self._block()
        consumers = self.schedule.get_consumers(block)
        loops = [x for c in consumers[:1] for x in self.schedule.get_loops(c)] or self._loops()
        self.schedule.compute_at(block, self._loop(loops), index=self.choose((-1, -2)))

    def _reverse_compute_at(self) -> None:
        block = self._block()
        producers = self.schedule.get_producers(block)
        loops = [x for p in producers[-1:] for x in self.schedule.get_loops(p)] or self._loops()
        self.schedule.reverse_compute_at(block, self._loop(loops))

    def _compute_inline(self) -> None:
        self.schedule.compute_inline(self._block())

    def _reverse_compute_inline(self) -> None:
        self.schedule.reverse_compute_inline(self._block())

    def _cache_read(self) -> None:
        block = self._block()
        realize = self.schedule.get(block)
        assert isinstance(realize, BlockRealize)
        reads = realize.block.reads
        self.schedule.cache_read(block, self.choose(range(len(reads) or 1)), self.choose(SCOPES))

    def _cache_write(self) -> None:
        self.schedule.cache_write(self._block(), 0, self.choose(SCOPES))

    def _decompose_reduction(self) -> None:
        reductions = [r.block.name for r in blocks(self.schedule.func) if r.block.init is not None]
        block = self.schedule.get_block(self.choose(reductions)) if reductions else self._block()
        loop = self._loop(self.schedule.get_loops(block))
        self.schedule.decompose_reduction(block, loop)

    def _annotate(self) -> None:
        self.schedule.annotate(self._block(), "note", self.choose((1, 2)))


STEPS = tuple(
    name[1:]
    for name in vars(RandomTrace)
    if name.startswith("_")
    and not name.startswith("__")
    and name not in ("_block", "_loops", "_loop")
)


def whole_number_inputs(func: PrimFunc, seed: int) -> dict[str, Array]:
    """Return inputs whose sums and products are exact, so that their order does not matter."""
    rng = np.random.default_rng(seed)
    names = param_roles(func).inputs
    return {
        p.name: rng.integers(-3, 4, static_shape(p)).astype(p.dtype)
        for p in func.buffers
        if p.name in names
    }


def reverse_concurrent_loops(func: PrimFunc) -> PrimFunc:
    """Return the program with its parallel and vectorized loops running backwards."""

    def on_stmt(stmt: Stmt) -> Stmt | None:
        if not isinstance(stmt, For) or stmt.kind not in ("parallel", "vectorized"):
            return None
        assert isinstance(stmt.extent, IntImm)
        dtype = dtype_of(stmt.var)
        var = Var(stmt.var.name, dtype)
        last: Expr = IntImm(stmt.extent.value - 1, dtype)
        body = substitute(stmt.body, {stmt.var: BinOp("-", last, var)})
        return replace(stmt, var=var, body=body, kind="serial")

    body = transform(func.body, on_stmt=on_stmt)
    assert isinstance(body, BlockRealize)
    return replace(func, body=body)
