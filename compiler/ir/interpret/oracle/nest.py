"""Nests of loops around one block or one store, which the oracle evaluates with whole arrays.

If the loops reach each point of a box of iterators once, the nest runs over the block's iterators
instead of its loops. Iterators that are lanes (`compiler.ir.interpret.oracle.lanes`) become axes of
arrays; the others are steps, in the order of the loops.

Example, a product whose rows are split:

    for i_0, i_1, j, k in T.grid(4, 8, 16, 64):
        with T.sblock("C"):
            vi = T.axis.spatial(32, i_0 * 8 + i_1)
            vj, vk = T.axis.remap("SR", [j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

`vi` takes its values from the loops `i_0` and `i_1`: one group, whose box is 0, ..., 31. `vi` and
`vj` are lanes, an array of 32 x 16; `vk` is a step. Since the body adds a term to an element, the
64 steps are one reduction of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from compiler.ir.arith.guards import conjuncts
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
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
from compiler.ir.core.visit import substitute, walk
from compiler.ir.interpret.oracle.lanes import Touched
from compiler.ir.interpret.oracle.vectorized_eval import Array, ArrayEvaluator, Box, has_vectors

# The limit on the points of loops that are enumerated to find the values of iterators.
_MAX_POINTS = 1 << 24


@dataclass(frozen=True, slots=True)
class Group:
    """Loops, the iterators that take their values from them, and conditions on them alone."""

    loops: tuple[Var, ...]
    iterators: tuple[Var, ...]
    conditions: tuple[Expr, ...]
    outer: tuple[Var, ...]  # other variables that they depend on
    reads_memory: bool


@dataclass(frozen=True, slots=True)
class NestReduction:
    """A body of the form `out[...] = op(out[...], term)`, where `term` does not read `out`."""

    op: str
    term: Expr
    update: Store


@dataclass(frozen=True, slots=True)
class OracleNest:
    """Loops around a block; around bare statements, the loops themselves are the iterators.

    Attributes:
        loops: The loops with their extents.
        values: The expressions that the iterators are bound to.
        reduced: The iterators at whose first point `init` runs.
        groups: The loops and iterators, grouped by dependence.
        lanes: The iterators that are lanes; the others are stepped through.
        reduction: The reduction over the steps, if their order does not matter.
    """

    loops: Mapping[Var, int]
    values: Mapping[Var, Expr]
    reduced: frozenset[Var]
    init: Stmt | None
    body: Stmt
    groups: tuple[Group, ...]
    lanes: frozenset[Var]
    reduction: NestReduction | None
    _boxes: dict[tuple[int, ...], tuple[Box | None, bool]] = field(default_factory=dict)

    @property
    def num_lanes(self) -> int:
        """Return the maximum number of lanes."""
        return self.num_points(self.lanes)

    @property
    def num_steps(self) -> int:
        """Return the maximum number of steps of each lane."""
        return math.prod(self.loops.values()) // max(self.num_lanes, 1)

    def num_points(self, iterators: AbstractSet[Var]) -> int:
        """Return the maximum number of points of some iterators and those of their groups."""
        return math.prod(
            self.loops[loop]
            for group in self.groups
            if not iterators.isdisjoint(group.iterators)
            for loop in group.loops
        )

    def domain(
        self, memory: Mapping[Buffer, Array], names: Mapping[Var, Array]
    ) -> tuple[Box, Box | None] | None:
        """Return the lanes and the steps of each, as boxes, given the values of `names`.

        The steps are None unless they are a box that is visited once, from its corner on. The
        result is None if the lanes are not such a box.
        """
        lanes, steps = Box({}, {}), Box({}, {})
        is_regular = True
        for number, group in enumerate(self.groups):
            box, begins = self._box(number, group, memory, names)
            if self.lanes.isdisjoint(group.iterators):
                is_regular = is_regular and begins
                steps = steps if box is None else steps.joined(box)
            elif box is None:
                return None
            else:
                lanes = lanes.joined(box)
        return lanes, steps if is_regular else None

    def _box(
        self,
        number: int,
        group: Group,
        memory: Mapping[Buffer, Array],
        names: Mapping[Var, Array],
    ) -> tuple[Box | None, bool]:
        """Return the box of a group's points, and whether the first of them is its corner."""
        key = (number, *(names[var].item() for var in group.outer if var in names))
        cached = self._boxes.get(key)
        if cached is None or group.reads_memory:
            points = self._points((group,), memory, names)
            box = None if points is None else _as_box(points, group)
            begins = points is not None and box is not None and _begins(points, box)
            cached = self._boxes[key] = (box, begins)
        return cached

    def steps(
        self, memory: Mapping[Buffer, Array], names: Mapping[Var, Array]
    ) -> list[dict[Var, Array]] | None:
        """Return the values of the stepped iterators in the order of the loops, if not too many."""
        serial = tuple(g for g in self.groups if self.lanes.isdisjoint(g.iterators))
        points = self._points(serial, memory, names)
        if points is None:
            return None
        count = len(points.pop(_COUNT))
        return [{var: column[n] for var, column in points.items()} for n in range(count)]

    def _points(
        self,
        groups: tuple[Group, ...],
        memory: Mapping[Buffer, Array],
        names: Mapping[Var, Array],
    ) -> dict[Var, Array] | None:
        """Return the values of the iterators of some groups, point by point as the loops run."""
        used = {loop for group in groups for loop in group.loops}
        loops = {var: extent for var, extent in self.loops.items() if var in used}
        if math.prod(loops.values()) > _MAX_POINTS:
            return None
        at = ArrayEvaluator(memory, Box(dict.fromkeys(loops, 0), loops), names)
        shape = tuple(loops.values())
        inside = np.ones(shape, bool)
        for group in groups:
            for condition in group.conditions:
                inside &= at.value(condition)
        return {
            var: np.broadcast_to(at.value(self.values[var]), shape)[inside]
            for group in groups
            for var in group.iterators
        } | {_COUNT: np.flatnonzero(inside)}


