"""Random tensor expressions under random schedules of their stages compute what NumPy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopwright as lw
from compiler.ir.core.nodes import static_shape
from compiler.ir.interpret.evaluator.evaluate import evaluate, poisoned
from compiler.schedule.error import ScheduleError
from compiler.te_schedule.error import StageError
from loopwright import te
from tests.property.acceptance import Acceptance
from tests.property.generators.expressions import Grown, grown
from tests.property.generators.stages import RandomStages

TARGET = "cpu -num-cores=2"
accepted = Acceptance()


@accepted.at_least(0.6)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_scheduled_expressions_compute_what_numpy_does(data: st.DataObject) -> None:
    def choose(options: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(list(options)))

    shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
    inputs = [te.placeholder(data.draw(shapes), "float64", name=name) for name in ("A", "B")]
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(-4, 5, static_shape(tensor.buffer)).astype("float64") for tensor in inputs
    ]
    known = [Grown(tensor, array) for tensor, array in zip(inputs, arrays, strict=True)]
    known = grown(data.draw, known, data.draw(st.integers(1, 4)))
    if len(known) == len(inputs):
        return
    result = known[-1]
    stages = RandomStages(result.tensor, choose).draw()
    args = [*inputs, result.tensor]
    try:
        sch = stages.to_schedule(args)
    except (ScheduleError, StageError):
        accepted.count(False)
        return
    accepted.count(True)

    values = dict(zip(("A", "B"), arrays, strict=True))
    output = sch.func.buffers[-1]
    loops = lw.lower(stages, args, simple_mode=True)["main"]
    for program in (sch.func, loops):
        np.testing.assert_allclose(evaluate(program, values)[output.name], result.array, rtol=1e-9)
    built = poisoned(output)
    lw.build(stages, args, TARGET)(*arrays, built)
    np.testing.assert_allclose(built, result.array, rtol=1e-9)
    replayed = sch.trace.apply_to(te.create_prim_func(args)).func
    assert lw.structural_equal(replayed, sch.func)
