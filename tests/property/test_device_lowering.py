"""Random programs under random legal traces, lowered for a GPU, compute the unscheduled program."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings

from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.schedule import Schedule
from compiler.target.gpus import ARCHS
from tests.property.acceptance import Acceptance
from tests.property.check_schedule import Meaning, numbered
from tests.property.fuzz import Chooser
from tests.property.generators.choice import STEPS
from tests.property.generators.schedules import RandomTrace
from tests.property.generators.workloads import WORKLOADS
from tests.property.test_threads_in_lockstep import programs
from tests.unit.compiler.passes.device.device_interpreter import run_device

# Steps that bind loops, or give threads and blocks memory, are drawn more often than others.
OF_THREADS = (
    *("bind", "bind", "bind_anywhere", "bind_reduction", "compute_anywhere", "cache_read"),
    *("cache_write", "set_scope", "split", "fuse", "reorder"),
)
NUM_PROGRAMS = 20
BOUND = 0.5
"""The part of the programs that must become kernels of several threads: refusals show nothing."""


def scheduled(number: int) -> tuple[Meaning, Schedule]:
    """Return a random program and a random schedule of it, which follow from a number."""
    rng = Random(f"device:{number}")
    func = WORKLOADS[rng.choice(list(WORKLOADS))](Chooser(rng))
    schedule = Schedule(func, seed=number)
    trace = RandomTrace(schedule, Chooser(rng))
    for _ in range(rng.randrange(1, 9)):
        trace.attempt(rng.choice([*OF_THREADS, *STEPS]))
    return Meaning(func), schedule


def check(number: int) -> bool:
    """Check one program in two orders of threads; return whether it has several threads.

    Raises:
        AssertionError: If a result is wrong.
    """
    meaning, schedule = scheduled(number)
    try:
        program = lower_for_device(numbered(schedule.func), ARCHS["sm_90a"])
    except LoweringError:
        return False
    for order in ("forwards", "backwards"):
        meaning.assert_same(run_device(program, meaning.inputs, order))
    return any(kernel.axes for kernel in program.kernels)


def test_kernels_compute_what_the_program_computes() -> None:
    bound = sum(check(number) for number in range(NUM_PROGRAMS))
    assert bound >= BOUND * NUM_PROGRAMS


accepted = Acceptance()


@accepted.at_least(0.2)
@settings(max_examples=20)
@given(func=programs())
def test_threads_compute_what_they_do_in_lockstep(func: PrimFunc) -> None:
    inputs = {"A": np.arange(16, dtype=np.int32) * 7 % 11, "G": np.arange(16, dtype=np.int32)}
    try:
        program = lower_for_device(func, ARCHS["sm_90a"])
        expected = evaluate(func, inputs)["G"]
        has_race = bool((evaluate(func, inputs, backwards=True)["G"] != expected).any())
    except (LoweringError, EvaluationError):
        accepted.count(False)
        return
    if accepted.count(not has_race):
        for order in ("forwards", "backwards"):
            np.testing.assert_array_equal(run_device(program, inputs, order)["G"], expected)
