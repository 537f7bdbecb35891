"""Build candidates and time them in turns, in this process.

A batch is built at normal priority, then each candidate is timed several times, in turns with the
others and at real-time priority: what disturbs the machine for a while disturbs one turn of many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.peers.worker import first_in_line
from compiler.driver import BuildError, compile_artifact
from compiler.ir.inputs import random_inputs
from compiler.ir.nodes import static_shape
from compiler.ir.oracle import interpret
from compiler.ir.tolerance import Mismatch, compare
from compiler.runtime.measurement import ErrorKind
from compiler.runtime.module import Module, aligned_empty
from compiler.runtime.timing import calls_per_sample, time_calls
from compiler.schedule.beginnings import Beginnings
from compiler.schedule.error import ScheduleError
from tuner.space.design_space import DesignSpace, Point
from tuner.task import Task

TURNS = 4
SAMPLES = 3
"""In a turn; the shortest of all turns counts."""
MIN_SAMPLE_SECS = 100e-6


@dataclass(frozen=True)
class Found:
    """What measuring a candidate found: its shortest sample in seconds, infinite for an error."""

    secs: float
    error: ErrorKind | None = None


class Batches:
    """Measures candidates of one task, a batch at a time."""

    def __init__(self, task: Task, space: DesignSpace) -> None:
        self._task = task
        self._space = space
        self._beginnings = Beginnings()
        self._inputs = random_inputs(task.func, 0)
        self._expected = interpret(task.func, self._inputs)

    def measure(
        self, points: Sequence[Point], begin: Callable[[Point], object] = lambda _: None
    ) -> dict[Point, Found]:
        """Measure candidates.

        Args:
            begin: Called before a candidate runs for the first time.
        """
        found: dict[Point, Found] = {}
        runs: dict[Point, tuple[Callable[[], None], int]] = {}
        for point in points:
            try:
                module = self._built(point)
            except (BuildError, ScheduleError):
                found[point] = Found(float("inf"), ErrorKind.BUILD_ERROR)
                continue
            begin(point)
            run = self._checked(module)
            if run is None:
                found[point] = Found(float("inf"), ErrorKind.WRONG_RESULT)
                continue
            with first_in_line():
                runs[point] = run, calls_per_sample(run, 1, MIN_SAMPLE_SECS)
        for _ in range(TURNS):
            for point, (run, calls) in runs.items():
                with first_in_line():
                    run()
                    secs = min(time_calls(run, 1, calls) for _ in range(SAMPLES))
                found[point] = Found(min(secs, found[point].secs if point in found else secs))
        return found

    def _built(self, point: Point) -> Module:
        trace = self._space.candidate(point).trace
        schedule = self._beginnings.apply(trace, self._task.func)
        schedule.require_own_layouts()
        return Module(compile_artifact(schedule, self._task.target))

    def _checked(self, module: Module) -> Callable[[], None] | None:
        """Run a kernel once; return how to run it again, None if it is wrong."""
        arrays = {b.name: aligned_empty(static_shape(b), b.dtype) for b in self._task.func.buffers}
        for name, array in arrays.items():
            array[...] = self._inputs.get(name, 0)
        run = module.bind(*arrays.values())
        run()
        got = {name: arrays[name] for name in self._expected}
        try:
            compare(self._task.func, got, self._expected)
        except Mismatch:
            return None
        return run
