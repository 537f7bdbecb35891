"""Give each intermediate buffer the smallest box that one run of its innermost scope touches.

A buffer that a schedule computes inside a loop needs room for what one iteration of that loop
uses, not for all of it. The pass finds the innermost place that holds every access (and does not
lie inside a loop that carries a value in the buffer from one iteration to the next), allocates
there, and makes the indices relative to the corner of the box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.ir.affine import Affine
from compiler.ir.bounds import affine_bounds, bounds
from compiler.ir.dtypes import is_integer
from compiler.ir.facts import Facts
from compiler.ir.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
    dtype_of,
    static_shape,
)
from compiler.ir.simplify import normal
from compiler.ir.visit import children, map_expr, map_stmt, walk, walk_stmts

Path = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """Where and at which indices a program touches a buffer; `path` runs from the root down."""

    path: Path
    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the buffer."""
        return static_shape(self.buffer)


@dataclass(frozen=True, slots=True)
class _Placement:
    """The new home of a buffer: inside the body of `at`, with corner `corner`."""

    at: Stmt | None
    corner: tuple[Expr, ...]
    buffer: Buffer


def compact_buffers(stmt: Stmt, carried: Mapping[Buffer, set[Var]]) -> Stmt:
    """Shrink and sink the allocations of `stmt`."""
    allocated = [node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)]
    if not allocated:
        return stmt
    stmt = _with_distinct_loops(stmt)
    accesses = collect_accesses(stmt, set(allocated))
    placements = {
        buffer: _place(buffer, accesses[buffer], carried.get(buffer, set()))
        for buffer in allocated
        if accesses[buffer]
    }
    return _rewrite(stmt, placements)


def _with_distinct_loops(stmt: Stmt) -> Stmt:
    """Return the statement with no loop object in two places, so that identity tells the place."""
    seen: set[int] = set()

    def visit(node: Stmt) -> Stmt:
        new = map_stmt(node, visit, lambda expr: expr)
        if isinstance(new, For):
            new = replace(new) if id(new) in seen else new
            seen.add(id(new))
        return new

    return visit(stmt)


def collect_accesses(stmt: Stmt, buffers: set[Buffer]) -> dict[Buffer, list[Access]]:
    """Find every load and store of some buffers, in program order."""
    found: dict[Buffer, list[Access]] = {buffer: [] for buffer in buffers}

    def visit_expr(expr: Expr, path: Path) -> None:
        if isinstance(expr, Load) and expr.buffer in found:
            found[expr.buffer].append(Access(path, expr.buffer, expr.indices, is_store=False))
        for child in children(expr):
            visit_expr(child, path)  # type: ignore[arg-type]

    def visit(node: Stmt, path: Path) -> None:
        path = (*path, node)
        for child in children(node):
            if isinstance(child, Stmt):
                visit(child, path)
            else:
                visit_expr(child, path)  # type: ignore[arg-type]
        if isinstance(node, Store) and node.buffer in found:
            found[node.buffer].append(Access(path, node.buffer, node.indices, is_store=True))

    visit(stmt, ())
    return found


def _place(buffer: Buffer, accesses: list[Access], carried: set[Var]) -> _Placement:
    common = _common_path(accesses)
    # The allocation goes right inside a loop, or to the top; never below a carrying loop.
    depths = [0]
    for position, node in enumerate(common):
        if isinstance(node, For):
            if node.var in carried or node.kind in ("unrolled", "vectorized"):
                break
            depths.append(position + 1)
    depth = next(d for d in reversed(depths) if d == 0 or _is_written_first(accesses, d))
    at = common[depth - 1] if depth else None
    boxes = [_box(access, depth) for access in accesses]
    corner: list[Expr] = []
    extents: list[Expr] = []
    for dimension, full in enumerate(static_shape(buffer)):
        low, extent = _hull([box[dimension] for box in boxes], full)
        corner.append(low)
        extents.append(IntImm(extent))
    small = Buffer(Var(buffer.name, "handle"), tuple(extents), buffer.dtype, buffer.scope)
    return _Placement(at, tuple(corner), small)


def _is_written_first(accesses: list[Access], depth: int) -> bool:
    """Tell whether one run of the scope at `depth` loads only what it has stored before.

    If not, a value may come from an earlier run of the scope, where it had another corner.
    """
    stored: list[Access] = []
    for access in accesses:
        if access.is_store:
            stored.append(access)
            continue
        before = [_box(s, depth) for s in stored if _is_surely_run(s, access, depth)]
        if not before:
            return False
        box = _box(access, depth)
        for dimension, full in enumerate(access.shape):
            parts = [b[dimension] for b in before]
            if _hull([*parts, box[dimension]], full) != _hull(parts, full):
                return False
    return True


