"""Find the buffers that a program always overwrites completely."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from compiler.ir.arith.guards import conjuncts
from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.library_calls import is_whole, written_by_call
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BlockRealize,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Not,
    Ramp,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    static_shape,
)
from compiler.ir.core.opaque import OPAQUE
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, walk
from compiler.ir.interpret.oracle.vectorized_eval import LANE, Array, ArrayEvaluator, Box

# The limit on points of loops to enumerate for one store.
_MAX_POINTS = 1 << 22


def written_whole(func: PrimFunc) -> frozenset[Buffer]:
    """Return the parameters of which every element is written in any run.

    A store under a condition on a loaded value, or on the value of an opaque function, does not
    count.
    """
    coverage = _Coverage(func.buffers)
    coverage.stmt(func.body, {}, {}, ())
    return frozenset(b for b, marks in coverage.marks.items() if marks.all())


class _Coverage:
    def __init__(self, buffers: Collection[Buffer]) -> None:
        self.marks: dict[Buffer, Array] = {b: np.zeros(static_shape(b), bool) for b in buffers}

    def stmt(  # noqa: C901 - one case a node
        self,
        stmt: Stmt,
        loops: Mapping[Var, int],
        values: Mapping[Var, Expr],
        conditions: tuple[Expr, ...],
    ) -> None:
        """Mark the elements that a statement writes.

        Args:
            stmt: The statement.
            loops: The loops around it, by extent.
            values: The values of the iterators of the blocks around it, in terms of loops.
            conditions: The conditions under which it runs.
        """
        match stmt:
            case Store(buffer, indices, _):
                if buffer in self.marks and not self.marks[buffer].all():
                    places = tuple(substitute(index, values) for index in indices)
                    self._mark(self.marks[buffer], places, loops, conditions)
            case Evaluate():
                pass
            case Let(_, _, body) | Allocate(_, body):
                self.stmt(body, loops, values, conditions)
            case Seq(stmts):
                for child in stmts:
                    self.stmt(child, loops, values, conditions)
            case If(condition, then, otherwise):
                holds = substitute(condition, values)
                self.stmt(then, loops, values, (*conditions, holds))
                if otherwise is not None:
                    self.stmt(otherwise, loops, values, (*conditions, Not(holds)))
            case For(var, IntImm(extent), body):
                self.stmt(body, {**loops, var: extent}, values, conditions)
            case For() | While():
                pass
            case BlockRealize(iter_values, predicate, block):
                iterators = zip(block.iter_vars, iter_values, strict=True)
                bound = {iter_var.var: substitute(value, values) for iter_var, value in iterators}
                holds = substitute(predicate, values)
                self.stmt(block.body, loops, {**values, **bound}, (*conditions, holds))
                is_certain = all(c == TRUE for c in (*conditions, holds))
                if is_certain and not loops and not block.iter_vars:
                    self._mark_call(stmt)

    def _mark_call(self, realize: BlockRealize) -> None:
        """Mark the buffers of which a call outside of loops writes every element."""
        written = written_by_call(realize)
        for region in realize.block.writes:
            if region.buffer in written and region.buffer in self.marks and is_whole(region):
                self.marks[region.buffer][...] = True

    def _mark(
        self,
        marks: Array,
        indices: tuple[Expr, ...],
        loops: Mapping[Var, int],
        conditions: tuple[Expr, ...],
    ) -> None:
        """Mark the elements at `places` over all iterations of the loops."""
        claims = [c for condition in conditions for c in conjuncts(condition)]
        exprs = [*indices, *claims]
        if any(_is_open(node) for expr in exprs for node in walk(expr)):
            return
        lanes = max(lanes_of(index) for index in indices) if indices else 1
        loops = {**loops, LANE: lanes}
        used = [
            {LANE if isinstance(n, Ramp) else n for n in walk(e) if isinstance(n, Var | Ramp)}
            for e in exprs
        ]
        if not loops.keys() >= set[Var]().union(*used):
            return
        written = np.ones((1,) * marks.ndim, bool)
        for members in _connected(used):
            variables = set[Var]().union(*(used[n] for n in members))
            box = {var: extent for var, extent in loops.items() if var in variables}
            reached = _reached(marks.shape, exprs, members, box)
            if reached is None:
                return
            written = written & reached
        marks |= written


def _reached(
    shape: tuple[int, ...], exprs: list[Expr], members: list[int], box: Mapping[Var, int]
) -> Array | None:
    """Return the reached indices of some dimensions; None if there are too many iterations.

    Args:
        shape: The shape of the buffer.
        exprs: Its indices, then conditions.
        members: The numbers of those that depend on the loops.
        box: The loops.
    """
    if math.prod(box.values()) > _MAX_POINTS:
        return None
    at = ArrayEvaluator({}, Box(dict.fromkeys(box, 0), box))
    points = tuple(box.values())
    inside = np.ones(points, bool)
    coordinate_arrays = []
    for number in members:
        value = np.broadcast_to(at.value(exprs[number]), points)
        if number < len(shape):
            coordinate_arrays.append(value)
            # If other conditions never hold, an index may be outside of the buffer.
            inside = inside & (value >= 0) & (value < shape[number])
        else:
            inside = inside & value
    dims = [n if number in members else 1 for number, n in enumerate(shape)]
    reached = np.zeros([n for number, n in enumerate(shape) if number in members], bool)
    reached[tuple(coordinates[inside] for coordinates in coordinate_arrays)] = inside.any()
    return reached.reshape(dims)


def _is_open(node: object) -> bool:
    """Return whether a value is not determined by the loops: it is loaded, or from a function."""
    return isinstance(node, Load) or (isinstance(node, Call) and node.name in OPAQUE)


def _connected(used: list[set[Var]]) -> list[list[int]]:
    """Group expressions that share variables; return the numbers of each group's members."""
    groups: list[tuple[set[Var], list[int]]] = []
    for number, nodes in enumerate(used):
        near = [group for group in groups if group[0] & nodes]
        groups = [group for group in groups if not group[0] & nodes]
        groups.append(
            (nodes.union(*(g[0] for g in near)), [*(n for g in near for n in g[1]), number])
        )
    return [sorted(members) for _, members in groups]
