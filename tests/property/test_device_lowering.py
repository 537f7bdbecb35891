"""Random programs under random legal traces, lowered for a GPU, compute the unscheduled program."""

from __future__ import annotations

from random import Random

from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.schedule import Schedule
from compiler.target.gpus import ARCHS
from tests.property.check_schedule import Meaning, numbered
from tests.property.fuzz import Chooser
from tests.property.generators.choice import STEPS
from tests.property.generators.schedules import RandomTrace
from tests.property.generators.workloads import WORKLOADS
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
