"""Fair shares of the workers of a cluster: how many batches of a request may be in flight.

Batches of all requests wait in one queue, first come, first served, so an owner gets workers in
proportion to its batches in flight. Each owner may therefore keep as many workers busy as any
other, and what an owner cannot use is left to the others (max-min fairness, D. Bertsekas and R.
Gallager, Data Networks, 1992, section 6.5.2). An owner's requests share its part evenly.

A request has 16 candidates, and the next one follows when the last of them is measured. With n
batches in flight it lasts about 16 / n + 3 / 4 batches, so that it keeps fewer than n workers busy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

REQUEST_SIZE = 16
"""Candidates of a request: those of a round of `tuner.loop.search_loop`."""
_PER_SLOT = 2.0
"""Batches in flight per worker: one runs, one waits, so that no worker is idle between them."""
_LAST_BATCHES = 0.75
"""How long workers of a request are idle until its last batch ends, in batches. Batches of the
recorded sets take between half and one and a half of their mean (`benchmarks/fleet`).
"""
_MAX_BUSY = REQUEST_SIZE / (1 + _LAST_BATCHES)
"""The workers that a request with all its batches in flight keeps busy."""


@dataclass(frozen=True)
class Standing:
    """What the batches of a request are entitled to beside those of others.

    Attributes:
        owner: Whom the request belongs to.
        num_requests: The current requests for the same workers, by owner.
        priority: Batches of a higher priority go first.
    """

    owner: str = ""
    num_requests: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0

    def max_in_flight(self, num_slots: int) -> float:
        """Return how many batches of the request may be in flight, in the mean, at least one."""
        num_own = max(1, self.num_requests.get(self.owner, 1))
        others = sorted(num for owner, num in self.num_requests.items() if owner != self.owner)
        most = _PER_SLOT * num_slots / num_own
        if others:
            most = min(most, _in_flight(_part(num_slots, num_own, others) / num_own))
        return max(1.0, most)


def _part(num_slots: int, num_own: int, others: Sequence[int]) -> float:
    """Return how many workers an owner may keep busy beside others.

    Args:
        num_own: The number of its requests.
        others: Those of the other owners, in ascending order.
    """
    left, num_left = float(num_slots), 1 + len(others)
    for num in others:  # each gets what it can use, or an equal part of what is left
        if num >= num_own or _MAX_BUSY * num >= left / num_left:
            break
        left, num_left = left - _MAX_BUSY * num, num_left - 1
    return left / num_left


def _in_flight(num_busy: float) -> float:
    """Return how many batches in flight keep a number of workers busy, for one request."""
    if num_busy >= _MAX_BUSY:
        return REQUEST_SIZE
    return REQUEST_SIZE * num_busy / (REQUEST_SIZE - _LAST_BATCHES * num_busy)


def alone() -> Standing:
    """Return the standing of a request beside which there are no others."""
    return Standing()
