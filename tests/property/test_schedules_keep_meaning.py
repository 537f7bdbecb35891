"""Random programs under random legal traces compute what the unscheduled program computes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.driver import build
from compiler.ir.evaluate import evaluate, poisoned
from compiler.ir.nodes import PrimFunc, static_shape
from compiler.ir.oracle import interpret
from compiler.ir.structural import structural_equal
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace import Trace
from tests.property.odd_programs import odd_program
from tests.property.random_schedules import (
    PROGRAMS,
    STEPS,
    Array,
    RandomTrace,
    reverse_concurrent_loops,
    whole_number_inputs,
)


def check(func: PrimFunc, schedule: Schedule, *, compiled: bool) -> None:
    """Hold a scheduled program against the oracle, in several ways of running it."""
    inputs = whole_number_inputs(func, seed=1)
    expected = interpret(func, inputs)
    for program in (schedule.func, reverse_concurrent_loops(schedule.func)):
        _same(evaluate(program, inputs), expected)
    if compiled:
        _same(_run(schedule.func, inputs), expected)


def _run(func: PrimFunc, inputs: dict[str, Array]) -> dict[str, Array]:
    arrays = {p.name: inputs[p.name] if p.name in inputs else poisoned(p) for p in func.buffers}
    build(func, "cpu -num-cores=2")(*arrays.values())
    return arrays


def _same(got: dict[str, Array], expected: dict[str, Array]) -> None:
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_legal_trace_computes_what_the_program_computes(data: st.DataObject) -> None:
    func = data.draw(st.sampled_from(PROGRAMS))(lambda xs: data.draw(st.sampled_from(xs)))
    schedule = Schedule(func, seed=0)
    steps = RandomTrace(schedule, lambda xs: data.draw(st.sampled_from(list(xs))))
    for _ in range(data.draw(st.integers(1, 12))):
        steps.step()
    check(func, schedule, compiled=True)

    trace = Trace.from_json(json.loads(json.dumps(schedule.trace.to_json())))
    assert trace == schedule.trace
    assert structural_equal(trace.apply_to(func).func, schedule.func)
    simplified = trace.simplified()
    assert structural_equal(simplified.apply_to(func).func, schedule.func)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_odd_programs_keep_their_meaning_too(data: st.DataObject) -> None:
    def choose(options: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(list(options)))

    func = odd_program(choose)
    if func is None:
        return
    steps = RandomTrace(Schedule(func, seed=0), choose)
    for _ in range(data.draw(st.integers(1, 8))):
        steps.step()
    rng = np.random.default_rng(1)
    inputs = {p.name: rng.integers(-3, 4, static_shape(p)).astype(p.dtype) for p in func.buffers}
    expected = evaluate(func, inputs)
    scheduled = steps.schedule.func
    results = [evaluate(scheduled, inputs), evaluate(reverse_concurrent_loops(scheduled), inputs)]
    arrays = {name: array.copy() for name, array in inputs.items()}
    build(scheduled, "cpu -num-cores=2")(*arrays.values())
    for got in (*results, arrays):
        for name, value in expected.items():
            # What the program reads before it is written has no meaning to keep.
            same = np.isnan(value) | (value == got[name])
            assert same.all(), (name, value, got[name])


def test_random_primitives_are_accepted_often_enough_to_mean_something() -> None:
    rng = Random(7)
    accepted: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for number in range(150):
        func = PROGRAMS[number % len(PROGRAMS)](rng.choice)
        steps = RandomTrace(Schedule(func, seed=number), rng.choice, accepted, refused)
        for _ in range(10):
            steps.step()
        check(func, steps.schedule, compiled=False)
    total = sum(accepted.values())
    assert total >= 0.4 * (total + sum(refused.values())), (accepted, refused)
    for name in STEPS:
        assert accepted[name] >= 5, f"{name}: {accepted[name]} accepted, {refused[name]} refused"
