"""The plan of the oracle for the loops of a program, and the estimate of its run time."""

from __future__ import annotations

import math
from typing import assert_never

from compiler.identity_cache import IdentityCache
from compiler.ir.core.nodes import (
    Allocate,
    BlockRealize,
    Buffer,
    Evaluate,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    While,
)
from compiler.ir.core.visit import children, walk
from compiler.ir.interpret.oracle.contraction import factors, stepped
from compiler.ir.interpret.oracle.lanes import Touched
from compiler.ir.interpret.oracle.nest import OracleNest, nest_at
from compiler.ir.interpret.oracle.scalar_eval import can_run

# Chosen estimates in seconds: of a node for each array, of a node for each element, of a term of an
# `einsum` that is a product of matrices, of a term of another one, of starting a nest. The oracle
# takes the way that costs least by them. Products of 512 to 4096 rows took 1.0e-10 to 1.3e-10 s a
# term on one core of an AMD Zen 3, depthwise convolutions 6e-9 s.
_SECS_PER_NODE = 2e-6
_SECS_PER_ELEMENT = 2e-9
_SECS_PER_PRODUCT = 1.2e-10
_SECS_PER_TERM = 6e-9
_SECS_PER_NEST = 2e-4
# The estimated cost of one node at one point, if scalars run one after another.
_SECS_PER_SCALAR = 2.5e-7
# The assumed number of iterations of a loop whose extent is known only at run time.
_UNKNOWN_EXTENT = 64
# An inner nest of at least this size runs once for each iteration of an outer loop: as lanes,
# the loop would prevent `einsum` for the sums of products of the nest.
_ENOUGH = 1 << 14


