"""The text of a trace, which is put together, against that of its JSON object."""

from __future__ import annotations

import json
from hashlib import sha256

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.schedule.trace.trace import Trace
from compiler.schedule.trace.trace_json import decided_numbers
from compiler.target.target import Target
from tests.unit.compiler.schedule.trace.tiled import tiled
from tuner.search.random import draw_points
from tuner.space.generate import design_space
from tuner.task import Task


def check(trace: Trace) -> None:
    written = trace.to_json()
    text = json.dumps(written, sort_keys=True, separators=(",", ":"))
    assert trace.to_text() == text
    assert trace.key() == sha256(text.encode()).hexdigest()
    assert trace.decided_numbers() == decided_numbers(written)
    assert Trace.from_json(json.loads(text)) == trace


@pytest.mark.parametrize("func", [ops.matmul(32, 24, 16), ops.softmax(8, 64)])
@pytest.mark.parametrize("target", ["cpu -mcpu=znver3 -num-cores=2", "cuda -gpu=a100"])
def test_the_text_of_candidates_is_that_of_their_objects(func: PrimFunc, target: str) -> None:
    space = design_space(Task(func, Target(target)))
    points = draw_points(space, 24, set(), np.random.default_rng(0))
    assert len(points) == 24
    for point in points:
        check(space.candidate(point).trace)


def test_a_trace_with_other_decisions_has_another_text() -> None:
    trace = tiled().trace
    check(trace)
    decisions = list(trace.decisions.values())
    decisions[0] = tuple(reversed(decisions[0])) if isinstance(decisions[0], tuple) else 0
    other = trace.with_decisions(decisions)
    check(other)
    assert other.to_text() != trace.to_text()
    check(other.with_decisions(trace.decisions.values()))
    assert other.with_decisions(trace.decisions.values()).key() == trace.key()


def test_an_empty_trace_has_a_text() -> None:
    check(Trace())
