"""The rules that call a library for what it has."""

from __future__ import annotations

from compiler.executor.functions.registry import BUILT_IN
from compiler.ir.analysis.constant_params import constant_params
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.blocks.call_library import NUM_THREADS
from tuner.space.rules.sketch_builder import SketchBuilder

LIBRARIES = tuple(dict.fromkeys(name.partition(".")[0] for name in BUILT_IN))
"""The libraries that schedules may call."""


def library_rule(library: str) -> str:
    """Return the name of the rule of a library."""
    return f"{library}_calls"


class LibraryCalls:
    """Calls a library for each block that it has a function for, in an alternative sketch.

    The decision is the number of threads: for small blocks, one is faster than all. Other blocks
    are scheduled by the other rules.
    """

    def __init__(self, library: str) -> None:
        self.name = library_rule(library)
        self._library = library
        self._functions = [name for name in BUILT_IN if name.partition(".")[0] == library]

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Return the draft, and a fork that calls the library for blocks of the program."""
        fork = draft.fork(self._library)
        called = [name for name in fork.block_facts() if self._calls(fork, name)]
        return [draft, fork] if called and not constant_params(draft.func) else [draft]

    def _calls(self, draft: SketchBuilder, block: str) -> bool:
        if block in draft.scheduled:
            return False
        if not any(self._is_called(draft, block, function) for function in self._functions):
            return False
        cores = draft.target.num_cores
        threads, _ = draft.choose((cores, 1) if cores > 1 else (1,))
        draft.schedule.annotate(draft.schedule.get_block(block), NUM_THREADS, threads)
        draft.scheduled.add(block)
        return True

    @staticmethod
    def _is_called(draft: SketchBuilder, block: str, function: str) -> bool:
        try:
            draft.schedule.call_library(block, function)
        except ScheduleError:
            return False
        return True
