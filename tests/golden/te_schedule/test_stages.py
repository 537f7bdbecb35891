"""Schedules of tensor expressions, lowered: their loops, and the primitives that made them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.core.nodes import static_shape
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.schedule.schedule import Schedule
from tests.golden.te_schedule.stage_programs import PROGRAMS, StageProgram

TARGET = "cpu -num-cores=2"


@pytest.mark.parametrize("name", PROGRAMS)
def test_stages(name: str, golden: Callable[[str], None]) -> None:
    program = PROGRAMS[name]()
    sch = program.schedule.to_schedule(program.args)
    loops = lw.lower(program.schedule, program.args, simple_mode=True)["main"]
    golden(f"{loops.script()}\n{sch.trace}\n")

    _assert_computes(program, lw.build(program.schedule, program.args, TARGET))
    if "thread_binding" not in loops.script():  # barriers between threads are inserted later
        _assert_computes(program, lw.build(loops, TARGET))
    unscheduled = lw.te.create_prim_func(program.args)
    replayed = sch.trace.apply_to(unscheduled)
    assert lw.structural_equal(replayed.func, sch.func)
    assert isinstance(replayed, Schedule)


def _assert_computes(program: StageProgram, kernel: lw.Module) -> None:
    rng = np.random.default_rng(0)
    num_inputs = sum(tensor.definition is None for tensor in program.args)
    inputs = [
        rng.integers(-4, 5, static_shape(tensor.buffer)).astype(tensor.dtype)
        for tensor in program.args[:num_inputs]
    ]
    outputs = [poisoned(tensor.buffer) for tensor in program.args[num_inputs:]]
    kernel(*inputs, *outputs)
    for got, expected in zip(outputs, program.reference(*inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
