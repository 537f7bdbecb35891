"""The plan of a vectorized loop: the number of lanes, the chunks, and the steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from compiler.backends.cpu.codegen.emitters.scope import LaneRange
from compiler.backends.cpu.codegen.operations.math_functions import POLYNOMIALS
from compiler.identity_cache import IdentityCache
from compiler.ir.core.dtypes import bits
from compiler.ir.core.lane_calls import SHUFFLE
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Block,
    Broadcast,
    Buffer,
    Call,
    Expr,
    For,
    IntImm,
    Load,
    Ramp,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.visit import substitute, uses, walk


class Vectorization:
    """Analyzes vectorized loops, and caches the results for copies in unrolled loops.

    Args:
        vector_bits: The width of the CPU's vectors.
        registers: The buffers that are kept in registers.
    """

    def __init__(self, vector_bits: int, registers: AbstractSet[Buffer]) -> None:
        self.vector_bits = vector_bits
        self._registers = registers
        self._lanes: IdentityCache[For, int] = IdentityCache()
        self._has_polynomials: IdentityCache[For, bool] = IdentityCache()

    def num_lanes(self, loop: For) -> int:
        """Return the number of lanes: the widest elements that are stored fill a register.

        It is 1 if lanes can't run at once, since some store has the same address in all of them.
        """
        return self._lanes.find(loop, self._count_lanes)

    def _count_lanes(self, loop: For) -> int:
        nodes = list(walk(loop.body))
        stores = [node for node in nodes if isinstance(node, Store)]
        if not stores or not _has_lanes(loop, nodes, stores):
            return 1
        return max(1, self.vector_bits // max(bits(s.buffer.dtype) for s in stores))

    def has_polynomials(self, loop: For) -> bool:
        """Return whether a loop computes polynomials, each a chain of dependent operations.

        Several vectors that are one to LLVM become chains side by side, operation by operation: up
        to a quarter faster than one chain after another, of which few fit the CPU's window.
        """
        return self._has_polynomials.find(loop, self._computes_polynomials)

    def _computes_polynomials(self, loop: For) -> bool:
        nodes = list(walk(loop.body))
        calls = [node for node in nodes if isinstance(node, Call) and node.name in POLYNOMIALS]
        if not any(call.dtype == "float32" and uses(call, loop.var) for call in calls):
            return False
        accessed = {node.buffer for node in nodes if isinstance(node, Load | Store)}
        return not accessed & self._registers


def _has_lanes(loop: For, nodes: Iterable[Expr | Stmt | Block], stores: list[Store]) -> bool:
    for node in nodes:
        if isinstance(node, Allocate | While | Ramp | Broadcast):
            return False
        if isinstance(node, Call) and node.name == SHUFFLE:
            return False
        if isinstance(node, For) and (node.kind == "parallel" or uses(node.extent, loop.var)):
            return False
    return all(any(uses(index, loop.var) for index in store.indices) for store in stores)


def chunks(extent: int, lanes: int) -> Iterator[LaneRange]:
    """Cut a range into vectors, and its rest into shorter ones, halving: 45 = 5 * 8 + 4 + 1."""
    offset = 0
    while offset < extent:
        while lanes > extent - offset:
            lanes //= 2
        yield LaneRange(offset, lanes)
        offset += lanes


def strips(loop: For, extent: int, lanes: int, around: For | None = None) -> Iterator[For]:
    """Cut a vectorized loop into a loop of steps of `lanes` iterations, and a loop of the rest.

    Rewrites (19 iterations, 8 lanes):
        for j in vectorized(19):   ->   for j_o in range(2):
            body(j)                         for j_i in vectorized(8):
                                                body(j_o * 8 + j_i)
                                        for j_i in vectorized(3):
                                            body(j_i + 16)

    Args:
        loop: The vectorized loop.
        extent: Its number of iterations.
        lanes: The iterations of a step.
        around: The unrolled loop around it, which becomes part of a step, too.
    """
    outer, inner = Var(f"{loop.var.name}_o"), Var(f"{loop.var.name}_i")
    num_steps = extent // lanes
    index = BinOp("+", BinOp("*", outer, IntImm(lanes)), inner)
    yield For(outer, IntImm(num_steps), _strip(loop, inner, (lanes, index), around))
    remainder = extent - num_steps * lanes
    if remainder:
        index = BinOp("+", inner, IntImm(num_steps * lanes))
        yield _strip(loop, inner, (remainder, index), around)


def _strip(loop: For, var: Var, part: tuple[int, BinOp], around: For | None) -> For:
    extent, index = part
    vectors = For(var, IntImm(extent), substitute(loop.body, {loop.var: index}), "vectorized")
    return vectors if around is None else replace(around, body=vectors)
