"""Refuse programs that race.

Two iterations of a parallel or vectorized loop, or two threads, may touch one element at once, and
one of them writes: then what the program computes depends on who comes first. It is shown with
both accesses. These are no races:

- what each iteration has for itself: buffers that are allocated in it, or that are used in the
  loop only and read where the same iteration has written;
- what threads of one block touch with a barrier between. The compiler puts one around each block
  of the program, as schedules rely on; inside of a block the program says where threads wait;
- what threads of one block add up together, in a block that reduces over the loop they are bound
  to;
- threads of one block that write one and the same value.

An index or a condition that comes out of a buffer may be anything. Accesses whose indices do not
tell the iterations apart are tried point by point (see `compiler.ir.verify.races.points`): a
program that is too large to be tried in full is refused if a part of it races.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from compiler.ir.analysis.dependence import Touch, agree_on
from compiler.ir.core.nodes import Buffer, For, Load, Store, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.text.print_expr import show_expr
from compiler.ir.verify.races.accesses import Loop, SharedAccess, accesses_of, is_concurrent
from compiler.ir.verify.races.points import Instance, Question, find_race, is_known
from compiler.ir.verify.races.private import has_small_numbers, is_declared_inside, is_own
from compiler.ir.verify.verify_error import VerifyError

# Points that are looked at for one buffer below one loop, and for a program.
_MAX_POINTS = 1 << 19
_ALL_POINTS = 1 << 21

_SHARED = ("shared", "warp", "wmma")


def check_races(func: PrimFunc) -> None:
    """Check that nothing in a static program depends on the order of what has none.

    Raises:
        VerifyError: Showing two accesses that race.
    """
    if not any(is_concurrent(stmt) for stmt in walk_stmts(func.body)):
        return
    checker = _Checker(frozenset(func.buffers))
    for touching in _by_buffer(func).values():
        for group in _groups(touching):
            checker.check(group, touching)


def threads_communicate(func: PrimFunc) -> bool:
    """Tell whether threads of a block may touch what other threads of it have written.

    If they do not, they may run one after another, each from its beginning to its end.
    """
    if not any(isinstance(stmt, For) and stmt.thread is not None for stmt in walk_stmts(func.body)):
        return False
    for touching in _by_buffer(func).values():
        for group in _groups(touching):
            moving = [loop.var for loop in group.moving]
            if group.what != "threads" or not moving:
                continue
            accesses = [a for a in group.accesses if a.reduced.isdisjoint(moving)]
            if accesses and not _are_told_apart(accesses, moving, group.fixed):
                return True
    return False


def _by_buffer(func: PrimFunc) -> dict[Buffer, list[SharedAccess]]:
    by_buffer: dict[Buffer, list[SharedAccess]] = {}
    for access in accesses_of(func):
        by_buffer.setdefault(access.buffer, []).append(access)
    return by_buffer


@dataclass(frozen=True, slots=True)
class _Group:
    """The accesses to a buffer below something whose iterations have no order.

    Attributes:
        what: A name for it: "parallel", "vectorized", "blocks" or "threads".
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


class _Checker:
    """Checks groups of accesses, with so many points to try in all."""

    def __init__(self, params: Collection[Buffer]) -> None:
        self._params = params
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
        if _are_told_apart(accesses, moving, group.fixed):
            return
        if is_threads and not all(map(has_small_numbers, accesses)):
            return
        points = min(_MAX_POINTS, self._points_left)
        if buffer not in self._params and _is_private(buffer, group, touching, moving, points):
            self._points_left -= points // 8
            return
        self._points_left = max(self._points_left - points, 0)
        question = Question(accesses, moving, group.fixed, is_threads, is_threads, points)
        race = find_race(question)
        if race is not None:
            raise VerifyError(_message(group, *race), race[0].access.node)


def _is_private(
    buffer: Buffer,
    group: _Group,
    touching: Sequence[SharedAccess],
    moving: Collection[Var],
    points: int,
) -> bool:
    """Tell whether each iteration or thread has a buffer for itself."""
    is_shared = buffer.scope.startswith(_SHARED)
    if group.what == "threads" and is_shared:
        return False
    if group.what == "blocks" and is_shared:
        return True
    if group.what in ("blocks", "threads") and buffer.scope.startswith("local"):
        return True
    if all(is_declared_inside(access, moving) for access in group.accesses):
        return True
    return len(group.accesses) == len(touching) and is_own(touching, moving, points)


def _are_told_apart(
    accesses: Sequence[SharedAccess], moving: Sequence[Var], fixed: Collection[Var]
) -> bool:
    """Tell whether the indices of accesses say in which iteration or thread each happens."""
    touches = []
    for access in accesses:
        extents = {loop.var: loop.extent for loop in access.loops if loop.var not in fixed}
        touches.append(
            Touch(access.buffer, access.indices, access.is_store, extents, {v: v for v in moving})
        )
    return all(agree_on(touches[0], touch, moving) for touch in touches)


def _message(group: _Group, one: Instance, other: Instance) -> str:
    both = [_shown(instance) for instance in (one, other)]
    who = [
        ", ".join(f"{_name(loop)} = {i.point.get(loop.var, 0)}" for loop in group.moving)
        for i in (one, other)
    ]
    what = {
        "parallel": "iterations of a parallel loop",
        "vectorized": "iterations of a vectorized loop",
        "blocks": "blocks of threads",
        "threads": "threads",
    }[group.what]
    certain = all(_is_certain(instance.access) for instance in (one, other))
    return (
        f"{what} race: the one with {who[0]} {both[0]}, and the one with {who[1]} {both[1]}, "
        f"which {'is' if certain else 'may be'} the same element{_advice(group, one, other)}"
    )


def _name(loop: Loop) -> str:
    return loop.axis or loop.var.name


def _shown(instance: Instance) -> str:
    node = instance.access.node
    verb = "writes" if isinstance(node, Store) else "reads"
    return f"{verb} {show_expr(Load(node.buffer, node.indices))}"


def _is_certain(access: SharedAccess) -> bool:
    return all(is_known(expr, access) for expr in (*access.indices, *access.conditions))


def _advice(group: _Group, one: Instance, other: Instance) -> str:
    if group.what == "threads" and one.access.node is not other.access.node:
        return ': put T.tvm_storage_sync("shared") between them'
    if group.what in ("parallel", "vectorized"):
        return ": run the loop serially, or reduce over it in a block"
    return ""
