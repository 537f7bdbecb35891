"""Build and run candidates, and compare them with the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.space.design_space import SketchSpace

Array = NDArray[Any]


def computed(
    func: PrimFunc, candidate: Candidate, target: Target, inputs: dict[str, Array]
) -> dict[str, Array]:
    """Run a candidate, with its trace read from JSON; return all parameters."""
    trace = Trace.from_json(candidate.trace.to_json())
    arrays = {b.name: poisoned(b) for b in func.buffers}
    arrays |= {name: value.copy() for name, value in inputs.items()}
    module = build(trace.apply_to(func), target)
    try:
        module(*arrays.values())
    finally:
        module.close()
    return arrays


def check_candidates(
    func: PrimFunc, space: SketchSpace, sketches: Iterable[int] | None = None, *, each: int
) -> None:
    """Check that candidates compute correct results.

    Args:
        sketches: The numbers of the sketches; all of the space if None.
        each: The number of candidates of each sketch.
    """
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)
    for index in range(len(space.sketches)) if sketches is None else sketches:
        drawn = space.draw(index, each, np.random.default_rng(0))
        assert np.isfinite(space.features(index, drawn)).all()
        for choices in drawn:
            candidate = space.sketches[index].candidate(choices)
            arrays = computed(func, candidate, space.target, inputs)
            compare(func, {name: arrays[name] for name in expected}, expected)
