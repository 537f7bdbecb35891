"""The accesses of a lowered program to its buffers, and the box that one run of a scope touches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds, bounds
from compiler.ir.arith.simplify import normal
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.nodes import (
    Buffer,
    Expr,
    For,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.visit import children, is_stmt, walk
from compiler.passes.common.thread_loops import is_thread

Path: TypeAlias = tuple[Stmt, ...]
RampForm: TypeAlias = tuple[Affine, int]
"""An index in linear form, and the distance from its first lane to its last."""
Span: TypeAlias = tuple[Affine, int]
"""The least value of an index, and the number of values."""


@dataclass(frozen=True)
class LoweredAccess:
    """A load or store of a buffer: its indices, and its path from the root down.

    If the buffer is shared, the access counts for all threads at once.
    """

    path: Path
    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    is_shared: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the buffer."""
        return static_shape(self.buffer)

    def box(self, depth: int) -> list[Span | None]:
        """Return, for each dimension, the corner in terms of outer loops and the extent.

        A dimension is None if unknown, or if it depends on a name that is bound inside the scope at
        `depth`.
        """
        cached = self._boxes.get(depth)
        if cached is None:
            cached = self._boxes[depth] = self._box(depth)
        return cached

    @cached_property
    def _boxes(self) -> dict[int, list[Span | None]]:
        """Cached boxes by depth."""
        return {}

    def _box(self, depth: int) -> list[Span | None]:
        inside = self.path[depth:]
        inner = {n.var: self.extents[n.var] for n in inside if isinstance(n, For)}
        if self.is_shared:
            for node in self.path[:depth]:
                if isinstance(node, For) and is_thread(node):
                    inner[node.var] = self.extents[node.var]
        hidden = {node.var for node in inside if isinstance(node, Let)}
        return [split_form(form, inner, hidden) for form in self.forms]

    @cached_property
    def extents(self) -> dict[Var, int]:
        """Return the extents of the loops around the access."""
        return loop_extents(self.path)

    @cached_property
    def forms(self) -> list[RampForm | None]:
        """Return the indices in linear form."""
        return [ramp_form(index, self.extents) for index in self.indices]


def collect_accesses(
    stmt: Stmt, buffers: Container[Buffer], shared: Container[Buffer] = ()
) -> dict[Buffer, list[LoweredAccess]]:
    """Return every load and store of the given buffers, in program order."""
    by_buffer: defaultdict[Buffer, list[LoweredAccess]] = defaultdict(list)

    def visit_expr(expr: Expr, path: Path) -> None:
        for node in walk(expr):
            if isinstance(node, Load) and node.buffer in buffers:
                access = LoweredAccess(
                    path, node.buffer, node.indices, False, node.buffer in shared
                )
                by_buffer[node.buffer].append(access)

    def visit(node: Stmt, path: Path) -> None:
        path = (*path, node)
        for child in children(node):
            if is_stmt(child):
                visit(child, path)  # type: ignore[arg-type]
            else:
                visit_expr(child, path)  # type: ignore[arg-type]
        if isinstance(node, Store) and node.buffer in buffers:
            access = LoweredAccess(path, node.buffer, node.indices, True, node.buffer in shared)
            by_buffer[node.buffer].append(access)

    visit(stmt, ())
    return by_buffer


def common_path(accesses: list[LoweredAccess]) -> Path:
    """Return the nodes that enclose all of the given accesses, from the root down."""
    common = accesses[0].path
    for access in accesses[1:]:
        length = 0
        for a, b in zip(common, access.path, strict=False):
            if a is not b:
                break
            length += 1
        common = common[:length]
    return common


def loop_extents(path: Path) -> dict[Var, int]:
    """Return the extents of the loops of a path; the largest value of an extent that varies."""
    extents: dict[Var, int] = {}
    for node in path:
        if isinstance(node, For):
            if isinstance(node.extent, IntImm):
                extents[node.var] = node.extent.value
                continue
            interval = bounds(node.extent, extents)
            if interval is not None:
                extents[node.var] = interval[1]
    return extents


def ramp_form(index: Expr, ranges: Mapping[Var, int]) -> RampForm | None:
    """Return the linear form of an index, and the distance from its first lane to its last."""
    ramp = as_ramp(index)
    if ramp is None:
        return None
    return normal(ramp.base, ranges), ramp.stride * (ramp.lanes - 1)


def split_form(
    ramp: RampForm | None, inner: Mapping[Var, int], hidden: Container[Var] = ()
) -> Span | None:
    """Split an index into its least value over the inner loops and its number of values.

    The least value is in terms of the other variables. Return None if the two can't be separated,
    or if one of the variables is hidden.
    """
    if ramp is None:
        return None
    form, reach = ramp
    fixed: list[tuple[Expr, int]] = []
    moving: list[tuple[Expr, int]] = []
    for atom, coefficient in form.terms:
        if isinstance(atom, Var):
            if atom in hidden:
                return None
            (moving if atom in inner else fixed).append((atom, coefficient))
            continue
        nodes = list(walk(atom))
        names = {node for node in nodes if isinstance(node, Var)}
        if any(isinstance(node, Load) or node in hidden for node in nodes):
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
    low, high = interval[0] + min(reach, 0), interval[1] + max(reach, 0)
    return Affine(tuple(fixed), form.const + low, form.dtype), high - low + 1
