"""Time a module on arrays."""

from __future__ import annotations

from typing import Any

from compiler.backends.module import Module
from compiler.executor.named_type import named_type
from compiler.keywords import suggests_keywords
from compiler.runtime.time_calls import MIN_SAMPLE_SECS, calls_per_sample
from compiler.runtime.timing import Timing


@suggests_keywords
def time_evaluator(
    module: Module, *arrays: Any, samples: int = 10, min_sample_secs: float = MIN_SAMPLE_SECS
) -> Timing:
    """Time a module on arrays, after one run to warm up.

    A sample is the mean over as many calls as last `min_sample_secs`; see `time_calls`.

    Raises:
        ArgumentError: If the arrays do not fit the module.
        TypeError: If `module` is not a module.
        ValueError: If `samples` is less than 1.
    """
    if not isinstance(module, Module):
        raise TypeError(f"expected a Module, as build returns it, got {named_type(module)}")
    if samples < 1:
        raise ValueError(f"samples is {samples}: expected 1 or more")
    run = module.bind(*arrays)
    run()
    threads, clock = module.num_threads, module.clock
    calls = calls_per_sample(run, threads, min_sample_secs, clock)
    return Timing(tuple(clock(run, threads, calls) for _ in range(samples)))
