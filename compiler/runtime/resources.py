"""The resources of a compiled kernel: what its compiler reports, and what its emulator counts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class KernelResources:
    """The resources that a kernel of a device uses.

    Attributes:
        registers: The registers of a thread.
        stack_bytes: The local memory of a thread: arrays that are indexed by variables.
        spill_bytes: The bytes of registers that are stored to local memory.
        shared_bytes: The shared memory of a block.
        occupancy: The share of a multiprocessor's warps that run at once; None if it is unknown.
        bank_conflicts: The accesses to banks of shared memory over the least number of them, so 1
            without conflicts; None if it is unknown: the kernel did not run in the emulator.
    """

    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int
    occupancy: float | None = None
    bank_conflicts: float | None = None

    def in_words(self) -> dict[str, str]:
        """Return the resources by name, with their units."""
        words = {
            "registers": f"{self.registers} a thread",
            "spills": f"{self.spill_bytes} bytes a thread",
            "stack": f"{self.stack_bytes} bytes a thread",
            "shared memory": f"{self.shared_bytes} bytes a block",
        }
        if self.occupancy is not None:
            words["occupancy"] = f"{self.occupancy:.0%}"
        return words

    @classmethod
    def of_all(cls, kernels: Iterable[KernelResources]) -> KernelResources | None:
        """Return the worst of each resource, such as the lowest occupancy; None for no kernels."""
        needs = list(kernels)
        if not needs:
            return None
        occupancies = [need.occupancy for need in needs if need.occupancy is not None]
        conflicts = [need.bank_conflicts for need in needs if need.bank_conflicts is not None]
        return cls(
            registers=max(need.registers for need in needs),
            stack_bytes=max(need.stack_bytes for need in needs),
            spill_bytes=max(need.spill_bytes for need in needs),
            shared_bytes=max(need.shared_bytes for need in needs),
            occupancy=min(occupancies, default=None),
            bank_conflicts=max(conflicts, default=None),
        )

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> KernelResources:
        """Parse the object that `asdict` made, possibly from a process that is not trusted.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown or missing.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with resources, not {type(obj).__name__}")
        resources = cls(**obj)
        for name in _COUNTS:
            _check_count(name, getattr(resources, name))
        share: object = obj.get("occupancy")
        if share is not None and not (isinstance(share, float | int) and 0 <= share <= 1):
            raise ValueError(f"occupancy is {share!r:.50}: expected a number from 0 to 1")
        ratio: object = obj.get("bank_conflicts")
        if ratio is not None and not (isinstance(ratio, float | int) and 1 <= ratio < math.inf):
            raise ValueError(f"bank_conflicts is {ratio!r:.50}: expected a number of 1 or more")
        return resources


_RATIOS = ("occupancy", "bank_conflicts")
_COUNTS = tuple(each.name for each in fields(KernelResources) if each.name not in _RATIOS)


def _check_count(name: str, value: object) -> None:
    # The store's columns and clients in other languages hold 32 bits.
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"{name} is {value!r:.50}: expected a number of 0 or more")
