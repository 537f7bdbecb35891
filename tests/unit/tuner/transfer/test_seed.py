"""Candidates of the nearest relatives."""

from __future__ import annotations

from compiler.ops.spec import from_spec
from compiler.target.target import Target
from tests.unit.tuner.transfer.drawn import ONE_CORE, points, space_of
from tuner.candidate import default_candidate
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.transfer.seed import NUM_CANDIDATES, Relative, refitted


def relative(spec: str, num: int) -> Relative:
    space = space_of(spec, ONE_CORE)
    found = [space.candidate(p) for p in points(space, num, 1)]
    return Relative(Task(from_spec(spec), Target(ONE_CORE)), (default_candidate(), *found))


def test_a_search_begins_with_the_best_of_the_nearest() -> None:
    relatives = [relative("matmul:96,96,96", 3), relative("matmul:48,96,96", 3)]
    task = Task(from_spec("matmul:96,96,192"), Target(ONE_CORE))
    found = refitted(task, relatives)
    assert len(found) == NUM_CANDIDATES
    assert len({f.candidate.key for f in found}) == len(found)
    assert (found[0].relative, found[0].rank) == (0, 1), "the default schedule is left out"
    space = design_space(task)
    assert all(space.point(f.candidate) is not None for f in found)
    for fit in found:
        fit.candidate.trace.apply_to(task.func)


def test_what_has_no_relatives_begins_with_nothing() -> None:
    assert refitted(Task(from_spec("matmul:8,8,8"), Target(ONE_CORE)), []) == []
