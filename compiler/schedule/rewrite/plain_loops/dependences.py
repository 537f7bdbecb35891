"""The dependences between the iterations of loops, of one statement or of two.

A proof on the form of indices is tried first. If it fails, all points of the loops are, as long as
there are few. Both are limited, because programs come from strangers.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.ir.analysis.conflicts import may_conflict
from compiler.ir.analysis.dependence import Touch, agree_on, touches_of
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import For, Var
from compiler.schedule.rewrite.plain_loops.statements import Statement, UnderivableError

# Chosen bounds: a comparison takes about 0.1 ms, a trial of all points up to 50 ms. Together they
# stay below the time that the verifier takes for the largest programs.
_MOST_COMPARISONS = 20_000
_MOST_TRIALS = 40


class Dependences:
    """Compares the accesses of statements, within limits for a whole program."""

    def __init__(self) -> None:
        self._comparisons = 0
        self._trials = 0

    def conflicts(
        self, first: Statement, second: Statement, depth: int
    ) -> Iterator[tuple[Touch, Touch]]:
        """Yield the pairs of accesses to one buffer, one of which writes.

        Args:
            first: A statement, whose accesses come first in a pair.
            second: The same, or another one.
            depth: The number of loops around both that are in one iteration.

        Raises:
            UnderivableError: If there are too many in the whole program.
        """
        shared = first.written | second.written
        others = [touch for touch in accesses_of(second, depth) if touch.buffer in shared]
        for one in accesses_of(first, depth):
            for other in others if one.buffer in shared else ():
                if one.buffer == other.buffer and (one.is_store or other.is_store):
                    self._comparisons += 1
                    if self._comparisons > _MOST_COMPARISONS:
                        raise UnderivableError("it has too many accesses to compare", second.body)
                    yield one, other

    def is_same_iteration(self, first: Touch, second: Touch, loop: For) -> bool:
        """Return whether two accesses to one element are in the same iteration of a loop."""
        if loop.var in _same_iterations(first, second):
            return True
        self._trials += 1
        return self._trials <= _MOST_TRIALS and not may_conflict(first, second, [loop.var])


def accesses_of(statement: Statement, depth: int) -> list[Touch]:
    """Return the different accesses of a statement, if the loops from a depth on move."""
    moving = {loop.var: extent_or_unknown(loop.extent) for loop in statement.loops[depth:]}
    names: dict[Var, Var] = {var: var for var in moving}
    different: dict[object, Touch] = {}
    for part in (statement.init, statement.body):
        if part is not None:
            for touch in touches_of(part, moving, names, conditions=statement.conditions):
                key = (touch.buffer, touch.indices, touch.is_store, touch.conditions)
                different.setdefault(key, touch)
    return list(different.values())


def iterations_between(first: Touch, second: Touch, var: Var) -> int | None:
    """Return how many iterations after `first` `second` touches the same element.

    That is the distance of the dependence (Allen and Kennedy, "Automatic translation of FORTRAN
    programs to vector form", TOPLAS 1987). None if it is unknown, or varies.
    """
    extents = {**first.extents, **second.extents}
    for before, after in zip(first.indices, second.indices, strict=True):
        a, b = normal(before, extents), normal(after, extents)
        scale = a.coefficient(var)
        alone = [form.terms == ((var, scale),) for form in (a, b)]
        if scale and all(alone):
            iterations, rest = divmod(a.const - b.const, scale)
            return 0 if rest else iterations  # with a rest, it is never the same element
    return None


def _same_iterations(first: Touch, second: Touch) -> set[Var]:
    """Return the loops of which two accesses to one element are in the same iteration.

    What follows of one index may decide another one: that of `A[i, i + j]` gives `i`, and so `j`.
    """
    same: set[Var] = set()
    while True:
        common = {var: extent for var, extent in first.extents.items() if var in same}
        pair = first.sharing(common), second.sharing(common)
        more = {var for var in pair[0].extents.keys() & pair[1].extents if agree_on(pair, [var])}
        if not more:
            return same
        same |= more
