"""Distribute loops over their statements, so that each can be scheduled separately.

    for i in range(n):                for i in range(n):
        B[i] = f(A[i])        ->          B[i] = f(A[i])
        C[i] = g(B[i - 1])            for i in range(n):
                                          C[i] = g(B[i - 1])

Statements stay in one loop if a later one may touch an element before an earlier one does, in
another iteration (Kennedy and McKinley, "Loop distribution with arbitrary control flow", SC 1990).
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.core.nodes import For
from compiler.schedule.rewrite.plain_loops.dependences import Dependences, iterations_between
from compiler.schedule.rewrite.plain_loops.iterators import is_repeated
from compiler.schedule.rewrite.plain_loops.statements import (
    LoopBody,
    Part,
    Statement,
    statements_of,
)


def distribute(parts: Sequence[Part], dependences: Dependences) -> list[Part]:
    """Return parts in which a loop has several parts only if it can't be distributed.

    A statement in loops of its own stands for these loops, too.

    Raises:
        UnderivableError: If there are too many accesses to compare.
    """
    distributed: list[Part] = []
    for part in parts:
        if isinstance(part, Statement):
            distributed.append(part)
        else:
            distributed += _distribute_loop(part, dependences)
    return distributed


def _distribute_loop(body: LoopBody, dependences: Dependences) -> list[Part]:
    groups = [[part] for part in distribute(body.parts, dependences)]
    number = 1
    while number < len(groups):
        earlier = range(number)
        bound = [
            n
            for n in earlier
            if not _may_separate(groups[n], groups[number], body.loop, dependences)
        ]
        if not bound:
            number += 1
            continue
        # All between them stay in the loop, too.
        joined = [part for group in groups[bound[0] : number + 1] for part in group]
        groups[bound[0] : number + 1] = [joined]
        number = bound[0] + 1
    return [
        group[0]
        if len(group) == 1 and isinstance(group[0], Statement)
        else LoopBody(body.loop, tuple(group))
        for group in groups
    ]


def _may_separate(
    first: Sequence[Part], second: Sequence[Part], loop: For, dependences: Dependences
) -> bool:
    """Return whether all iterations of some parts may run before those of later parts."""
    return not is_repeated(loop) or all(
        _never_before(earlier, later, loop, dependences)
        for a in first
        for b in second
        for earlier in statements_of(a)
        for later in statements_of(b)
    )


def _never_before(
    earlier: Statement, later: Statement, loop: For, dependences: Dependences
) -> bool:
    """Return whether a later statement touches no element in an iteration before an earlier one."""
    depth = earlier.loops.index(loop)
    for first, second in dependences.conflicts(earlier, later, depth):
        distance = iterations_between(first, second, loop.var)
        is_later = distance is not None and distance >= 0
        if not is_later and not dependences.is_same_iteration(first, second, loop):
            return False
    return True