class OraclePlan:
    """The way to run each loop of a program.

    Args:
        chunk: The number of lanes to run at once.
    """

    def __init__(self, chunk: int) -> None:
        self.chunk = chunk
        self._nests: IdentityCache[For, OracleNest | None] = IdentityCache()
        self._lanes: IdentityCache[For, bool] = IdentityCache()
        self._points: IdentityCache[Stmt, int] = IdentityCache()
        self._nodes: IdentityCache[Store, int] = IdentityCache()
        self._scalar: IdentityCache[For, bool] = IdentityCache()
        self._secs_one_by_one: IdentityCache[Stmt, float] = IdentityCache()

    def is_scalar(self, loop: For) -> bool:
        """Return whether a loop should run one scalar at a time."""
        return self._scalar.find(loop, self._is_best_scalar)

    def _is_best_scalar(self, loop: For) -> bool:
        return self.scalar_secs(loop) < self._side_by_side(loop, 0) and can_run(loop)

    def nest(self, loop: For) -> OracleNest | None:
        """Return the nest that begins at a loop, if it can run as arrays."""
        return self._nests.find(loop, nest_at)

    def has_lanes(self, loop: For, *, is_outermost: bool) -> bool:
        """Return whether to run the iterations of a loop as lanes."""
        if is_outermost and self.points(loop.body) >= _ENOUGH:
            return False
        return self._lanes.find(loop, _has_lanes)

    def points(self, stmt: Stmt) -> int:
        """Return the total number of runs of the statements in a statement."""
        return self._points.find(stmt, self._count_points)

    def secs(self, stmt: Stmt, lanes: int = 0) -> float:
        """Estimate the time of a statement for some lanes; without any, for one point."""
        match stmt:
            case Store() | Evaluate():
                return self._leaf(stmt, lanes)
            case Let(_, value, body):
                return self._leaf(Evaluate(value), lanes) + self.secs(body, lanes)
            case Seq(stmts):
                return sum(self.secs(s, lanes) for s in stmts)
            case If(_, then, otherwise):
                return self.secs(then, lanes) + (self.secs(otherwise, lanes) if otherwise else 0)
            case For():
                return self._loop(stmt, lanes)
            case BlockRealize(_, _, block):
                init = 0 if block.init is None else self.secs(block.init, lanes) / 8
                around = 8 * _SECS_PER_NODE * (1 + len(block.iter_vars))
                return around + init + self.secs(block.body, lanes)
            case While():
                return self.scalar_secs(stmt)
            case Allocate(_, body):
                return self.secs(body, lanes)
            case _:
                assert_never(stmt)

    def _loop(self, loop: For, lanes: int) -> float:
        if not lanes and self.is_scalar(loop):
            return self.scalar_secs(loop)
        return self._side_by_side(loop, lanes)

    def scalar_secs(self, stmt: Stmt) -> float:
        """Estimate the time of a statement, scalar by scalar."""
        return self._secs_one_by_one.find(stmt, self._estimate_scalar_secs)

    def _estimate_scalar_secs(self, stmt: Stmt) -> float:
        if isinstance(stmt, For):
            return _extent(stmt) * (_SECS_PER_SCALAR + self.scalar_secs(stmt.body))
        if isinstance(stmt, While):
            once = self._num_nodes(Evaluate(stmt.condition)) * _SECS_PER_SCALAR
            return _UNKNOWN_EXTENT * (once + self.scalar_secs(stmt.body))
        if isinstance(stmt, Store | Evaluate):
            return self._num_nodes(stmt) * _SECS_PER_SCALAR
        parts = children(stmt.block if isinstance(stmt, BlockRealize) else stmt)
        inner = sum(self.scalar_secs(part) for part in parts if isinstance(part, Stmt))
        return 4 * _SECS_PER_SCALAR + inner

    def _side_by_side(self, loop: For, lanes: int) -> float:
        nest = None if lanes else self.nest(loop)
        if nest is not None:
            return _SECS_PER_NEST + self._nest(nest)
        extent = _extent(loop)
        if not self.has_lanes(loop, is_outermost=not lanes):
            return extent * (_SECS_PER_NODE + self.secs(loop.body, lanes))
        chunk = max(1, min(extent, self.chunk // max(1, lanes)))
        return math.ceil(extent / chunk) * self.secs(loop.body, max(1, lanes) * chunk)

    def _nest(self, nest: OracleNest) -> float:
        reduction = nest.reduction
        if reduction is None:
            chunks = math.ceil(nest.num_lanes / self.chunk)
            lanes = math.ceil(nest.num_lanes / chunks)
            return chunks * nest.num_steps * self.secs(nest.body, lanes)
        points = nest.num_lanes * nest.num_steps
        product = factors(reduction.term) if reduction.op == "+" else None
        if product is None or len(product) == 1:
            return points * self._num_nodes(reduction.update) * _SECS_PER_ELEMENT
        return _contraction_secs(nest, product)

    def _leaf(self, stmt: Store | Evaluate, lanes: int) -> float:
        return self._num_nodes(stmt) * (_SECS_PER_NODE + lanes * _SECS_PER_ELEMENT)

    def _num_nodes(self, stmt: Stmt) -> int:
        if isinstance(stmt, Store):
            return self._nodes.find(stmt, _count_nodes)
        return _count_nodes(
            stmt
        )  # the statement may be a temporary one, made for this estimate only

    def _count_points(self, stmt: Stmt) -> int:
        if isinstance(stmt, For):
            return _extent(stmt) * self.points(stmt.body)
        if isinstance(stmt, While):
            return _UNKNOWN_EXTENT * self.points(stmt.body)
        if isinstance(stmt, Store | Evaluate):
            return 1
        inner = stmt.block if isinstance(stmt, BlockRealize) else stmt
        parts = (child for child in children(inner) if isinstance(child, Stmt))
        return sum(self.points(part) for part in parts)


def _contraction_secs(nest: OracleNest, product: list[Load]) -> float:
    """Estimate the time of a sum of products."""
    points = nest.num_lanes * nest.num_steps
    iterators = nest.values.keys()
    stepped_vars = stepped(product, iterators - nest.lanes, iterators)
    if stepped_vars is None:
        return points * len(product) * _SECS_PER_TERM
    # Each step passes over its operands and results, and sums up the rest at once.
    num_steps = nest.num_points(stepped_vars)
    if num_steps == nest.num_steps:
        return points * _SECS_PER_TERM
    elements = nest.num_lanes + sum(math.prod(_extents(load.buffer)) for load in product)
    return points * _SECS_PER_PRODUCT + num_steps * elements * _SECS_PER_ELEMENT


def _extents(buffer: Buffer) -> list[int]:
    return [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]


def _has_lanes(loop: For) -> bool:
    touched = Touched.by(loop.body) if isinstance(loop.extent, IntImm) else None
    return touched is not None and touched.is_lane(loop.var, {})


def _count_nodes(stmt: Stmt) -> int:
    return sum(1 for _ in walk(stmt))


def _extent(loop: For) -> int:
    return loop.extent.value if isinstance(loop.extent, IntImm) else _UNKNOWN_EXTENT
