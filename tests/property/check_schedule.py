"""What is held of a scheduled program, whatever was done to it."""

from __future__ import annotations

import json
from unittest import mock

import numpy as np

from compiler.codegen import work
from compiler.driver import build
from compiler.ir.evaluate import evaluate, poisoned
from compiler.ir.oracle import OracleError, compare, interpret
from compiler.ir.program import PrimFunc
from compiler.ir.structural import structural_equal
from compiler.ir.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace import Trace
from compiler.script import parse
from loopwright.script import T
from tests.property.random_schedules import (
    Array,
    is_concurrent,
    is_exact,
    reverse_concurrent_loops,
    whole_number_inputs,
)

TARGET = "cpu -num-cores=2"


def check_schedule(func: PrimFunc, schedule: Schedule, *, thoroughly: bool) -> None:
    """Hold a schedule of a program against the oracle; `thoroughly`, its texts and traces as well.

    Raises:
        Exception: If something is not as it must be; AssertionError if it is a result.
    """
    _check_results(func, schedule.func, slowly=thoroughly)
    if thoroughly:
        _check_texts(func, schedule)


def _check_results(func: PrimFunc, scheduled: PrimFunc, *, slowly: bool) -> None:
    verify(scheduled)
    inputs = whole_number_inputs(func, seed=1)
    expected = _expected(func, inputs)
    _assert_same(func, _run(scheduled, inputs), expected)
    if is_concurrent(scheduled):
        _assert_same(func, _run(reverse_concurrent_loops(scheduled), inputs), expected)
    if slowly:
        _assert_same(func, evaluate(scheduled, inputs), expected)


def _expected(func: PrimFunc, inputs: dict[str, Array]) -> dict[str, Array]:
    try:
        return interpret(func, inputs)
    except OracleError:
        return evaluate(func, inputs)


def _run(func: PrimFunc, inputs: dict[str, Array]) -> dict[str, Array]:
    arrays = {
        p.name: inputs[p.name].copy() if p.name in inputs else poisoned(p) for p in func.buffers
    }
    # The programs are small, and their parallel loops are to be launched all the same.
    with mock.patch.object(work, "LAUNCH_INSTRUCTIONS", 0):
        module = build(func, TARGET)
    module(*arrays.values())
    module.close()
    return arrays


def _assert_same(func: PrimFunc, got: dict[str, Array], expected: dict[str, Array]) -> None:
    if not is_exact(func):
        compare(func, got, expected)
        return
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)


def _check_texts(func: PrimFunc, schedule: Schedule) -> None:
    scheduled = schedule.func
    assert structural_equal(parse(scheduled.script()), scheduled), "the text is another program"
    trace = Trace.from_json(json.loads(json.dumps(schedule.trace.to_json())))
    assert trace == schedule.trace, "the trace is another one after JSON"
    assert structural_equal(trace.apply_to(func).func, scheduled), "the trace does something else"
    again = Schedule(func)
    exec(trace.python(), {"sch": again, "T": T})
    assert structural_equal(again.func, scheduled), "the trace as Python does something else"
    simplified = trace.simplified().apply_to(func).func
    assert structural_equal(simplified, scheduled), "the simplified trace does something else"
