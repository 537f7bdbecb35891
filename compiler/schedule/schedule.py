"""`Schedule`: a program, the primitives that transform it, and the trace that records them.

Names, arguments and results are those of TensorIR's `Schedule`. Each primitive is a pure function
on programs in a separate file, which documents its requirements and its rewriting. The methods
convert handles to loops and blocks, and record; `@primitive` declares each of them once.
"""

from __future__ import annotations

from random import Random
from typing import get_args

from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.spelling import Dialect
from compiler.schedule.error import Detail
from compiler.schedule.methods.access_methods import AccessMethods
from compiler.schedule.methods.cache_methods import CacheMethods
from compiler.schedule.methods.intrinsic_methods import IntrinsicMethods
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.sampling_methods import SamplingMethods
from compiler.schedule.methods.storage_methods import StorageMethods
from compiler.schedule.state import State
from compiler.schedule.trace.trace import Trace

_MAX_SEED = 2**31


class Schedule(
    AccessMethods,
    CacheMethods,
    StorageMethods,
    SamplingMethods,
    IntrinsicMethods,
):
    """A program under transformation.

    A refused primitive raises `ScheduleError` and leaves the program unchanged. An accepted one
    does not change the results of the program.

    Args:
        mod: The program; it is not changed. Of a module, the current function is the only one, or
            `main`; without a `main`, `work_on` chooses one. Blocks that share a name get unique
            names, and a program of plain loops gets blocks: see
            `compiler.schedule.rewrite.plain_loops.derive_blocks`.
        seed: The seed of random decisions; equal seeds draw equal decisions.
        debug_mask: Ignored; it exists for compatibility with TVM. Every primitive is checked.
        error_render_level: The detail of errors: the program with the node marked ("detail"), the
            reason ("fast"), or only that there is one ("none").

    Raises:
        TypeError: If `mod` is not a program.
        ValueError: If the level is none of those, or the module is empty.
        ScheduleError: If schedules do not support the program, or it has no blocks, and none can be
            derived of its loops.
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
        self._require_blocks()
        self._detail = error_render_level

    def __repr__(self) -> str:
        done = len(self._instructions)
        instructions = "1 instruction" if done == 1 else f"{done} instructions"
        return f"<Schedule of {', '.join(self._functions)}: {instructions}>"

    @property
    def trace(self) -> Trace:
        """Return the trace of the instructions so far."""
        return Trace(tuple(self._instructions), self._default_function or "main")

    @property
    def func_working_on(self) -> str:
        """Return the name of the current function.

        Raises:
            ValueError: If there are several functions, and `work_on` has chosen none of them.
        """
        return self.func.name

    def work_on(self, func_name: str) -> None:
        """Change the current function, in which blocks are found by name.

        Raises:
            ScheduleError: If the function does not exist.
        """
        self._working = self._function("work_on", func_name).name

    def seed(self, seed: int) -> None:
        """Set the seed of later decisions.

        Raises:
            ScheduleError: If it is not an integer.
        """
        if not isinstance(seed, int):
            raise self._fail("seed", f"expected an integer, got {seed!r}")
        self._rng = Random(seed)

    def fork_seed(self) -> int:
        """Draw a seed for another schedule."""
        return self._rng.randrange(1, _MAX_SEED)

    @primitive()
    def enter_postproc(self) -> None:
        """Mark the beginning of postprocessing, at which traces can be cut."""
        self._record("enter_postproc", {})

    def show(self, dialect: Dialect = "new") -> None:
        """Print the current program, in a spelling of `PrimFunc.script`."""
        (self.mod if len(self._functions) > 1 else self.func).show(dialect)


def schedule_for_trace(mod: PrimFunc | IRModule, seed: int | None = None) -> Schedule:
    """Return a schedule to which a trace can be applied.

    A program of which no blocks can be derived is accepted: it has the trace without instructions.
    """
    schedule = Schedule.__new__(Schedule)
    State.__init__(schedule, mod, seed=seed)
    return schedule
