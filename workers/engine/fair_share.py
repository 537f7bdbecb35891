"""Fair shares of the workers of a cluster: how many batches of a request may be in flight.

Batches of all requests wait in one queue, first come, first served, so an owner gets workers in
proportion to its batches in flight. Each owner may therefore have as many as any other, and what an
owner cannot use is left to the others (max-min fairness, D. Bertsekas and R. Gallager, Data
Networks, 1992, section 6.5.2). An owner's requests share its part evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

REQUEST_SIZE = 16
"""Most batches that a request can use: the candidates of a round of `tuner.loop.search_loop`."""
_PER_SLOT_OF_ONE = 2.0
"""Batches in flight per worker: one runs, one waits, so that no worker is idle between them."""
_PER_SLOT_OF_MANY = 1.5
"""The same with several owners. A shorter queue gives each its part sooner: with five workers for a
job, the owner of a quarter of the jobs can use 0.8 batches per worker (`benchmarks/fleet`).
"""


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

    def max_in_flight(self, num_slots: int) -> int:
        """Return how many batches of the request may be in flight, at least one."""
        num_own = max(1, self.num_requests.get(self.owner, 1))
        others = sorted(num for owner, num in self.num_requests.items() if owner != self.owner)
        if not others:
            return max(1, ceil(_PER_SLOT_OF_ONE * num_slots / num_own))
        # From the smallest demand on, each owner gets it, or an equal part of what is left.
        left, num_left = _PER_SLOT_OF_MANY * num_slots, 1 + len(others)
        for num in others:
            if num >= num_own or REQUEST_SIZE * num >= left / num_left:
                break
            left, num_left = left - REQUEST_SIZE * num, num_left - 1
        return max(1, ceil(left / num_left / num_own))


def alone() -> Standing:
    """Return the standing of a request beside which there are no others."""
    return Standing()
