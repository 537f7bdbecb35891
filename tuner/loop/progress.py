"""The progress of a job: the points at which its best time improved, stored in the job's row.

Lists show it beside each job, so it is not computed from trials: it changes in the transaction that
adds the trial with the improvement.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[int, float]
"""A number of measured trials, and the shortest time among them in seconds."""
MAX_POINTS = 48
SPARKLINE_POINTS = 32


def add_point(
    points: Sequence[Sequence[float]], num_measured: int, best_secs: float
) -> list[Point]:
    """Return the points with one more, without the least important one if there are too many.

    A time without improvement changes nothing. The first and the last point stay; among the others
    the one with the smallest step is dropped.
    """
    grown = [(int(number), secs) for number, secs in points]
    if grown and best_secs >= grown[-1][1]:
        return grown
    grown.append((num_measured, best_secs))
    if len(grown) > MAX_POINTS:
        steps = [math.log(a[1] / b[1]) for a, b in pairwise(grown[:-1])]
        del grown[1 + steps.index(min(steps))]
    return grown


def sparkline(points: Sequence[Sequence[float]], num_measured: int) -> tuple[float, ...]:
    """Return the best time after each of up to 32 even shares of the trials, oldest first.

    The shares before the first correct trial are left out.
    """
    if not points:
        return ()
    first = int(points[0][0])
    num = min(SPARKLINE_POINTS, max(num_measured - first, 0) + 1)
    sampled_numbers = [
        first + round(i * (num_measured - first) / max(num - 1, 1)) for i in range(num)
    ]
    numbers = [point[0] for point in points]
    return tuple(
        points[bisect.bisect_right(numbers, trial_number) - 1][1]
        for trial_number in sampled_numbers
    )
