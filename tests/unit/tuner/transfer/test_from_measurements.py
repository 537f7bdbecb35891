"""A search that begins with measurements at hand."""

from __future__ import annotations

import math

from compiler.ops.spec import from_spec
from compiler.target.target import Target
from tests.unit.tuner.transfer.drawn import ONE_CORE, points, space_of
from tuner.candidate import default_candidate
from tuner.cost_model import stored_format
from tuner.cost_model.training import Measured, MeasuredTask
from tuner.task import Task
from tuner.transfer.from_measurements import warm_start_of
from tuner.transfer.seed import BEST_OF_EACH, Relative, refitted
from tuner.warm_start import COLD


def measured(spec: str, target: str = ONE_CORE) -> MeasuredTask:
    """Return a task whose candidates were the faster, the earlier they were drawn."""
    space = space_of(spec, target)
    found = [space.candidate(p) for p in points(space, 6, 2)]
    times = [Measured(candidate, 2.0**n) for n, candidate in enumerate(found)]
    failed = Measured(default_candidate(), math.inf)
    return MeasuredTask(Task(from_spec(spec), Target(target)), [failed, *times])


def test_what_is_at_hand_is_begun_with() -> None:
    task = Task(from_spec("matmul:96,96,96"), Target(ONE_CORE))
    near, far = measured("matmul:96,96,48"), measured("matmul:12,96,96")
    other, foreign = measured("softmax:64,64"), measured("matmul:96,96,96", "cpu -mcpu=znver4")
    found = warm_start_of(task, [other, foreign, far, near])
    assert found.cost_model is not None
    stored_format.check(found.cost_model)
    relatives = [
        Relative(each.task, tuple(m.candidate for m in each.measured[1 : BEST_OF_EACH + 1]))
        for each in (near, far)
    ]
    assert found.candidates == tuple(fit.candidate for fit in refitted(task, relatives))
    assert warm_start_of(task, [far, near, other]).candidates == found.candidates, "in any order"
    assert warm_start_of(task, [foreign]) == COLD


def test_the_same_task_s_own_best_comes_back() -> None:
    own = measured("matmul:96,96,48")
    found = warm_start_of(own.task, [own])
    assert found.candidates[:BEST_OF_EACH] == tuple(
        m.candidate for m in own.measured[1 : BEST_OF_EACH + 1]
    )
