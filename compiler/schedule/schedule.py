"""`Schedule`: a program, the primitives that transform it, and the trace of what was done.

Names, arguments and results are those of TensorIR's `Schedule`. Each primitive is a pure function
on programs in a file of its own, which says what it requires and what it rewrites. The methods
turn handles into loops and blocks, and record; `@primitive` declares each of them once.
"""

from __future__ import annotations

from random import Random
from typing import get_args

from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.spelling import Dialect
from compiler.schedule.error import Detail
from compiler.schedule.methods.block_methods import BlockMethods
from compiler.schedule.methods.loop_methods import LoopMethods
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.sampling_methods import SamplingMethods
from compiler.schedule.methods.storage_methods import StorageMethods
from compiler.schedule.methods.tensor_methods import TensorMethods
from compiler.schedule.trace.trace import Trace

_MAX_SEED = 2**31


class Schedule(LoopMethods, BlockMethods, StorageMethods, SamplingMethods, TensorMethods):
    """A program under transformation.

    A primitive that is refused raises `ScheduleError` and leaves the program as it was. One that
    is accepted does not change what the program computes.

    Args:
        mod: The program; it is not changed. Of a module, the function `main` is worked on, the
            first one if none is called so. Blocks that share a name get names of their own, and
            a program of plain loops gets blocks: see `compiler.schedule.rewrite.derive_blocks`.
        seed: Where drawn decisions come from; the same seed draws the same.
        debug_mask: Taken for the sake of TVM's users: every primitive is checked anyway.
        error_render_level: What an error shows: the program with the place marked ("detail"), the
            reason ("fast"), or that there is one ("none").

    Raises:
        TypeError: If `mod` is no program.
        ValueError: If the level is none of those, or the module is empty.
        ScheduleError: If the program has what schedules can't handle.
    """

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: Detail = "detail",
    ) -> None:
        del debug_mask
        if error_render_level not in get_args(Detail):
            levels = ", ".join(get_args(Detail))
            raise ValueError(f"error_render_level is {error_render_level!r}: expected {levels}")
        super().__init__(mod, seed=seed)
        self._detail = error_render_level

    def __repr__(self) -> str:
        done = len(self._instructions)
        instructions = "1 instruction" if done == 1 else f"{done} instructions"
        return f"<Schedule of {', '.join(self._functions)}: {instructions}>"

    @property
    def trace(self) -> Trace:
        """What was done so far."""
        return Trace(tuple(self._instructions), self._default_function)

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
        """Draw decisions from another seed from now on.

        Raises:
            ScheduleError: If it is no integer.
        """
        if not isinstance(seed, int):
            raise self._fail("seed", f"expected an integer, got {seed!r}")
        self._rng = Random(seed)

    def fork_seed(self) -> int:
        """Draw a seed for another schedule."""
        return self._rng.randrange(1, _MAX_SEED)

    @primitive()
    def enter_postproc(self) -> None:
        """Mark where postprocessing begins: traces can be cut there."""
        self._record("enter_postproc", {})

    def copy(self) -> Schedule:
        """Return a schedule in the same state; handles of the one are handles of the other."""
        new = Schedule.__new__(Schedule)
        for name, value in vars(self).items():
            setattr(new, name, value.copy() if isinstance(value, dict | list) else value)
        new._rng = Random()
        new._rng.setstate(self._rng.getstate())
        return new

    def show(self, dialect: Dialect = "new") -> None:
        """Print the program as it is now, in a spelling of `PrimFunc.script`."""
        (self.mod if len(self._functions) > 1 else self.func).show(dialect)
