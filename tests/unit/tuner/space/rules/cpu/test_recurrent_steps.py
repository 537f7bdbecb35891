"""The blocks of each step of a recurrence are tiled, and weights are packed before the steps."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.block_facts import BlockPosition, sites
from tuner.space.generate import design_space
from tuner.task import Task

SEQUENCES = {
    "lstm": ops.lstm(3, 2, 5, 16),
    "lstm of narrow floats": ops.lstm(2, 1, 8, 12, dtype="bfloat16"),
    "gru": ops.gru(3, 5, 4, 24),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_correct(name: str) -> None:
    func, num_cores = SEQUENCES[name], 2 if name == "gru" else 1
    space = design_space(Task(func, here(num_cores)))
    assert space.sketches
    assert all(sketch.name.endswith("steps") for sketch in space.sketches)
    check_candidates(func, space, [0], each=2)


def scheduled(func: PrimFunc) -> dict[str, BlockPosition]:
    """Return the blocks of a candidate by name."""
    space = design_space(Task(func, level(3)))
    choices = space.draw(0, 1, np.random.default_rng(0))[0]
    program = space.sketches[0].candidate(choices).trace.apply_to(func).func
    return {site.block.name: site for site in sites(program)}


def test_weights_are_packed_once_and_gates_are_vectors() -> None:
    blocks = scheduled(ops.lstm(4, 2, 8, 32))
    time = blocks["h_next"].loops[0]
    assert blocks["recurrent_update"].loops[0] is time
    assert blocks["w_hh_global"].loops[0] is not time
    for name in ("recurrent_update", "c_next", "h_next"):
        assert blocks[name].loops[-1].kind == "vectorized"


def test_inputs_of_all_steps_are_one_product_before_them() -> None:
    blocks = scheduled(ops.gru(4, 2, 8, 32))
    names = list(blocks)
    assert names.index("inputs_update") < names.index("recurrent_update")
    assert blocks["inputs_update"].loops[0] is not blocks["h_next"].loops[0]
