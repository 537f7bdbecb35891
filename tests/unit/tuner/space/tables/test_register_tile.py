"""Registers of a tile: a product that is added by another instruction takes one more."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.target.cpu import CpuTarget
from tuner.space.generate import design_space
from tuner.space.tables.register_tile import RegisterTile
from tuner.task import Task


@pytest.mark.parametrize(("cpu", "instructions"), [("znver3", 2), ("alderlake", 1)])
def test_dot_products_count_with_their_instructions(cpu: str, instructions: int) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    space = design_space(Task(ops.quantized_dense(96, 96, 64), target))
    sketch = space.sketches[0]
    choices = np.array(space.draw(0, 8, np.random.default_rng(0)))
    (nest, *_) = sketch.nests
    tile = RegisterTile(nest.tables(sketch.values(choices)), target)
    np.testing.assert_array_equal(tile.arithmetic, tile.accumulators * instructions)
    expected = tile.accumulators + tile.vectors + instructions
    np.testing.assert_array_equal(tile.registers, expected)


def test_tiles_of_twelve_accumulators_leave_no_register_for_a_product() -> None:
    """4 x 3 accumulators, 3 vectors, a broadcast and a product are 17 registers; AVX2 has 16."""
    target = CpuTarget("cpu -mcpu=znver3 -num-cores=1")
    sizes = {}
    for name in ("dense", "quantized_dense"):
        space = design_space(Task(ops.from_spec(f"{name}:96,96,96"), target))
        sketch = space.sketches[0]
        drawn = np.array(space.draw(0, 256, np.random.default_rng(0)))
        tile = RegisterTile(sketch.nests[0].tables(sketch.values(drawn)), target)
        sizes[name] = set(zip(tile.rows.tolist(), tile.vectors.tolist(), strict=True))
    assert (4, 3) in sizes["dense"]
    assert (4, 3) not in sizes["quantized_dense"]
    assert (4, 2) in sizes["quantized_dense"]
