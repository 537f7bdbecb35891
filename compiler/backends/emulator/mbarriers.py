"""The state of mbarriers: objects in shared memory that count arrivals and transferred bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.backends.emulator.types import Array


@dataclass(slots=True)
class MBarrier:
    """An mbarrier.

    Attributes:
        count: The arrivals of a phase.
        pending: The arrivals that the current phase still needs.
        transfer: The bytes that the current phase still expects.
        phase: The number of complete phases.
        arrived: The clocks of the threads that arrived in the current phase.
        released: The clocks of the last complete phase.
        is_fenced: Whether the copy engine may use it: a fence follows the initialization.
    """

    count: int
    pending: int
    transfer: int = 0
    phase: int = 0
    arrived: Array = None
    released: Array = None
    is_fenced: bool = False

    def arrive(self, count: int, row: Array) -> bool:
        """Count arrivals; return False if the phase expects fewer."""
        if count > self.pending:
            return False
        self.pending -= count
        self._join(row)
        self._complete()
        return True

    def expect(self, num_bytes: int) -> None:
        """Expect a transfer of bytes in the current phase."""
        self.transfer += num_bytes

    def transferred(self, num_bytes: int, row: Array) -> None:
        """Count bytes that have arrived."""
        self.transfer -= num_bytes
        self._join(row)
        self._complete()

    def is_complete(self, parity: int) -> bool:
        """Return whether the phase of a parity is complete."""
        return (self.phase & 1) != parity

    def _join(self, row: Array) -> None:
        self.arrived = row if self.arrived is None else np.maximum(self.arrived, row)

    def _complete(self) -> None:
        if self.pending == 0 and self.transfer == 0:
            self.phase += 1
            self.pending = self.count
            self.released, self.arrived = self.arrived, None


class MBarriers:
    """The mbarriers of all blocks, by block and by address."""

    def __init__(self) -> None:
        self._barriers: dict[tuple[int, int], MBarrier] = {}

    def initialize(self, slot: int, address: int, count: int) -> None:
        """Make an mbarrier."""
        self._barriers[slot, address] = MBarrier(count, count)

    def fence(self, slot: int) -> None:
        """Make the mbarriers of a block visible to the copy engine."""
        for (owner, _), barrier in self._barriers.items():
            if owner == slot:
                barrier.is_fenced = True

    def invalidate(self, slot: int, address: int) -> None:
        """Forget an mbarrier."""
        self._barriers.pop((slot, address), None)

    def at(self, slot: int, address: int) -> MBarrier | None:
        """Return the mbarrier at an address; None if it is not initialized."""
        return self._barriers.get((slot, address))
