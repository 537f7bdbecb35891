"""The choice of a few kernels, of which some is fast at each size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_KERNELS = 8
"""Limit of the kernels behind a dispatcher: their code must stay small. Chosen."""
MIN_GAIN = 0.002
"""Another kernel must make the mean size this much faster, that is one of 28 sizes by a twentieth:
times in turns vary by less. Chosen.
"""
_WORST = 1e3
"""The loss of a kernel that fails at a size: any other is better. Chosen."""


def choose_kernels(losses: Floats, most: int = MAX_KERNELS) -> list[int]:
    """Return rows of which some has a small loss in each column, in their order.

    The best are added one by one, then exchanged for others as long as that helps. Those that are
    not needed any more are left out.

    Args:
        losses: The logarithm of the time of each kernel at each size, as a multiple of the best.
        most: The limit on rows.
    """
    finite = np.where(np.isfinite(losses), losses, _WORST)
    chosen: list[int] = []
    loss = np.inf
    while len(chosen) < most:
        row, new_loss = _best_with(finite, chosen)
        if loss - new_loss < MIN_GAIN:
            break
        chosen, loss = [*chosen, row], new_loss
    return sorted(_needed(finite, _exchanged(finite, chosen)))


def _needed(losses: Floats, chosen: list[int]) -> list[int]:
    """Leave out rows that the others replace; the first is often a compromise."""
    for row in list(chosen):
        others = [other for other in chosen if other != row]
        if others and _mean_loss(losses, others) - _mean_loss(losses, chosen) < MIN_GAIN:
            return _needed(losses, others)
    return chosen


def _exchanged(losses: Floats, chosen: list[int]) -> list[int]:
    loss = _mean_loss(losses, chosen)
    while True:
        options = [
            (_best_with(losses, [*chosen[:at], *chosen[at + 1 :]]), at) for at in range(len(chosen))
        ]
        (row, new_loss), at = min(options, key=lambda option: option[0][1])
        if loss - new_loss < MIN_GAIN:
            return chosen
        chosen = [*chosen[:at], *chosen[at + 1 :], row]
        loss = new_loss


def _best_with(losses: Floats, chosen: list[int]) -> tuple[int, float]:
    """Return the row that helps some others most, and the mean loss with it."""
    current = losses[chosen].min(axis=0) if chosen else np.full(losses.shape[1], _WORST)
    means = np.minimum(losses, current).mean(axis=1)
    row = int(np.argmin(means))
    return row, float(means[row])


def _mean_loss(losses: Floats, chosen: list[int]) -> float:
    return float(losses[chosen].min(axis=0).mean())
