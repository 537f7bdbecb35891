"""The progress of a job: where its best time improved, in a few points that its row keeps.

Lists show it beside each job, so it must not be counted from trials: it changes with the
transaction that adds the trial which improved.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[int, float]
"""How many trials were measured, and the shortest time among them in seconds."""
MAX_POINTS = 48
SPARKLINE_POINTS = 32


def add_point(
    points: Sequence[Sequence[float]], num_measured: int, best_secs: float
) -> list[Point]:
    """Return the points with one more, without the least of them if they become too many.

    A time that is no improvement changes nothing. The first and the last stay; of the others that
    with the smallest step goes.
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

    What lies before the first right trial is left out.
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
