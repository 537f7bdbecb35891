"""The fit of the estimate finds the weights of times that follow from parts."""

import numpy as np
import pytest

from benchmarks.tuner.fit_roofline import Timed, fit
from tuner.space.features.roofline import OVERLAPPING, PARTS


def test_times_of_known_weights_are_found() -> None:
    """Memory counts four times as much as packing; each set has another clock."""
    rng = np.random.default_rng(0)
    packing, memory = PARTS.index("packing"), PARTS.index("memory")
    assert min(packing, memory) >= len(OVERLAPPING)
    sets = []
    for clock in (1.0, 3.0):
        parts = np.zeros((1, len(PARTS), 40))
        parts[0, [packing, memory]] = rng.uniform(1e3, 1e4, (2, 40))
        secs = clock * (parts[0, packing] + 4 * parts[0, memory])
        sets.append(Timed(parts, np.log2(secs / secs.min())))
    weights = fit(sets)
    assert weights[memory] / weights[packing] == pytest.approx(4, rel=0.1)
