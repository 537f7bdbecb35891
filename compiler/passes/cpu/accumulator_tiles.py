"""Find the tile of memory that a loop accumulates into, how it starts, and its guards.

Example, a product whose reduction is the loop `k`:

    for i in range(2):
        for k in range(64):
            for y in T.unroll(2):
                for x in T.vectorized(16):
                    if k == 0:
                        C[i * 2 + y, x] = 0
                    C[i * 2 + y, x] = C[i * 2 + y, x] + A[i * 2 + y, k] * B[k, x]

Each step of `k` updates the same elements of `C`: the tile that the expanded loops `y` and `x`
span, with the corner `[i * 2, 0]` and the extents `(2, 16)`. It starts from 0, under no condition
on the loops outside of `k`. So `promote_accumulators` keeps the tile in registers:

    for i in range(2):
        C_acc = 0                             (for all y, x)
        for k in range(64):
            C_acc[y, x] = C_acc[y, x] + ...   (for all y, x)
        C[i * 2 + y, x] = C_acc[y, x]         (for all y, x)
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.identity_cache import IdentityCache
from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.inside import are_inside
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    Buffer,
    Compare,
    Conditional,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import statements_in, walk
from compiler.passes.common.accesses import (
    LoweredAccess,
    Path,
    collect_accesses,
    loop_extents,
    ramp_form,
    split_form,
    symbolic_extents,
)

EXPANDED = ("unrolled", "vectorized")


@dataclass(frozen=True, slots=True)
class Start:
    """How an accumulation starts.

    Attributes:
        stmt: The branch with the store that starts it, in the first step.
        condition: A condition on outer loops: if it fails, the tile continues from memory.
        value: The first value of each element.
    """

    stmt: If
    condition: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Tile:
    """The elements of a buffer that a loop updates in each step.

    Attributes:
        store: The update.
        loops: The unrolled and vectorized loops that span the tile.
        corner: The indices of its first element.
        extents: Its shape.
        start: How the accumulation starts; None if it adds to the elements in memory.
        guards: The conditions around the store, which exclude elements of the tile.
        keeps_guards: Whether the value of an excluded element can't be computed.
    """

    store: Store
    loops: tuple[For, ...]
    corner: tuple[Affine, ...]
    extents: tuple[int, ...]
    start: Start | None
    guards: tuple[If, ...]
    keeps_guards: bool


class Below:
    """A cache of facts about statements and their children: each level of a nest requests them."""

    def __init__(self) -> None:
        self._stores: IdentityCache[Stmt, dict[Buffer, tuple[Store, ...]]] = IdentityCache()
        self._steps: IdentityCache[Stmt, frozenset[Var]] = IdentityCache()
        self._updates: IdentityCache[Store, frozenset[Var] | None] = IdentityCache()
        self._branches: IdentityCache[Stmt, bool] = IdentityCache()

    def stores(self, stmt: Stmt) -> dict[Buffer, tuple[Store, ...]]:
        """Return the stores to each buffer, in program order."""
        return self._stores.find(stmt, self._compute_stores)

    def _compute_stores(self, stmt: Stmt) -> dict[Buffer, tuple[Store, ...]]:
        if isinstance(stmt, Store):
            return {stmt.buffer: (stmt,)}
        parts = [self.stores(part) for part in statements_in(stmt)]
        if len(parts) == 1:
            return parts[0]
        joined: dict[Buffer, tuple[Store, ...]] = {}
        for part in parts:
            for buffer, stores in part.items():
                joined[buffer] = joined.get(buffer, ()) + stores
        return joined

    def steps(self, stmt: Stmt) -> frozenset[Var]:
        """Return the variables of serial loops."""
        return self._steps.find(stmt, self._compute_steps)

    def _compute_steps(self, stmt: Stmt) -> frozenset[Var]:
        parts = [self.steps(part) for part in statements_in(stmt)]
        steps = parts[0] if len(parts) == 1 else frozenset[Var]().union(*parts)
        return steps | {stmt.var} if isinstance(stmt, For) and stmt.kind == "serial" else steps

    def has_branches(self, stmt: Stmt) -> bool:
        """Return whether there are conditions."""
        return self._branches.find(stmt, self._compute_branches)

    def _compute_branches(self, stmt: Stmt) -> bool:
        return isinstance(stmt, If) or any(map(self.has_branches, statements_in(stmt)))

    def is_accumulated(self, loop: For, store: Store) -> bool:
        """Return quickly whether a store may be the update of a tile: most are not."""
        variables = self._updates.find(store, _named_by_update)
        return variables is not None and variables.isdisjoint(self.steps(loop))


def _named_by_update(store: Store) -> frozenset[Var] | None:
    """Return the variables in the indices of a store that updates its element, else None."""
    if not any(isinstance(n, Load) and n.buffer == store.buffer for n in walk(store.value)):
        return None
    return frozenset(n for index in store.indices for n in walk(index) if isinstance(n, Var))


def find_tile(loop: For, buffer: Buffer, outer: Path, below: Below) -> Tile | None:
    """Return the tile that `loop` accumulates in `buffer`, or None if it is not one fixed tile."""
    stores = below.stores(loop)[buffer]
    if len(stores) > 2 or not below.is_accumulated(loop, stores[-1]):
        return None
    if len(stores) == 2 and not below.has_branches(loop):
        return None  # a store that starts the accumulation is always under a condition
    accesses = collect_accesses(loop, {buffer})[buffer]
    first, updates = (accesses[0], accesses[1:]) if len(stores) == 2 else (None, accesses)
    store, path = stores[-1], updates[-1].path
    if len(updates) < 2 or any(
        a.path[-1] is not store or a.indices != store.indices for a in accesses if a is not first
    ):
        return None
    if any(isinstance(node, Let) for node in path) or _is_conditional(store.value, buffer):
        return None
    loops = tuple(node for node in path if isinstance(node, For))
    if any(node.kind not in (*EXPANDED, "serial") for node in loops):
        return None
    named = {node for index in store.indices for node in walk(index) if isinstance(node, Var)}
    spanning = tuple(node for node in loops if node.var in named)
    if any(node.kind == "serial" for node in spanning):
        return None
    steps = tuple(node for node in loops if node.var not in named)
    ranges = loop_extents((*outer, *path))
    guards = _guards(path, steps)
    keeps_guards = bool(guards) and not _is_computable(store, ranges, symbolic_extents(path))
    start = None if first is None else _start(first, updates[-1], steps, ranges, below)
    if guards is None or (first is not None and start is None):
        return None
    box = _box(store, spanning, (*outer, *path))
    return None if box is None else Tile(store, spanning, *box, start, guards, keeps_guards)


def _is_conditional(value: Expr, buffer: Buffer) -> bool:
    """Return whether a load of `buffer` happens only under a condition."""
    return any(
        isinstance(node, Load) and node.buffer == buffer
        for guard in walk(value)
        if isinstance(guard, Conditional)
        for node in walk(guard)
    )


def _box(
    store: Store, spanning: tuple[For, ...], path: Path
) -> tuple[tuple[Affine, ...], tuple[int, ...]] | None:
    inner, ranges = loop_extents(spanning), loop_extents(path)
    forms = [split_form(ramp_form(index, ranges), inner) for index in store.indices]
    dimensions = [part for part in forms if part is not None]
    if len(dimensions) < len(forms):
        return None
    return tuple(corner for corner, _ in dimensions), tuple(extent for _, extent in dimensions)


def _guards(path: Path, steps: tuple[For, ...]) -> tuple[If, ...] | None:
    """Return the conditions around a store, if they do not change from step to step."""
    guards = tuple(node for node in path if isinstance(node, If))
    if not guards:
        return guards
    changing = {loop.var for loop in steps}
    for guard in guards:
        nodes = list(walk(guard.condition))
        if guard.otherwise is not None or any(isinstance(n, Load) for n in nodes):
            return None
        if not changing.isdisjoint(n for n in nodes if isinstance(n, Var)):
            return None
    return guards


def _is_computable(store: Store, ranges: dict[Var, int], extents: dict[Var, Expr]) -> bool:
    """Return whether all loads are within their buffers, even if guards fail."""
    loads = [node for node in walk(store.value) if isinstance(node, Load)]
    return all(
        node.buffer == store.buffer or are_inside(node.indices, node.buffer, ranges, extents)
        for node in loads
    )


def _start(
    first: LoweredAccess,
    update: LoweredAccess,
    steps: tuple[For, ...],
    ranges: dict[Var, int],
    below: Below,
) -> Start | None:
    """Return how an accumulation starts: before all of its steps, in the first of them.

    The store that starts it must come directly before the update. Its condition must hold in the
    first step of the loops only.
    """
    branch, around = first.path[-2], first.path[:-2]
    is_before = (
        first.is_store
        and first.indices == update.indices
        and isinstance(branch, If)
        and branch.otherwise is None
        and isinstance(update.path[-2], Seq)
        and len(around) == len(update.path) - 1
        and all(a is b for a, b in zip(around, update.path, strict=False))
    )
    if not is_before or not isinstance(branch, If):
        return None
    begins = _zeros(branch.condition)
    store = first.path[-1]
    assert isinstance(store, Store), "the path of a store ends in it"
    if begins is None or any(_may_be_empty(step.extent, ranges) for step in steps):
        return None
    if any(step.var not in begins for step in steps if step.extent != IntImm(1)):
        return None
    inside = {node.var for node in update.path if isinstance(node, For)}
    tile = inside - {step.var for step in steps}
    written = below.stores(update.path[0]).keys()
    if not tile.isdisjoint(begins) or any(
        node in inside - tile or (isinstance(node, Load) and node.buffer in written)
        for node in walk(store.value)
    ):
        return None
    condition: Expr = TRUE
    for var in begins:
        if var not in inside and ranges.get(var) != 1:
            test = Compare("==", var, IntImm(0, dtype_of(var)))
            condition = test if condition == TRUE else Logic("and", condition, test)
    return Start(branch, condition, store.value)


def _may_be_empty(extent: Expr, ranges: dict[Var, int]) -> bool:
    interval = bounds(extent, ranges)
    return interval is None or interval[0] < 1


def _zeros(condition: Expr) -> dict[Var, None] | None:
    """Return the non-negative variables that are all zero if and only if a condition holds."""
    match condition:
        case Logic("and", lhs, rhs):
            a, b = _zeros(lhs), _zeros(rhs)
            return None if a is None or b is None else a | b
        case Compare("==", lhs, IntImm(0)):
            form = affine(lhs)
            zeros = {
                atom: None for atom, scale in form.terms if isinstance(atom, Var) and scale > 0
            }
            return zeros if len(zeros) == len(form.terms) and form.const == 0 else None
        case _:
            return None
