"""The check of a dispatcher with its kernels, as one artifact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.ir.analysis.symbols import timed_at
from tuner.measurer.module_measurer import ModuleMeasurer
from tuner.shapes.sizes import Sizes
from tuner.shapes.tune_shapes import NoShapeError, ShapeSearch
from tuner.task import Task


def check_module(
    search: ShapeSearch,
    sizes: Sequence[Sizes],
    measurer: ModuleMeasurer,
    affords: Callable[[float], bool] = lambda _: True,
) -> None:
    """Compile the dispatcher and its kernels, and compare it with the oracle at sizes.

    Each kernel was compared before, at each size.

    Args:
        search: The dispatcher and its kernels.
        sizes: The sizes: the first is checked in any case.
        measurer: Measures the module.
        affords: Returns whether there is time for so many seconds more.

    Raises:
        NoShapeError: If the module is wrong at a size, or cannot be built.
    """
    module = search.module()
    longest_secs = 0.0
    for position, of_size in enumerate(sizes):
        if position > 0 and not affords(longest_secs):
            return
        task = Task(timed_at(search.func, of_size), search.target)
        measurement = measurer.measure_module(task, module)
        if not measurement.ok:
            raise NoShapeError(
                f"the dispatcher of {search.func.name} failed at {dict(of_size)}: "
                f"{measurement.error}: {measurement.message}"
            )
        longest_secs = max(longest_secs, measurement.check_secs + measurement.time_secs)
