"""`Schedule`: a program, the primitives that transform it, and the trace of what was done.

Names, arguments and results are those of TensorIR's `Schedule`. Each primitive is a pure function
on programs in a file of its own, which says what it requires and what it rewrites; the methods
here turn handles into loops and blocks, and record.
"""

from __future__ import annotations

import sys
from random import Random

from compiler.ir.nodes import IRModule, PrimFunc
from compiler.ir.printer import script
from compiler.schedule.block_methods import BlockMethods
from compiler.schedule.loop_methods import LoopMethods
from compiler.schedule.sampling_methods import SamplingMethods
from compiler.schedule.tensor_methods import TensorMethods
from compiler.schedule.trace import Trace


class Schedule(LoopMethods, BlockMethods, SamplingMethods, TensorMethods):
    """A program under transformation.

    A primitive that is refused raises `ScheduleError` and leaves the program as it was. One that
    is accepted does not change what the program computes.

    Args:
        mod: The program; it is not changed. Of a module, the first function is worked on.
        seed: Where drawn decisions come from; the same seed draws the same.

    Raises:
        TypeError: If `mod` is no program.
        ScheduleError: If the program has what schedules can't handle.
    """

    def __init__(self, mod: PrimFunc | IRModule, *, seed: int | None = None) -> None:
        super().__init__(mod, seed=seed)

    @property
    def trace(self) -> Trace:
        """What was done so far."""
        return Trace(tuple(self._instructions))

    @property
    def func_working_on(self) -> str:
        """The name of the function being worked on."""
        return self._working

    def work_on(self, func_name: str) -> None:
        """Let blocks that are given by name be looked for in another function.

        Raises:
            ScheduleError: If there is no such function.
        """
        self._working = self._function("work_on", func_name).name

    def seed(self, seed: int) -> None:
        """Draw decisions from another seed from now on."""
        self._rng = Random(seed)

    def copy(self) -> Schedule:
        """Return a schedule in the same state; handles of the one are handles of the other."""
        new = Schedule.__new__(Schedule)
        for name, value in vars(self).items():
            setattr(new, name, value.copy() if isinstance(value, dict | list) else value)
        new._rng = Random()
        new._rng.setstate(self._rng.getstate())
        return new

    def show(self) -> None:
        """Print the program as it is now."""
        sys.stdout.write(script(self.mod if len(self._functions) > 1 else self.func))