_COUNT = Var("count")  # represents the points themselves, because there may be no iterator


def nest_at(loop: For | BlockRealize) -> OracleNest | None:
    """Return the nest that begins with a loop; None if there is none, or nothing to vectorize."""
    loops: dict[Var, int] = {}
    inner: Stmt = loop
    while isinstance(inner, For):
        if not isinstance(inner.extent, IntImm):
            return None
        loops[inner.var] = inner.extent.value
        inner = inner.body
    if isinstance(inner, Seq) or not loops:
        return None
    if not isinstance(inner, BlockRealize):
        return _nest(loops, _bare(loops, inner))
    if inner.block.alloc_buffers or inner.block.match_buffers:
        return None
    return _nest(loops, inner)


def _bare(loops: Mapping[Var, int], body: Stmt) -> BlockRealize:
    """Return statements outside of any block as a block whose iterators are the loops."""
    variables = {var: Var(var.name, var.dtype) for var in loops}
    block = Block(
        "",
        tuple(IterVar(variables[v], IntImm(n), "opaque") for v, n in loops.items()),
        (),
        (),
        substitute(body, variables),
    )
    return BlockRealize(tuple(loops), TRUE, block)


def _nest(loops: Mapping[Var, int], realize: BlockRealize) -> OracleNest | None:
    block = realize.block
    extents = {
        iter_var.var: iter_var.extent.value
        for iter_var in block.iter_vars
        if isinstance(iter_var.extent, IntImm)
    }
    touched = Touched.by(*(() if block.init is None else (block.init,)), block.body)
    if touched is None or len(extents) < len(block.iter_vars):
        return None
    values = dict(zip(extents, realize.iter_values, strict=True))
    reduced = frozenset(iter_var.var for iter_var in block.iter_vars if iter_var.kind == "reduce")
    groups = _groups(loops, values, conjuncts(realize.predicate))
    lanes = _lanes(touched, extents, groups)
    if block.init is not None and not reduced.isdisjoint(lanes):
        lanes = frozenset()  # not all lanes would be initialised at one step
    stepped = values.keys() - lanes
    may_reduce = block.init is None or stepped <= reduced
    reduction = _reduction(block.body, stepped) if may_reduce else None
    if not lanes and reduction is None:
        return None
    return OracleNest(loops, values, reduced, block.init, block.body, groups, lanes, reduction)


