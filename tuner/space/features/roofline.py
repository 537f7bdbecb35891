"""A rough estimate of cycles from tables, after the roofline model (Williams et al., CACM 2009).

It models only caches and vectors: it is a feature and a tie-breaker before any measurement, never a
result.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.cpu import CpuTarget
from tuner.space.features.issue_slots import LOOP_SLOTS
from tuner.space.tables.nest import NUM_LEVELS, Floats, NestTables
from tuner.space.tables.register_tile import RegisterTile

BYTES_PER_CYCLE = {"l2": 32.0, "l3": 16.0, "memory": 5.0}
"""Bytes a cycle from each level to one core: orders of magnitude of recent x86-64 cores. Only the
order of candidates depends on them.
"""
LOOP_CYCLES = 2.0
"""Cycles of an iteration of a loop besides its body: count and jump. An estimate."""
PACKED_BYTES_PER_CYCLE = 8.0
"""Bytes a cycle of copies into panels. An estimate: strided reads take longer than plain ones."""


class Roofline:
    """Estimated cycles of each candidate of a batch, by the limiting resource."""

    def __init__(self, tables: NestTables, target: CpuTarget) -> None:
        self._tables = tables
        self._target = target
        self.points: float = tables.nest.facts.points

    @cached_property
    def parts(self) -> dict[str, Floats]:
        """Return the cycles by resource; they overlap in part."""
        tables, target = self._tables, self._target
        core = target.pipelines
        tile = RegisterTile(tables, target)
        steps = tables.trips[6] / tables.nest.dot.size
        if tables.nest.facts.is_reduction:
            # A chain of dependent additions bounds a small tile.
            compute = steps * np.maximum(tile.accumulators / core.fmas, core.fma_latency)
        else:
            compute = steps * np.maximum(tile.accumulators / core.fmas, 1)
        # The core's issue slots beside another thread, for arithmetic and other instructions.
        body = tile.arithmetic + tile.loads + LOOP_SLOTS / tile.unrolled_steps
        compute = np.maximum(compute, steps * body / core.slots)
        loaded = tile.loads + tile.accumulators * (tables.level_extents[4] == 1)
        loads = steps * loaded / core.loads
        spills = np.maximum(tile.registers - target.num_vector_registers, 0) * steps * 2
        loops = tables.trips[5] * LOOP_CYCLES
        sizes = {"l2": target.l1_bytes, "l3": target.l2_bytes, "memory": target.l3_bytes}
        moved = {
            name: self._bytes_into(size) / BYTES_PER_CYCLE[name] for name, size in sizes.items()
        }
        return {
            "compute": compute,
            "loads": loads,
            "spills": spills + 1,
            "loops": loops,
            "packing": self._packed_bytes() / PACKED_BYTES_PER_CYCLE + 1,
            **moved,
        }

    @cached_property
    def total(self) -> Floats:
        """Return the total cycles: arithmetic and loads overlap, the rest adds a part."""
        parts = self.parts
        busy = np.maximum(parts["compute"], parts["loads"])
        moved = parts["l2"] + parts["l3"] + parts["memory"]
        return busy + parts["spills"] + parts["loops"] + parts["packing"] + 0.5 * moved

    def _packed_bytes(self) -> Floats:
        """Return the bytes that are copied into panels: once for each visit of a block.

        Panels that do not move with the loops of level 1 were packed before them. Panels of
        constants were packed before the run.
        """
        tables, block = self._tables, 3
        total: Floats = np.zeros_like(tables.trips[0])
        for index in tables.nest.packed - tables.nest.prepacked:
            access = tables.nest.accesses[index]
            visits = tables.trips[block].copy()
            for axis, stride in enumerate(access.strides):
                if stride == 0:
                    visits = visits / tables.extents[1, axis]
            total = total + visits * tables.elements[index, block] * access.item_bytes
        return total

    def _bytes_into(self, cache_bytes: int) -> Floats:
        """Return the bytes that a cache of this size fetches from the next level."""
        fits = self._tables.footprints.sum(axis=0) <= cache_bytes
        level = np.where(fits.any(axis=0), fits.argmax(axis=0), NUM_LEVELS - 1)
        traffic = self._tables.traffic.sum(axis=0)
        moved: Floats = np.take_along_axis(traffic, level[None], axis=0)[0]
        return moved
