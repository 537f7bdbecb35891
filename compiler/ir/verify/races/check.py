"""Refuse programs that race.

In a race, two iterations of a parallel or vectorized loop, or two threads, may access one element,
and one of them writes. The result then depends on their order. The error shows both accesses. These
are no races:

- accesses to private buffers: those that an iteration allocates, or that are used only inside the
  loop and read only after the same iteration has written them;
- accesses of threads of one block with a barrier between them. The compiler puts a barrier around
  each block of the program, as schedules require; inside a block, the program contains them;
- reductions of threads of one block by a known reducer (`compiler.ir.analysis.reducer`), in a block
  that reduces over the loop they are bound to;
- stores of one and the same value by threads of one block.

An index or a condition that is loaded from a buffer may have any value. Accesses whose indices do
not separate the iterations are tried point by point (`compiler.ir.verify.races.points`). A program
that is too large for all points is refused if the tried part races.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from compiler.ir.analysis.dependence import Touch, agree_on
from compiler.ir.analysis.specialize import with_limits, with_values
from compiler.ir.analysis.symbols import sampled_values, symbolic_vars
from compiler.ir.core.nodes import Buffer, For, Load, Store, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.scopes import is_private_scope, is_shared_scope
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.text.print_expr import show_expr
from compiler.ir.verify.races.accesses import accesses_of
from compiler.ir.verify.races.epochs import split_by_epoch
from compiler.ir.verify.races.points import Instance, Question, find_race, is_known
from compiler.ir.verify.races.private import (
    has_small_numbers,
    is_declared_inside,
    reads_only_own_writes,
)
from compiler.ir.verify.races.shared_access import Loop, SharedAccess, is_concurrent
from compiler.ir.verify.verify_error import VerifyError

# The limits on points to try: for one buffer below one loop, and for a program.
_MAX_POINTS = 1 << 19
_ALL_POINTS = 1 << 21


def check_races(func: PrimFunc) -> None:
    """Check that the result of a program does not depend on an undefined order.

    If the indices of a symbolic program do not separate the iterations, the program is checked at
    some values of its variables (`sampled_values`).

    Raises:
        VerifyError: Showing two accesses that race.
    """
    if not any(is_concurrent(stmt) for stmt in walk_stmts(func.body)):
        return
    if not symbolic_vars(func):
        _check_static(func)
    elif not _is_separated(with_limits(func)):
        for values in sampled_values(func):
            _check_static(with_values(func, values))


def _check_static(func: PrimFunc) -> None:
    by_buffer = _by_buffer(func)
    checker = _RaceChecker(frozenset(func.buffers), by_buffer.keys())
    for touching in by_buffer.values():
        for group in _groups(touching):
            checker.check(group, touching)


def _is_separated(func: PrimFunc) -> bool:
    """Return whether the indices of all accesses separate the iterations of each loop."""
    for touching in _by_buffer(func).values():
        for group in _groups(touching):
            moving = [loop.var for loop in group.moving]
            is_stored = any(access.is_store for access in group.accesses)
            if is_stored and moving and not _are_disjoint(group.accesses, moving, group.fixed):
                return False
    return True


def threads_communicate(func: PrimFunc) -> bool:
    """Return whether threads of a block may access elements that other threads have written.

    If not, they may run one after another, each from its beginning to its end.
    """
    if not any(isinstance(stmt, For) and stmt.thread is not None for stmt in walk_stmts(func.body)):
        return False
    for touching in _by_buffer(func).values():
        for group in _groups(touching):
            moving = [loop.var for loop in group.moving]
            if group.what != "threads" or not moving:
                continue
            accesses = [a for a in group.accesses if a.reduced.isdisjoint(moving)]
            if accesses and not _are_disjoint(accesses, moving, group.fixed):
                return True
    return False


def _by_buffer(func: PrimFunc) -> dict[Buffer, list[SharedAccess]]:
    by_buffer: dict[Buffer, list[SharedAccess]] = {}
    for access in accesses_of(func):
        by_buffer.setdefault(access.buffer, []).append(access)
    return by_buffer


@dataclass(frozen=True, slots=True)
class _Group:
    """The accesses to a buffer below a construct whose iterations have no order.

    Attributes:
        what: The construct: "parallel", "vectorized", "blocks" or "threads".
        accesses: The accesses.
        moving: The loops that have no order.
        fixed: The variables of the loops around.
    """

    what: str
    accesses: Sequence[SharedAccess]
    moving: Sequence[Loop]
    fixed: frozenset[Var]


def _groups(accesses: Sequence[SharedAccess]) -> Iterator[_Group]:
    loops: dict[int, tuple[Loop, frozenset[Var], list[SharedAccess]]] = {}
    kernels: dict[int, tuple[frozenset[Var], list[SharedAccess]]] = {}
    for access in accesses:
        around: frozenset[Var] = frozenset()
        kernel = _kernel(access)
        for loop in access.loops:
            if loop.number == kernel:
                kernels.setdefault(loop.number, (around, []))[1].append(access)
            if loop.kind in ("parallel", "vectorized") and loop.extent > 1:
                loops.setdefault(loop.number, (loop, around, []))[2].append(access)
            around |= {loop.var}
    for loop, around, below in loops.values():
        yield _Group(loop.kind, below, [loop], around)
    for around, below in kernels.values():
        axes = {loop.var: loop for a in below for loop in a.loops if loop.axis and loop.extent > 1}
        blocks = [loop for loop in axes.values() if str(loop.axis).startswith("blockIdx")]
        threads = [loop for loop in axes.values() if loop not in blocks]
        yield _Group("blocks", below, blocks, around)
        yield _Group("threads", below, threads, around | {loop.var for loop in blocks})


def _kernel(access: SharedAccess) -> int | None:
    """Return the number of the loop that starts the threads of an access."""
    return next((loop.number for loop in access.loops if loop.axis is not None), None)


class _RaceChecker:
    """Checks groups of accesses, within a total limit of points to try."""

    def __init__(self, params: Collection[Buffer], stored: Collection[Buffer]) -> None:
        self._params = params
        self._stored = stored
        self._points_left = _ALL_POINTS

    def check(self, group: _Group, touching: Sequence[SharedAccess]) -> None:
        """Refuse a group in which two accesses race.

        Args:
            group: Accesses to one buffer.
            touching: All accesses to it.
        """
        buffer = touching[0].buffer
        moving = [loop.var for loop in group.moving]
        accesses = group.accesses
        is_threads = group.what == "threads"
        if is_threads:
            accesses = [a for a in accesses if a.reduced.isdisjoint(moving)]
        if not moving or not any(access.is_store for access in accesses):
            return
        if _are_disjoint(accesses, moving, group.fixed):
            return
        if is_threads and not all(map(has_small_numbers, accesses)):
            return
        points = min(_MAX_POINTS, self._points_left)
        if buffer not in self._params and self._is_private(group, touching, moving, points):
            self._points_left -= points // 8
            return
        parts = split_by_epoch(accesses, group.fixed) if is_threads else [accesses]
        for part in parts:
            if any(a.is_store for a in part) and not _are_disjoint(part, moving, group.fixed):
                self._try_points(group, part)

    def _is_private(
        self,
        group: _Group,
        touching: Sequence[SharedAccess],
        moving: Collection[Var],
        points: int,
    ) -> bool:
        """Return whether each iteration or thread has its own copy of the touched buffer."""
        scope = touching[0].buffer.scope
        if group.what == "threads" and is_shared_scope(scope):
            return False
        if group.what == "blocks" and is_shared_scope(scope):
            return True
        if group.what in ("blocks", "threads") and is_private_scope(scope):
            return True
        if all(is_declared_inside(access, moving) for access in group.accesses):
            return True
        return len(group.accesses) == len(touching) and reads_only_own_writes(
            touching, moving, self._stored, points
        )

    def _try_points(self, group: _Group, accesses: Sequence[SharedAccess]) -> None:
        """Refuse a group if two of its accesses race at the points that are tried."""
        points = min(_MAX_POINTS, self._points_left)
        self._points_left = max(self._points_left - points, 0)
        is_threads = group.what == "threads"
        moving = [loop.var for loop in group.moving]
        race = find_race(Question(accesses, moving, group.fixed, is_threads, is_threads, points))
        if race is not None:
            raise VerifyError(_message(group, *race), race[0].access.node, "race")


def _are_disjoint(
    accesses: Sequence[SharedAccess], moving: Sequence[Var], fixed: Collection[Var]
) -> bool:
    """Return whether the indices of accesses determine the iteration or thread of each."""
    names = {var: var for var in moving}
    touches = []
    for access in accesses:
        extents = {loop.var: loop.extent for loop in access.loops}
        touch = Touch(
            access.buffer,
            access.indices,
            access.is_store,
            extents,
            names,
            conditions=access.conditions,
        )
        touches.append(touch.sharing({var: n for var, n in extents.items() if var in fixed}))
    return agree_on(touches, moving)


def _message(group: _Group, first: Instance, second: Instance) -> str:
    both = [_shown(instance) for instance in (first, second)]
    who = [
        ", ".join(f"{_name(loop)} = {i.point.get(loop.var, 0)}" for loop in group.moving)
        for i in (first, second)
    ]
    subject = {
        "parallel": "iterations of a parallel loop",
        "vectorized": "iterations of a vectorized loop",
        "blocks": "blocks of threads",
        "threads": "threads",
    }[group.what]
    certain = all(_is_certain(instance.access) for instance in (first, second))
    return (
        f"{subject} race: the one with {who[0]} {both[0]}, and the one with {who[1]} {both[1]}, "
        f"which {'is' if certain else 'may be'} the same element{_advice(group, first, second)}"
    )


def _name(loop: Loop) -> str:
    return loop.axis or loop.var.name


def _shown(instance: Instance) -> str:
    node = instance.access.node
    verb = "writes" if isinstance(node, Store) else "reads"
    return f"{verb} {show_expr(Load(node.buffer, node.indices))}"


def _is_certain(access: SharedAccess) -> bool:
    return all(is_known(expr, access) for expr in (*access.indices, *access.conditions))


def _advice(group: _Group, first: Instance, second: Instance) -> str:
    one, other = first.access.node, second.access.node
    if (
        group.what == "threads"
        and isinstance(one, Store)
        and any(n is other for n in walk(one.value))
    ):
        return ": reduce over the loop in a block, by a known reducer"
    if group.what == "threads" and one is not other:
        return ': put T.tvm_storage_sync("shared") between them'
    if group.what in ("parallel", "vectorized"):
        return ": run the loop serially, or reduce over it in a block"
    return ""