def _reduction(body: Stmt, stepped: AbstractSet[Var]) -> NestReduction | None:
    """Return a body as a reduction over the stepped iterators; None if it is not one."""
    match body:
        case Store(buffer, indices, BinOp(op, lhs, rhs)) if op in ("+", "*", "min", "max"):
            old = Load(buffer, indices)
        case _:
            return None
    if old not in (lhs, rhs) or has_vectors(body):
        return None
    term = rhs if lhs == old else lhs
    places = {node for index in indices for node in walk(index)}
    reads = {
        node.buffer for index in (term, *indices) for node in walk(index) if isinstance(node, Load)
    }
    if not stepped or buffer in reads or not stepped.isdisjoint(places):
        return None
    return NestReduction(op, term, body)


def _lanes(
    touched: Touched, extents: Mapping[Var, int], groups: tuple[Group, ...]
) -> frozenset[Var]:
    """Return the iterators that are lanes, together with all others of their groups."""
    candidates = list(extents)
    while True:
        free = dict(extents)
        lane_vars: set[Var] = set()
        for var in candidates:
            if touched.is_lane(var, free):
                lane_vars.add(var)
                del free[var]
        mixed = {v for g in groups if not lane_vars.issuperset(g.iterators) for v in g.iterators}
        if lane_vars.isdisjoint(mixed):
            return frozenset(lane_vars)
        candidates = [var for var in candidates if var not in mixed]


def _groups(
    loops: Mapping[Var, int], values: Mapping[Var, Expr], conditions: Sequence[Expr]
) -> tuple[Group, ...]:
    """Partition loops, iterators and conditions into groups that share loops."""
    parts: list[tuple[set[Var], list[Var], list[Expr]]] = [({loop}, [], []) for loop in loops]
    users: list[tuple[Var | None, Expr]] = [*values.items(), *((None, c) for c in conditions)]
    for iterator, expr in users:
        used = {node for node in walk(expr) if isinstance(node, Var) and node in loops}
        joined: tuple[set[Var], list[Var], list[Expr]] = (set(), [], [])
        for part in [p for p in parts if p[0] & used]:
            parts.remove(part)
            joined = (joined[0] | part[0], joined[1] + part[1], joined[2] + part[2])
        if iterator is None:
            joined[2].append(expr)
        else:
            joined[1].append(iterator)
        parts.append(joined)
    groups: list[Group] = []
    for used_loops, iterators, claims in parts:
        exprs = (*(values[iterator] for iterator in iterators), *claims)
        nodes = dict.fromkeys(node for expr in exprs for node in walk(expr))
        outer = tuple(node for node in nodes if isinstance(node, Var) and node not in loops)
        reads = any(isinstance(node, Load) for node in nodes)
        inside = tuple(loop for loop in loops if loop in used_loops)
        groups.append(Group(inside, tuple(iterators), tuple(claims), outer, reads))
    return tuple(groups)


def _begins(points: Mapping[Var, Array], box: Box) -> bool:
    """Return whether the first point is the corner of a box."""
    return all(len(points[v]) and points[v][0] == first for v, first in box.starts.items())


def _as_box(points: Mapping[Var, Array], group: Group) -> Box | None:
    """Return the box of iterators if each of its points is reached once, else None."""
    count = len(points[_COUNT])
    starts: dict[Var, int] = {}
    extents: dict[Var, int] = {}
    point_numbers = np.zeros(count, np.int64)
    for var in group.iterators:
        column = points[var]
        starts[var] = int(column.min()) if count else 0
        extents[var] = int(column.max()) - starts[var] + 1 if count else 0
        if extents[var] > _MAX_POINTS:
            return None
        point_numbers = point_numbers * extents[var] + (column - starts[var])
    if count != math.prod(extents.values()):
        return None
    if count > 1 and np.bincount(point_numbers, minlength=count).max() > 1:
        return None
    return Box(starts, extents)
