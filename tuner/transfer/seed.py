"""Begin a search with the best schedules of its relatives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from tuner.candidate import Candidate
from tuner.space.design_space import Point, SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.transfer.refit import RefitError, refit

NUM_RELATIVES = 4
"""Related tasks whose schedules are refitted: farther shapes fit worse. Chosen."""
BEST_OF_EACH = 4
"""Schedules of a relative, the fastest that were measured: several, because the fastest may not
fit. Chosen.
"""
NUM_CANDIDATES = 12
"""Refitted schedules in a first round of 16; the others are the default and the search's own.
Chosen.
"""


@dataclass(frozen=True)
class Relative:
    """A task of the same operator that was tuned, with its best candidates, the fastest first."""

    task: Task
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Refitted:
    """A candidate of a task, and what it is made from: a relative, and one of its candidates."""

    candidate: Candidate
    relative: int
    rank: int


def refitted(
    task: Task,
    relatives: Sequence[Relative],
    *,
    rules: Collection[str] | None = None,
    limit: int = NUM_CANDIDATES,
) -> list[Refitted]:
    """Return candidates of a task's space that are like the best of its relatives.

    The best of each relative come first, the nearest relative's before others'; all are different.
    What does not fit is left out.

    Args:
        relatives: The nearest first.
        rules: The names of the rules that the job may use; see `design_space`.
    """
    if not relatives:
        return []
    space = design_space(task, rules)
    fits_by_relative = [
        _of_one(number, relative, design_space(relative.task, rules), space)
        for number, relative in enumerate(relatives)
    ]
    by_point: dict[Point, Refitted] = {}
    turns = chain.from_iterable(zip_longest(*fits_by_relative))
    for point, source, rank in (fit for fit in turns if fit is not None):
        by_point.setdefault(point, Refitted(space.candidate(point), source, rank))
        if len(by_point) == limit:
            break
    return list(by_point.values())


def _of_one(
    number: int, relative: Relative, source: SketchSpace, space: SketchSpace
) -> Iterator[tuple[Point, int, int]]:
    """Yield what a relative's candidates become, with the relative and the candidate's rank."""
    for rank, candidate in enumerate(relative.candidates):
        point = source.point(candidate)
        if point is None:
            continue  # the default schedule, or one of a space that an older version made
        for keep_whole in (True, False):
            try:
                yield refit(point, source, space, keep_whole=keep_whole), number, rank
            except RefitError:
                break
