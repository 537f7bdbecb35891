"""Design spaces for a named GPU, and runs of their schedules."""

from __future__ import annotations

import numpy as np

from compiler.backends.cuda.emulated_call import EmulatedCall
from compiler.backends.emulator.report import EmulationReport
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.schedule.schedule import Schedule
from compiler.target.cuda import CudaTarget
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.rule import ScheduleRule
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

H200 = CudaTarget("cuda -gpu=h200")
EMULATED = CudaTarget("cuda -gpu=h200 -emulated")


def space_of(func: PrimFunc) -> SketchSpace:
    return design_space(Task(func, H200))


def names(func: PrimFunc) -> list[str]:
    return [sketch.name for sketch in space_of(func).sketches]


def draw(func: PrimFunc, sketch: str, num: int, seed: int = 0) -> list[Schedule]:
    """Return random schedules of a sketch."""
    space = space_of(func)
    (index,) = [i for i, s in enumerate(space.sketches) if s.name == sketch]
    rows = space.draw(index, num, np.random.default_rng(seed))
    return [space.sketches[index].candidate(row).trace.apply_to(func) for row in rows]


def first(func: PrimFunc, sketch: str) -> Schedule:
    """Return the schedule of a sketch whose decisions are the first options of all knobs."""
    (match,) = [each for each in space_of(func).sketches if each.name == sketch]
    return schedule_of(match, func)


def sketch_of_rule(rule: ScheduleRule, func: PrimFunc) -> Sketch:
    """Return the sketch of a rule that stands beside a draft without it."""
    draft = SketchBuilder.begin(func, H200)
    AutoInline().apply(draft)
    with_rule, without = rule.apply(draft)
    assert without.name == ()
    return with_rule.finish()


def schedule_of(sketch: Sketch, func: PrimFunc, seed: int | None = None) -> Schedule:
    """Return the schedule of a sketch by the first options of all knobs, or a random one."""
    row = np.zeros(len(sketch.knobs), np.int64)
    if seed is not None:
        row = sketch.draw(1, np.random.default_rng(seed))[0]
    return sketch.candidate(row).trace.apply_to(func)


def emulate(func: PrimFunc, schedule: Schedule) -> tuple[EmulationReport, ...]:
    """Emulate a schedule, and compare its results with those of the oracle.

    Returns:
        The report of each kernel.
    """
    inputs = random_inputs(func, seed=1)
    expected = interpret(func, inputs)
    arrays = {
        p.name: inputs[p.name].copy() if p.name in inputs else poisoned(p) for p in func.buffers
    }
    module = build(schedule, EMULATED)
    call = module.bind(*arrays.values())
    assert isinstance(call, EmulatedCall)
    call()
    module.close()
    compare(func, arrays, expected)
    return call.reports


def assert_computes(func: PrimFunc, schedules: list[Schedule]) -> None:
    """Compare the results of emulated kernels with those of the oracle, which runs the program."""
    assert schedules
    for schedule in schedules:
        emulate(func, schedule)
