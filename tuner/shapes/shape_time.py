"""The times of a dispatcher at the sizes that were timed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tuner.shapes.dispatcher import kernel_of
from tuner.shapes.sizes import Sizes
from tuner.shapes.tune_shapes import ShapeSearch
from tuner.trial import MeasuredTrial, fastest


@dataclass(frozen=True, slots=True)
class ShapeTime:
    """The times at one size, in seconds a run: the shortest sample of each.

    Attributes:
        sizes: The value of each symbolic extent.
        kernel: The number of the kernel that the dispatcher calls.
        run_secs: The time of this kernel.
        best_secs: The time of the fastest of all kernels that were tried, chosen or not.
        tuned_secs: The time of the best schedule of this size alone; None if it was not tuned.
    """

    sizes: Mapping[str, int]
    kernel: int
    run_secs: float
    best_secs: float
    tuned_secs: float | None = None

    @property
    def loss(self) -> float | None:
        """Return how much longer the dispatched kernel takes than that of this size alone.

        0.1 is a tenth; it is negative if the dispatched kernel is faster. None if the size was not
        tuned alone.
        """
        return None if self.tuned_secs is None else self.run_secs / self.tuned_secs - 1


def shape_times(
    search: ShapeSearch, trials: Sequence[Sequence[MeasuredTrial]], tuned: Sequence[Sizes]
) -> tuple[ShapeTime, ...]:
    """Return the times at all sizes in ascending order.

    Args:
        search: The kernels and their dispatcher.
        trials: The trials of each tuned size.
        tuned: These sizes.
    """
    best = [fastest(of_size) for of_size in trials]
    tuned_secs = [None if trial is None else trial.best_secs for trial in best]
    columns = sorted(enumerate(search.matrix.sizes), key=lambda column: tuple(column[1].values()))
    return tuple(
        ShapeTime(
            dict(sizes),
            kernel_of(search.tree, sizes),
            search.dispatched_secs[column],
            search.best_secs[column],
            tuned_secs[tuned.index(sizes)] if sizes in tuned else None,
        )
        for column, sizes in columns
    )


def mean_loss(times: Iterable[ShapeTime]) -> float | None:
    """Return the loss in the geometric mean over the sizes that were tuned alone, if any."""
    ratios = [time.loss + 1 for time in times if time.loss is not None]
    if not ratios:
        return None
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) - 1
