"""Draw decisions many times, and compare how often each came."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.schedule_asserts import (
    matmul_relu,
)

UNIFORM = 3.0


def survives(sch: Schedule, program: PrimFunc) -> None:
    """Check that a trace says in JSON, in Python and in TVM's JSON what was done."""
    again = Schedule(program)
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert trace == sch.trace
    exec(sch.trace.python(), {"sch": again})
    assert again.trace == sch.trace
    assert structural_equal(again.func, sch.func)
    fresh = Schedule(program)
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), fresh)
    assert fresh.trace.decisions == sch.trace.decisions


def equally_often(drawn: Counter[Any], expected: set[Any]) -> None:
    """Check that things were drawn about equally often, and no others."""
    assert set(drawn) == expected
    mean = drawn.total() / len(expected)
    assert all(abs(count - mean) <= UNIFORM * math.sqrt(mean) for count in drawn.values()), drawn


def location(decision: int | None, block: str = "Y") -> tuple[Schedule, LoopRV]:
    """Return a schedule with a location for a block of a matrix product and its relu."""
    sch = Schedule(matmul_relu(), seed=4)
    return sch, sch.sample_compute_location(block, decision)
