"""Traces survive JSON, and drop what gives nothing used."""

from __future__ import annotations

import json

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.schedule.error import TraceError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.schedule_asserts import elementwise, matmul_relu
from tests.unit.compiler.schedule.trace.tiled import tiled


def test_a_trace_survives_json_and_replays_the_same_program() -> None:
    sch = tiled()
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert trace == sch.trace
    assert trace.key() == sch.trace.key()
    again = trace.apply_to(matmul_relu())
    assert structural_equal(again.func, sch.func)
    assert again.trace == sch.trace


def test_simplification_drops_what_gives_nothing_used() -> None:
    sch = Schedule(elementwise())
    sch.get_loops("C")
    i, _ = sch.get_loops("B")
    sch.sample_perfect_tile(i, 2)
    sch.parallel(i)
    assert [x.name for x in sch.trace.simplified().instructions] == [
        "get_sblock",
        "get_loops",
        "parallel",
    ]


def test_traces_that_differ_in_decisions_share_their_other_instructions() -> None:
    form = tiled().trace
    decisions = list(form.decisions.values())
    one, same = (form.with_decisions(decisions) for _ in range(2))
    assert decisions == [(16, 1), 1]
    assert one == same == form
    assert all(a is b for a, b in zip(one.instructions, same.instructions, strict=True))
    # Equal to the decision (16, 1), but no integers.
    for wrong in ((16, True), (16, 1.0)):
        with pytest.raises(TraceError):
            one.with_decisions([wrong, 1])  # type: ignore[list-item]
