"""Replay with the same, other and wrong decisions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.schedule.error import ScheduleError, TraceError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.schedule_asserts import elementwise, matmul_relu
from tests.unit.compiler.schedule.trace.tiled import tiled


def test_decisions_can_be_replaced() -> None:
    trace = tiled().trace.with_decisions([[4, 4], 2])
    assert (*trace.decisions.values(),) == ((4, 4), 2)
    replayed = trace.apply_to(matmul_relu())
    assert (*replayed.trace.decisions.values(),) == ((4, 4), 2)
    assert trace.key() != tiled().trace.key()
    overridden = tiled().trace.apply_to(matmul_relu(), decisions=[(4, 4), 2])
    assert structural_equal(overridden.func, replayed.func)


def test_decisions_can_be_drawn_anew() -> None:
    trace = tiled().trace.with_decisions([[16, 1], 0])
    drawn = {
        tuple(trace.apply_to(matmul_relu(), [None, 0], seed=seed).trace.decisions.values())
        for seed in range(20)
    }
    assert len(drawn) > 1
    assert all(i_0 * i_1 == 16 and i_1 <= 8 for (i_0, i_1), _ in drawn)  # type: ignore[misc]


def test_the_same_seed_draws_the_same() -> None:
    assert tiled().trace == tiled().trace


@pytest.mark.parametrize("decisions", [[], [[4, 4]], [[4, 4], 0, 1], [[4, 4], 3], [[4], 1], [4, 4]])
def test_wrong_decisions_are_refused(decisions: list[Any]) -> None:
    with pytest.raises(TraceError, match="decisions"):
        tiled().trace.with_decisions(decisions)


def test_replay_refuses_too_few_decisions() -> None:
    with pytest.raises(TraceError, match="expected 2 decisions, got 1"):
        tiled().trace.apply_to(matmul_relu(), decisions=[(4, 4)])


def test_a_trace_is_refused_where_the_program_does_not_fit() -> None:
    with pytest.raises(ScheduleError, match='there is no block "Y"'):
        tiled().trace.apply_to(elementwise())
    sch = Schedule(elementwise())
    sch.get_loops("B")
    text = json.dumps(sch.trace.to_json()).replace('"B"', '"Y"')
    trace = Trace.from_json(json.loads(text))
    with pytest.raises(ScheduleError, match="the trace expects 2 handles, the program gives 3"):
        trace.apply_to(matmul_relu())
