"""Softmaxes over blocks of any sizes are those that NumPy computes in float64."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import verify
from compiler.schedule.error import ScheduleError
from tests.property.acceptance import Acceptance
from tests.unit.compiler.schedule.primitives.blocks.test_online_softmax import (
    LEAST,
    MINUS_INF,
    attended,
    text,
)
from tests.unit.compiler.schedule.schedule_asserts import scheduled

blocked = Acceptance()


@blocked.at_least(0.3)
@settings(max_examples=15)
@given(
    rows=st.integers(1, 4),
    keys=st.integers(1, 9),
    block=st.integers(1, 5),
    scale=st.sampled_from([1e-2, 1.0, 1e4]),
    start=st.sampled_from([LEAST, MINUS_INF]),
    order=st.permutations(range(3)),
    data=st.data(),
)
def test_blocks_of_any_sizes(
    *,
    rows: int,
    keys: int,
    block: int,
    scale: float,
    start: str,
    order: list[int],
    data: st.DataObject,
) -> None:
    schedule = scheduled(text(rows, keys, 2, dtype="float64", start=start))
    i, c, j = schedule.get_loops("O")
    j_0, j_1 = schedule.split(j, [None, block])
    schedule.reorder(*([i, c, j_0][n] for n in order), j_1)
    loop = data.draw(st.sampled_from([j_0, j_0, j_1, i]))
    try:
        schedule.online_softmax("O", loop)
    except ScheduleError:
        blocked.count(is_accepted=False)
        return
    blocked.count(is_accepted=True)
    verify(schedule.func)
    rng = np.random.default_rng(rows * keys + block)
    scores, values = rng.standard_normal((rows, keys)) * scale, rng.standard_normal((keys, 2))
    seen = data.draw(st.integers(0, keys - 1))  # each row sees one key at least
    masked = rng.random((rows, keys)) < 0.5
    masked[:, seen] = False
    scores[masked] = -np.inf
    result = evaluate(schedule.func, {"S": scores, "V": values})["O"]
    np.testing.assert_allclose(result, attended(scores, values), rtol=1e-9, atol=1e-12)