def _is_surely_run(store: Access, load: Access, depth: int) -> bool:
    """Tell whether a store happens in each run of the scope at `depth` in which the load does.

    A condition on the loops inside of the scope trims the box that is stored, and so does one that
    holds wherever the store is in bounds; any other may skip the store altogether.
    """
    inside = store.path[depth:]
    inner = {node.var for node in inside if isinstance(node, For)}
    shared = [node.condition for node in load.path[depth:] if isinstance(node, If)]
    facts = Facts()
    for var, extent in loop_extents(store.path).items():
        facts = facts.having(var, extent)
    for index, full in zip(store.indices, store.shape, strict=True):
        facts = facts.assuming(Compare(">=", index, IntImm(0, dtype_of(index))))
        facts = facts.assuming(Compare("<", index, IntImm(full, dtype_of(index))))

    def is_harmless(condition: Expr) -> bool:
        match condition:
            case Logic("and", lhs, rhs):
                return is_harmless(lhs) and is_harmless(rhs)
            case Compare(">=", lhs, rhs) if is_integer(dtype_of(lhs)):
                holds = facts.at_least(lhs, rhs)
            case Compare("<", lhs, rhs) if is_integer(dtype_of(lhs)):
                holds = facts.at_least(BinOp("-", rhs, IntImm(1, dtype_of(rhs))), lhs)
            case _:
                holds = False
        return holds or not inner.isdisjoint(walk(condition))

    conditions = [node.condition for node in inside if isinstance(node, If)]
    return all(c in shared or is_harmless(c) for c in conditions)


def _common_path(accesses: list[Access]) -> Path:
    common = accesses[0].path
    for access in accesses[1:]:
        length = 0
        for a, b in zip(common, access.path, strict=False):
            if a is not b:
                break
            length += 1
        common = common[:length]
    return common


def _box(access: Access, depth: int) -> list[tuple[Affine, int] | None]:
    """Return, a dimension, the corner in terms of outer loops and the extent; None if unknown."""
    inner = loop_extents(access.path[depth:])
    ranges = {**loop_extents(access.path[:depth]), **inner}
    return [split_index(index, inner, ranges) for index in access.indices]


def loop_extents(path: Path) -> dict[Var, int]:
    """Return the extents of the loops of a path; the greatest where an extent varies."""
    extents: dict[Var, int] = {}
    for node in path:
        if isinstance(node, For):
            interval = bounds(node.extent, extents)
            if interval is not None:
                extents[node.var] = interval[1]
    return extents


def split_index(
    index: Expr, inner: Mapping[Var, int], ranges: Mapping[Var, int]
) -> tuple[Affine, int] | None:
    """Split an index into the least value over the inner loops, and how many values there are.

    The least value is in terms of the other variables. None if they can't be told apart.
    """
    form = normal(index, ranges)
    fixed: list[tuple[Expr, int]] = []
    moving: list[tuple[Expr, int]] = []
    for atom, coefficient in form.terms:
        nodes = list(walk(atom))
        names = {node for node in nodes if isinstance(node, Var)}
        if any(isinstance(node, Load) for node in nodes):
            return None
        if not names & inner.keys():
            fixed.append((atom, coefficient))
        elif names <= inner.keys():
            moving.append((atom, coefficient))
        else:
            return None
    interval = affine_bounds(Affine(tuple(moving), 0), inner)
    if interval is None:
        return None
    low, high = interval
    return Affine(tuple(fixed), form.const + low, form.dtype), high - low + 1


def _hull(parts: list[tuple[Affine, int] | None], full: int) -> tuple[Expr, int]:
    """Return one corner and extent that cover all parts; the full dimension if they differ."""
    whole = (IntImm(0), full)
    first = parts[0]
    if first is None:
        return whole
    low, high = 0, first[1]
    for part in parts[1:]:
        if part is None:
            return whole
        shift = part[0] - first[0]
        if shift.terms:
            return whole
        low, high = min(low, shift.const), max(high, shift.const + part[1])
    if high - low >= full:
        return whole
    corner = first[0] + Affine((), low, first[0].dtype)
    return corner.to_expr(), high - low


def _rewrite(stmt: Stmt, placements: Mapping[Buffer, _Placement]) -> Stmt:
    homes: dict[int, list[Buffer]] = {}
    for placement in placements.values():
        homes.setdefault(id(placement.at), []).append(placement.buffer)

    def visit_expr(expr: Expr) -> Expr:
        new = map_expr(expr, visit_expr)
        if isinstance(new, Load) and new.buffer in placements:
            place = placements[new.buffer]
            return Load(place.buffer, _relative(new.indices, place))
        return new

    def visit(node: Stmt) -> Stmt:
        if isinstance(node, Allocate):
            return visit(node.body)
        new = map_stmt(node, visit, visit_expr)
        if isinstance(new, Store) and new.buffer in placements:
            place = placements[new.buffer]
            return Store(place.buffer, _relative(new.indices, place), new.value)
        if isinstance(new, For) and id(node) in homes:
            return replace(new, body=_allocate(homes[id(node)], new.body))
        return new

    return _allocate(homes.get(id(None), []), visit(stmt))


def _relative(indices: tuple[Expr, ...], place: _Placement) -> tuple[Expr, ...]:
    return tuple(
        (normal(index) - normal(low)).to_expr()
        for index, low in zip(indices, place.corner, strict=True)
    )


def _allocate(buffers: list[Buffer], body: Stmt) -> Stmt:
    for buffer in buffers:
        body = Allocate(buffer, body)
    return body
