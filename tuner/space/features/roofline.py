"""An estimate of cycles from tables, after the roofline model (Williams et al., CACM 2009).

The parts follow from published rates (`compiler/target/pipelines.py`) and the sizes of the caches.
How much each part counts was fitted to the recorded sets. It is a feature and a tie-breaker before
any measurement, never a result.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.cpu import CpuTarget
from tuner.space.features.issue_slots import LOOP_SLOTS
from tuner.space.tables.knob import Ints
from tuner.space.tables.lane_steps import NO_STEPS, LaneSteps
from tuner.space.tables.nest import NUM_LEVELS, REGISTER_LEVEL, Floats, NestTables
from tuner.space.tables.register_tile import RegisterTile

BYTES_PER_CYCLE = {"l2": 32.0, "l3": 16.0, "memory": 5.0}
"""Bytes a cycle from each level to one core: orders of magnitude of recent x86-64 cores. Only the
order of candidates depends on them.
"""
PACKED_BYTES_PER_CYCLE = 8.0
"""Bytes a cycle of copies into panels. An estimate: strided reads take longer than plain ones."""
FUNCTION_OPERATIONS, QUOTIENT_OPERATIONS = 10, 4
"""Multiply-adds that take as long as one call of a function, or one division. Estimates."""
STEP_VECTORS = 4
"""Vectors that a step of a long vectorized loop computes: `CHUNKS_A_STEP` of the code generator."""
OVERLAP = 2.0
"""The parts that overlap count as the norm of this order: the longest one most, but shorter ones
as well. The norms of orders 3 and 4 fitted the recorded sets worse.
"""
FITTED = {
    "compute": 1.68,
    "chains": 0.558,
    "issue": 0.516,
    "vector_loads": 2.44,
    "broadcasts": 1.63,
    "stores": 0.524,
    "gathers": 0.321,
    "spills": 1.57,
    "loops": 0.682,
    "tiles": 1.45,
    "results": 0.616,
    "blocks": 4.55,
    "packing": 1.18,
    "l2": 0.307,
    "l3": 0.408,
    "memory": 0.881,
    "functions": 1.01,
    "quotients": 1.01,
    "lane_sums": 0.896,
    "remainders": 0.999,
    "pieces": 5.6,
    "lone_chains": 0.997,
}
"""How much a cycle of each part counts, fitted by `python -m benchmarks.tuner.fit_roofline`. The
last ones are near the values that it starts from: few sets depend on them.
"""
PARTS = tuple(FITTED)
OVERLAPPING = PARTS[:7]
"""The parts that overlap; the others add up."""
_WEIGHTS = np.array(list(FITTED.values()))[:, None]


class Roofline:
    """Estimated cycles of each candidate of a batch, by the limiting resource.

    Args:
        steps: The decisions about vectorized loops that the nest does not hold.
        values: The table of the sketch that these are in.
    """

    def __init__(
        self,
        tables: NestTables,
        target: CpuTarget,
        steps: LaneSteps = NO_STEPS,
        values: Ints | None = None,
    ) -> None:
        self._tables = tables
        self._target = target
        self._tile = RegisterTile(tables, target)
        self._axis = tables.nest.vector_axis
        if self._axis is None and steps.is_vectorized:
            self._axis = tables.nest.facts.vector_axis
        self._pieces = None if steps.piece is None or values is None else values[:, steps.piece]
        self._unrolled = (
            1.0 if steps.unrolled is None or values is None else values[:, steps.unrolled]
        )

    @cached_property
    def parts(self) -> Floats:
        """Return the cycles by resource, a row for each of `PARTS`, by published rates alone."""
        tables, tile, core = self._tables, self._tile, self._target.pipelines
        facts, dot = tables.nest.facts, tables.nest.dot
        ops = facts.operations
        simple = ops.fma + ops.add + ops.mul + ops.compare + ops.integer + ops.convert
        arithmetic = 1 if facts.is_multiply_add else max(simple, 1)
        vectors, pieces, lone = self._vectors
        runs = tables.trips[6] / dot.size
        steps = runs * vectors
        unrolled = tile.unrolled_steps * self._unrolled
        whole, broadcasts, gathers = self._loads
        work = tile.accumulators * arithmetic
        body = work * dot.instructions + whole + broadcasts + gathers + LOOP_SLOTS / unrolled
        # An iteration ends a tile of sums, or stores what it computes.
        tiles = tables.trips[4] if facts.is_reduction else tables.trips[3]
        ends = tiles if facts.is_reduction else steps
        zeros = np.zeros_like(runs)
        lane_sums, remainders = self._lane_sums
        spilled = np.maximum(tile.registers - self._target.num_vector_registers, 0)
        functions = FUNCTION_OPERATIONS * ops.special * tile.accumulators / core.fmas
        return np.stack(
            [
                steps * work * dot.instructions / core.fmas,
                runs * core.fma_latency * facts.is_reduction,
                steps * body / core.slots,
                steps * whole / core.loads,
                steps * broadcasts / core.loads,
                ends * tile.accumulators,
                steps * gathers / core.loads,
                spilled * runs * 2,
                runs / unrolled if facts.is_reduction else steps,
                tiles,
                tiles * tile.accumulators if facts.is_reduction else zeros,
                tables.trips[3],
                self._packed_bytes() / PACKED_BYTES_PER_CYCLE,
                *self._moved(),
                steps * functions,
                steps * QUOTIENT_OPERATIONS * ops.div * tile.accumulators,
                lane_sums,
                remainders,
                pieces,
                lone * functions,
            ]
        )

    @cached_property
    def fitted(self) -> Floats:
        """Return the cycles by resource as they count for the total."""
        counted: Floats = self.parts * _WEIGHTS
        return counted

    @cached_property
    def total(self) -> Floats:
        """Return the total cycles, at least one."""
        busy = (self.fitted[: len(OVERLAPPING)] ** OVERLAP).sum(axis=0) ** (1 / OVERLAP)
        total: Floats = busy + self.fitted[len(OVERLAPPING) :].sum(axis=0) + 1
        return total

    @cached_property
    def _vectors(self) -> tuple[Floats, Floats, Floats]:
        """Return the vectors a point, the pieces, and the vectors that are computed one by one.

        They are 1, 0 and 0, except of blocks without sums that compute a row in pieces, of which
        the nest has no register tile. The last piece is padded.
        """
        tables = self._tables
        axis, facts = self._axis, tables.nest.facts
        ones = np.ones_like(tables.trips[0])
        has_tile = axis is not None and tables.nest.columns[axis][REGISTER_LEVEL] is not None
        if axis is None or facts.is_reduction or has_tile:
            return ones, 0 * ones, 0 * ones
        lanes, row = self._tile.lanes, tables.tiles[3, axis]
        piece = row if self._pieces is None else np.minimum(self._pieces, row)
        is_whole = piece >= row
        rest = np.bitwise_count((row % lanes).astype(np.int64))
        in_pieces = np.ceil(row / piece) * np.ceil(piece / lanes)
        vectors = np.where(is_whole, row // lanes + rest, in_pieces)
        pieces = np.where(is_whole, np.ceil(row / (STEP_VECTORS * lanes)), np.ceil(row / piece))
        runs = tables.trips[6] / row
        is_lone = ~is_whole & (piece != STEP_VECTORS * lanes)
        return vectors / row, runs * pieces, runs * vectors * is_lone

    @cached_property
    def _loads(self) -> tuple[Floats, Floats, Floats]:
        """Return the loads of a step: whole vectors, elements for all lanes, single elements."""
        tables, tile = self._tables, self._tile
        axis = self._axis
        whole, broadcasts, gathers = (np.zeros_like(tile.rows) for _ in range(3))
        for index, access in enumerate(tables.nest.accesses[1:], start=1):
            elements = tables.elements[index, REGISTER_LEVEL]
            stride = 0 if axis is None else access.strides[axis]
            if stride == 0:
                broadcasts += np.minimum(elements, tile.rows)
            elif stride == 1 or index in tables.nest.packed:
                whole += elements * tile.vectors / tables.vector_length
            else:
                gathers += elements
        return whole, broadcasts, gathers

    @cached_property
    def _lane_sums(self) -> tuple[Floats, Floats]:
        """Return the steps that combine lanes of partial sums, and those of elements left over."""
        tables, tile = self._tables, self._tile
        axis, facts = tables.nest.vector_axis, tables.nest.facts
        if axis is None or not facts.axes[axis].is_reduction:
            return np.zeros_like(tile.rows), np.zeros_like(tile.rows)
        length = np.maximum(tables.vector_length, 2)
        sums = tables.trips[4] * tile.rows
        rest = (facts.axes[axis].extent % tables.vector_length).astype(np.int64)
        left = rest // tile.lanes + np.bitwise_count(rest % tile.lanes)
        return sums * np.log2(length), sums * left

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

    def _moved(self) -> list[Floats]:
        """Return the cycles in which bytes come from the second and third cache and memory."""
        target = self._target
        footprints = self._tables.footprints.sum(axis=0)
        traffic = self._tables.traffic.sum(axis=0)
        cycles = []
        for name, size in zip(
            BYTES_PER_CYCLE, (target.l1_bytes, target.l2_bytes, target.l3_bytes), strict=True
        ):
            fits = footprints <= size
            level = np.where(fits.any(axis=0), fits.argmax(axis=0), NUM_LEVELS - 1)
            moved = np.take_along_axis(traffic, level[None], axis=0)[0]
            cycles.append(moved / BYTES_PER_CYCLE[name])
        return cycles
