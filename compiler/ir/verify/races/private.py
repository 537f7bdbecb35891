"""Find the private buffers of an iteration or thread.

A buffer is private if it is used only below a loop, and every iteration reads only elements that it
has written itself. Lowering allocates it in the loop, wherever the program declares it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.values import value_at
from compiler.ir.core.nodes import Buffer, Expr, IntImm, Load, Var, static_shape
from compiler.ir.core.visit import walk
from compiler.ir.verify.races.points import Numbers, is_known, variables_of
from compiler.ir.verify.races.shared_access import Loop, SharedAccess

# The number of iterations to try, and how many of them are spread evenly over a long loop.
_MOST_ITERATIONS = 128
_SPREAD = 64
_LATEST = np.iinfo(np.int64).max


def is_declared_inside(access: SharedAccess, moving: Collection[Var]) -> bool:
    """Return whether the buffer of an access is allocated below all unordered loops."""
    depth = access.homes.get(access.buffer, -1)
    return depth >= _depth(access, moving)


def reads_only_own_writes(
    accesses: Sequence[SharedAccess],
    moving: Collection[Var],
    stored: Container[Buffer],
    most_points: int = 1 << 18,
) -> bool:
    """Return whether each iteration reads only what it has written before.

    Args:
        accesses: All accesses of the program to a buffer that is not a parameter.
        moving: The variables whose values identify iterations.
        stored: All buffers that the program stores.
        most_points: The limit on the points of all accesses in an iteration. The limit on elements
            of the buffer is eight times as large. Beyond them, elements count as written.
    """
    depth = _depth(accesses[0], moving)
    around = [tuple(loop.number for loop in access.loops[:depth]) for access in accesses]
    if depth == 0 or any(loops != around[0] for loops in around):
        return False
    outer = accesses[0].loops[:depth]
    accesses = _without_common_indices(accesses, {loop.var for loop in outer}, stored)
    cost = math.prod(static_shape(accesses[0].buffer)) + sum(
        _num_points(a, depth) for a in accesses
    )
    max_iterations = max(2, min(_MOST_ITERATIONS, 4 * most_points // cost))
    iterations = {
        tuple(iteration[loop.var] for loop in outer)
        for iteration in islice(_sampled_iterations(accesses, outer), max_iterations)
    }
    values = np.array(sorted(iterations), np.int64).T
    sampled = dict(zip((loop.var for loop in outer), values, strict=True))
    return _read_what_they_wrote(accesses, sampled, most_points)


def _without_common_indices(
    accesses: Sequence[SharedAccess], outer: Collection[Var], stored: Container[Buffer]
) -> list[SharedAccess]:
    """Return the accesses of an iteration relative to an unknown index that all of them have.

    Example: if the iteration writes B[ids[i], 0:4] and reads B[ids[i], j], and `ids` is an input,
    then it reads what it has written, whatever ids[i] is.
    """
    first = accesses[0]
    common = {
        dim
        for dim, index in enumerate(first.indices)
        if not is_known(index, first)
        and all(access.indices[dim] == index for access in accesses)
        and variables_of([index]).issubset(outer)
        and not any(isinstance(node, Load) and node.buffer in stored for node in walk(index))
    }
    zero = IntImm(0)
    return [
        replace(a, indices=tuple(zero if d in common else i for d, i in enumerate(a.indices)))
        for a in accesses
    ]


def _num_points(access: SharedAccess, depth: int) -> int:
    """Return the number of points of an access in one iteration of the loops above a depth."""
    used = variables_of([*access.indices, *access.conditions])
    return math.prod(loop.extent for loop in access.loops[depth:] if loop.var in used)


def _sampled_iterations(
    accesses: Sequence[SharedAccess], outer: Sequence[Loop]
) -> Iterator[dict[Var, int]]:
    """Yield iterations of some loops to try, first those in which accesses are likely to differ."""
    first = {loop.var: 0 for loop in outer}
    yield first
    yield {loop.var: loop.extent - 1 for loop in outer}
    exprs = [expr for a in accesses for expr in (*a.indices, *a.conditions)]
    used = variables_of(exprs)
    literals = {n.value for e in exprs for n in walk(e) if isinstance(n, IntImm)}
    for loop in outer:
        if loop.var in used:
            near = {value + step for value in literals for step in (-1, 0, 1)}
            spread = range(0, loop.extent, max(1, loop.extent // _SPREAD))
            for value in sorted(value for value in near if 0 <= value < loop.extent):
                yield {**first, loop.var: value}
            for value in spread:
                yield {**first, loop.var: value}


def _depth(access: SharedAccess, moving: Collection[Var]) -> int:
    """Return the number of loops around the part below all unordered loops."""
    inside = [n for n, loop in enumerate(access.loops, 1) if loop.var in moving]
    return inside[-1] if len(inside) == len(moving) else len(access.loops) + 1


def _read_what_they_wrote(
    accesses: Sequence[SharedAccess], iterations: Mapping[Var, Numbers], most_points: int
) -> bool:
    """Return whether iterations read only what they wrote; true if one has too many points."""
    shape = static_shape(accesses[0].buffer)
    if math.prod(shape) > 8 * most_points or not all(map(has_small_numbers, accesses)):
        return True
    max_points = most_points // len(accesses)
    count = len(next(iter(iterations.values())))
    # NumPy updates no element of an array without dimensions, so there is one more, of one element.
    first = np.full((count, *shape, 1), _LATEST)
    for access in accesses:
        exprs = [*access.indices, *access.conditions]
        if access.is_store and all(is_known(expr, access) for expr in exprs):
            touched = _touched(access, exprs, iterations, max_points)
            if touched is None:
                return True
            np.minimum.at(first, *touched)
    for access in accesses:
        if access.is_store:
            continue
        is_exact = [is_known(index, access) for index in access.indices]
        exprs = [e for e in (*access.indices, *access.conditions) if is_known(e, access)]
        touched = _touched(access, exprs, iterations, max_points)
        if touched is None:
            return True
        # A read at an unknown index may be of any element, so also of the last one written.
        any_of = tuple(d for d, exact in enumerate(is_exact, 1) if not exact)
        written = first.max(axis=any_of, keepdims=True) if any_of else first
        if (written[touched[0]] >= touched[1]).any():
            return False
    return True


def has_small_numbers(access: SharedAccess) -> bool:
    """Return whether the order of an access is small enough for 64-bit arithmetic."""
    ranges = {loop.var: (0, loop.extent - 1) for loop in access.loops}
    ends = [bounds(expr, ranges) for expr in (access.time, access.epoch)]
    return all(interval is not None and interval[1] < _LATEST // 2 for interval in ends)


def _touched(
    access: SharedAccess,
    exprs: Sequence[Expr],
    iterations: Mapping[Var, Numbers],
    max_points: int,
) -> tuple[tuple[Numbers, ...], Numbers] | None:
    """Return the elements that an access touches in iterations, with the time of the first touch.

    Args:
        access: The access; an unknown index is taken to be 0.
        exprs: The indices and conditions that are known.
        iterations: The values of the unordered loops and of those around them, in each iteration.
        max_points: The limit on points of an iteration; None is returned if there are more.

    Returns:
        The number of the iteration and the indices of each touched element, and the times.
    """
    used = variables_of(exprs)
    inner = [loop for loop in access.loops if loop.var not in iterations]
    sizes = [loop.extent if loop.var in used else 1 for loop in inner]
    if math.prod(sizes) > max_points:
        return None
    count = len(next(iter(iterations.values())))
    number, *axes = np.meshgrid(*map(np.arange, (count, *sizes)), indexing="ij", sparse=True)
    at = {var: values[number] for var, values in iterations.items()}
    at |= dict(zip((loop.var for loop in inner), axes, strict=True))
    shape = (count, *sizes)
    holds = np.ones(shape, bool)
    for condition in access.conditions:
        if condition in exprs:
            holds = holds & value_at(condition, at).astype(bool)
    zero = np.zeros(1, int)
    numbers = [value_at(i, at) if i in exprs else zero for i in access.indices]
    when = value_at(access.time, at)
    columns = [np.broadcast_to(n, shape)[holds] for n in (number, *numbers, zero, when)]
    return tuple(columns[:-1]), columns[-1]
